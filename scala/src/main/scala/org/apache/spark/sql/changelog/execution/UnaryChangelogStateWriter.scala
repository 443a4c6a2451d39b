// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.UnaryExecNode
import org.apache.spark.sql.execution.streaming.state.StateStore

/** An operator with one input that keeps one state store per partition. */
trait UnaryChangelogStateWriter extends UnaryExecNode with ChangelogStateWriter {

  /** Turns a partition's rows of one batch into the changes to emit. Called on executors. */
  protected def processPartition(
      store: StateStore,
      rows: Iterator[InternalRow]): Iterator[InternalRow]

  override protected def doExecute(): RDD[InternalRow] = {
    val rests = restsWithoutRows
    executeWithStore(inputRows.head) { (store, rows) =>
      if (rests && !rows.hasNext) Iterator.empty else processPartition(store, rows)
    }
  }
}
