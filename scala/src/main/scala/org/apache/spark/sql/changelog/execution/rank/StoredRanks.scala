// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.streaming.state.StateStore

/** Reads which rows of all partitions are shown, from where they are kept. */
private[rank] final class StoredRanks(layout: RankLayout, store: StateStore) {
  private val state = new RankStateManager(layout, store)
  private val head = RankHead(layout)
  private val outputOf = new RankOutput(layout)
  private val numKeyColumns = layout.keyColumns.size
  private val partitionOf =
    UnsafeProjection.create(layout.keyColumns.zipWithIndex.map { case (column, ordinal) =>
      BoundReference(ordinal, column.dataType, nullable = true)
    })

  /** The rows, each as an insert. */
  def rows: Iterator[InternalRow] = store
    .iterator()
    .filter(entry => !layout.keepsOthers || entry.key.isNullAt(numKeyColumns))
    .flatMap { entry =>
      val partition = partitionOf(entry.key)
      state.load(partition, head)
      head.shown().asScala.iterator.map(outputOf(partition, _))
    }
}
