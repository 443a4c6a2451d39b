// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql

/**
 * Keeps queries over changing tables up to date. A package may use those above it that it names
 * here, and what stands right here, such as `RowKind`; a test sees to it.
 *
 * {{{
 *   compat       Spark's internals that another version may have otherwise, behind functions and
 *                traits; what differs in a version that is built for is in a folder of its own
 *   config       settings
 *                uses compat
 *   errors       everything a user can be told
 *   checkpoint   files of a checkpoint of any streaming query, and the batches they tell of
 *                uses compat, errors
 *   connectors   table formats: the only code that knows their classes, settings and errors
 *                uses checkpoint, errors
 *   state        a state store that keeps rows in pages, for any streaming query
 *                uses compat, errors
 *   microbatch   what Spark knows of a batch while it plans and runs it, and what operators share in it
 *                uses compat, config
 *   plans        logical nodes: those of from_changelog and to_changelog, those a query is
 *                rewritten to, and what EXPLAIN says of one
 *                uses config, errors, microbatch
 *   sources      change types into row kinds, records into changes, tables that are followed
 *                uses checkpoint, compat, connectors, errors, plans
 *   inference    what each node of a query emits and needs: row kinds and keys from the sources up,
 *                updates from the root down, when rows are final, what is kept; and what is refused
 *                uses compat, config, errors, plans
 *   analysis     rules and checks of Spark's analysis
 *                uses compat, config, errors, inference, plans
 *   functions    from_changelog, to_changelog and their like, as SQL table functions
 *                uses analysis, compat, errors, plans, sources
 *   sinks        what keeps tables and topics current from the changes, each batch once
 *                uses checkpoint, compat, connectors, errors, plans, sources
 *   identity     what a query is, written down in its checkpoint so that it can be begun again, and
 *                what is checked when it is started
 *                uses analysis, checkpoint, compat, config, errors, microbatch, plans, sinks, sources,
 *                state
 *   savepoints   batches of a query that are kept, and from which it goes on a second time
 *                uses checkpoint, compat, errors, identity, sources
 *   optimizer    the rewrite below to_changelog: normalize, infer, then one rewrite per node kind
 *                uses analysis, compat, config, errors, identity, inference, microbatch, plans, sources
 *   status       what running queries did in their last batch, operator by operator: for EXPLAIN,
 *                as a table function and as metrics
 *                uses functions, microbatch, plans
 *   execution    physical operators, one package each, and how they use their state
 *                uses checkpoint, compat, config, errors, identity, inference, microbatch, plans,
 *                sources, status
 *   evolution    a query that goes on otherwise with the state it has: as a changed one, or in
 *                another number of partitions
 *                uses analysis, checkpoint, compat, config, errors, execution, identity, microbatch,
 *                optimizer, plans, sources, state
 *   explain      EXPLAIN CHANGELOG as text, JSON and picture, of a query that runs and of a dry run,
 *                too, the text in Spark's own EXPLAIN, and the rows behind those of a result
 *                uses analysis, compat, config, errors, execution, functions, inference, microbatch,
 *                plans, sources, status
 *   views        statements that keep a query's table under one name
 *                uses analysis, checkpoint, compat, config, connectors, errors, evolution, explain,
 *                functions, identity, plans, savepoints, sinks, sources
 *   web          a tab of Spark's web UI
 *                uses compat, explain, plans, status, views
 *   parser       what Spark's grammar doesn't have
 *                uses compat, errors, evolution, explain, savepoints, views
 * }}}
 *
 * It lives under Spark's own root because stateful operators need what Spark keeps to itself
 * there. What users name lives in `io.sparkchangelog`.
 */
package object changelog
