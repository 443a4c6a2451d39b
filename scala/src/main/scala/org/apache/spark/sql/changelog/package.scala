// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql

/**
 * The engine: keeps the results of queries over changing tables current.
 *
 * A package may use the packages after `uses`, and the types of the root package, such as `RowKind`. Used packages
 * precede the package in the list. `PackageGraphSuite` checks the list and the order.
 *
 * {{{
 *   compat       wrappers of Spark internals most likely to change; code for a single Spark version
 *                is in a source folder of its own
 *   config       settings
 *                uses compat
 *   errors       every error message to users
 *   checkpoint   files and batch logs in the checkpoint of any streaming query
 *                uses compat, errors
 *   connectors   table formats: the only code with knowledge of their classes, settings and errors
 *                uses checkpoint, errors
 *   state        a paged state store for any streaming query
 *                uses compat, errors
 *   microbatch   knowledge about the running batch, and data shared by the operators of a batch
 *                uses compat, config
 *   plans        logical nodes of from_changelog, to_changelog and rewritten queries, and their
 *                description in EXPLAIN
 *                uses compat, config, errors, microbatch
 *   sources      changes from streams, records and followed tables, and initial snapshots
 *                uses checkpoint, compat, connectors, errors, plans
 *   inference    changelog modes, keys, final rows and stored state of each node, and the rejection
 *                of unsupported nodes
 *                uses compat, config, errors, plans
 *   analysis     rules and checks in Spark's analysis
 *                uses compat, config, errors, inference, plans
 *   functions    SQL table functions such as from_changelog and to_changelog
 *                uses analysis, compat, config, errors, plans, sources
 *   sinks        idempotent writes of changes into tables and topics
 *                uses checkpoint, compat, config, connectors, errors, plans, sources
 *   identity     the recorded plan in the checkpoint of a query, and the checks at the start
 *                uses analysis, checkpoint, compat, config, errors, microbatch, plans, sinks, sources,
 *                state
 *   savepoints   savepoints and forks of a query
 *                uses checkpoint, compat, errors, identity, sources
 *   optimizer    the rewrite below to_changelog: normalize, infer, then one rewrite per node kind
 *                uses analysis, compat, config, errors, identity, inference, microbatch, plans, sources
 *   execution    physical operators, one package each, their state, and their figures of the last batch
 *                uses checkpoint, compat, config, errors, identity, inference, microbatch, plans,
 *                sources
 *   evolution    changed queries with inherited state, and rescaling to another number of partitions
 *                uses analysis, checkpoint, compat, config, errors, execution, identity, microbatch,
 *                optimizer, plans, sources, state
 *   explain      EXPLAIN CHANGELOG as text, JSON and picture, dry runs, plans within Spark's EXPLAIN,
 *                the table of running operators, and lineage
 *                uses analysis, compat, config, errors, execution, functions, inference, microbatch,
 *                plans, sources
 *   views        materialized views and streaming tables
 *                uses analysis, checkpoint, compat, config, connectors, errors, evolution, explain,
 *                functions, identity, plans, savepoints, sinks, sources
 *   web          a tab of Spark's web UI
 *                uses compat, execution, explain, plans, views
 *   parser       syntax missing in Spark's grammar
 *                uses compat, errors, evolution, explain, functions, savepoints, views
 * }}}
 *
 * The engine lives in a package of Spark, because stateful operators need Spark's private classes. The names written by
 * users are in `io.sparkchangelog`.
 */
package object changelog
