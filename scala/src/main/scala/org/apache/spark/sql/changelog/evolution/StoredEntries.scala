// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import org.apache.spark.sql.execution.streaming.state.{StateStoreId, UnsafeRowPair}

import org.apache.spark.sql.changelog.compat.{StateStores, WholeStores}
import org.apache.spark.sql.changelog.execution.StateReadFailures

/** All that a partition of a store keeps; tasks read it. Each entry may be the same object. */
private[evolution] object StoredEntries {

  /** @param stateId which files count, where each attempt of a task leaves some */
  def apply(
      whole: WholeStores,
      id: StateStoreId,
      version: Long,
      columns: StateStores.Columns,
      stateId: Option[String]): Iterator[UnsafeRowPair] = {
    val failures = new StateReadFailures(id, version, whole.hadoopConf)
    failures.whileReading(failures.whileOpening(whole.read(id, version, columns, stateId)))
  }
}
