// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.state.StateStoreId
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.ThreadUtils

import org.apache.spark.sql.changelog.compat.WholeStores
import org.apache.spark.sql.changelog.state.PagedStateProvider

/**
 * Writes state that holds nothing, of operators that begin with a batch which is not the query's first.
 *
 * @param conf
 *   the settings with which the query keeps state
 * @param location
 *   the folder that holds that of all operators
 * @param version
 *   which the batch will read
 */
private[evolution] class EmptyState(
    session: SparkSession,
    conf: SQLConf,
    location: Path,
    version: Long,
    numPartitions: Int) {

  // pages are kept in files that Spark's own provider reads too
  private val whole =
    WholeStores(session, conf, () => new PagedStateProvider)

  /** Gives which files of each operator count, by partition and store, where that is to be said. */
  def apply(operators: Seq[Long]): Map[Long, Seq[Seq[String]]] = {
    val stores = for {
      operator <- operators
      partition <- 0 until numPartitions
    } yield (operator, partition)
    val stateIds = ThreadUtils.parmap(stores, "empty-state", NumThreads) {
      case (operator, partition) =>
        val id = StateStoreId(location.toString, operator, partition)
        operator -> whole.writeEmpty(id, version).toSeq
    }
    stateIds.groupMap(_._1)(_._2)
  }

  private val NumThreads = 8
}
