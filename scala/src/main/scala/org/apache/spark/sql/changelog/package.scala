// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql

/**
 * Keeps queries over changing tables up to date. The packages, in the order data flows:
 *
 * {{{
 *   functions    from_changelog and to_changelog, as SQL table functions
 *   sources      change types into row kinds
 *   plans        logical nodes: the two functions', and the operators a query is rewritten to
 *   analysis     what each node of a query emits and needs: modify kinds and upsert keys from the
 *                sources up, update kinds from the root down; and what is refused
 *   identity     what a query is, written down in its checkpoint so that it can be begun again
 *   optimizer    the rewrite below to_changelog: normalize, infer, then one rewrite per node kind
 *   execution    physical operators, one package each, and where their state lives
 *   sinks        what keeps tables and topics current from the changes, each batch once
 *   views        statements that keep a query's table under one name
 *   parser       what Spark's grammar doesn't have
 *   explain      EXPLAIN CHANGELOG, and the same text in Spark's own EXPLAIN
 *   config       settings
 *   errors       everything a user can be told
 * }}}
 *
 * It lives under Spark's own root because stateful operators need what Spark keeps to itself
 * there. What users name lives in `io.sparkchangelog`.
 */
package object changelog
