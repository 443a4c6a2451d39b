// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.state.StateStoreId

import org.apache.spark.sql.changelog.compat.{StoredOperator, StoredOperators, WholeStores}
import org.apache.spark.sql.changelog.state.PagedStateProvider

/** Counts what operators of a query keep, by a job that goes through it: it is written down nowhere. */
private[evolution] class CountedEntries(session: SparkSession, begun: BegunQuery) {

  /** How many entries each of some operators has, by their numbers; none if only its state store could tell. */
  def apply(operators: Set[Long]): Map[Long, Long] =
    if (operators.isEmpty || !begun.hasReadableState) Map.empty
    else {
      val stored = new StoredOperators(begun.state, session.sessionState.newHadoopConf())
      stored
        .all(begun.batch)
        .filter(operator => operators(operator.id))
        .map { operator =>
          operator.id -> count(stored, operator)
        }
        .toMap
    }

  private def count(stored: StoredOperators, operator: StoredOperator): Long = {
    // what tasks get
    val whole = WholeStores(session, begun.stateConf, () => new PagedStateProvider)
    val (root, number, version) = (begun.state.toString, operator.id, begun.batch + 1)
    operator.stores.zipWithIndex.map { case (store, index) =>
      val (name, columns) = (store.name, stored.columnsOf(operator, store))
      val stateIds = begun.stateIds.map(_(number).map(_(index)))
      session.sparkContext
        .parallelize(0 until store.numPartitions, store.numPartitions)
        .map { partition =>
          val id = StateStoreId(root, number, partition, name)
          StoredEntries(whole, id, version, columns, stateIds.map(_(partition))).size.toLong
        }
        .sum()
        .toLong
    }.sum
  }
}
