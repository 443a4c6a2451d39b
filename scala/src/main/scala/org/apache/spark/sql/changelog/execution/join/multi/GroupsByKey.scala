// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join.multi

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateOrdering
import org.apache.spark.sql.catalyst.expressions.{Ascending, Attribute, SortOrder}

/**
 * Brings the groups of several inputs together that have the same key: for each key that any input
 * has, the rows of all of them. Does for several what Spark's `CoGroupedIterator` does for two, and
 * wants the same: that rows are read before the next key is asked for.
 *
 * @param inputs
 *   groups in the order of their keys
 */
private[multi] final class GroupsByKey(
    inputs: Array[Iterator[(InternalRow, Iterator[InternalRow])]],
    key: Seq[Attribute])
    extends Iterator[(InternalRow, Array[Iterator[InternalRow]])] {
  private val ordering = GenerateOrdering.generate(key.map(SortOrder(_, Ascending)), key)
  // the next group of each input, null if there is none
  private val heads = new Array[(InternalRow, Iterator[InternalRow])](inputs.length)

  override def hasNext: Boolean = {
    var found = false
    inputs.indices.foreach { index =>
      if (heads(index) == null && inputs(index).hasNext) heads(index) = inputs(index).next()
      found ||= heads(index) != null
    }
    found
  }

  override def next(): (InternalRow, Array[Iterator[InternalRow]]) = {
    if (!hasNext) throw new NoSuchElementException
    val least = heads.iterator.filter(_ != null).map(_._1).reduce { (a, b) =>
      if (ordering.compare(b, a) < 0) b else a
    }
    val rows = heads.indices.map { index =>
      val head = heads(index)
      if (head != null && ordering.compare(head._1, least) == 0) {
        heads(index) = null
        head._2
      } else Iterator.empty[InternalRow]
    }
    (least, rows.toArray)
  }
}
