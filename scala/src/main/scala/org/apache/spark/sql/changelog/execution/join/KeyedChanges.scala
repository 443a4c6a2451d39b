// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  Attribute,
  AttributeReference,
  Expression,
  UnsafeRow
}

import org.apache.spark.sql.changelog.execution.ChangeMetrics

/**
 * What one join key after the other has to say, as it is asked for.
 *
 * @param kindOrdinal
 *   where the row kind stands in what comes out
 */
private[join] abstract class KeyedChanges(kindOrdinal: Int, metrics: ChangeMetrics)
    extends Iterator[InternalRow] {
  private var row: UnsafeRow = _

  /** Where rows wait that are to come out. */
  protected def buffer: JoinOutput

  /** Does the next part of the work for the join key at hand; false if there is none. */
  protected def step(): Boolean

  /** Goes to another join key; false if there is none. */
  protected def nextKey(): Boolean

  override def hasNext: Boolean = {
    var isDone = false
    while (row == null && !isDone) {
      row = buffer.poll()
      if (row == null && !step()) {
        // the next join key has nothing to do with a row held back for this one
        row = buffer.pollHeld()
        if (row == null) isDone = !nextKey()
      }
    }
    row != null
  }

  override def next(): InternalRow = {
    if (!hasNext) throw new NoSuchElementException
    val result = row
    row = null
    metrics.emit(result.getByte(kindOrdinal))
    result
  }
}

private[join] object KeyedChanges {

  /** A key that can be NULL, or have NULLs within, where only another side's can. */
  def commonKey(key: Seq[Expression]): Seq[Attribute] =
    key.map(part => AttributeReference("key", part.dataType.asNullable)())
}
