// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import scala.collection.mutable

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.{DataType, IntegerType}

import org.apache.spark.sql.changelog.testing.ProcessorTest

class ChangelogReplayProcessorSuite extends AnyFunSuite with ProcessorTest {
  private val project = UnsafeProjection.create(Array[DataType](IntegerType, IntegerType))

  private def row(group: Int, value: Int): UnsafeRow = project(InternalRow(group, value)).copy()

  /** Rows kept in memory; the first column is the partition. */
  private class Memory extends PartitionRows {
    val counts: mutable.LinkedHashMap[UnsafeRow, Long] = mutable.LinkedHashMap.empty
    var reads = 0
    var writes = 0

    override def foreachOfPartition(row: UnsafeRow)(visit: (UnsafeRow, Long) => Unit): Unit = {
      reads += 1
      counts.foreach { case (other, count) =>
        if (other.getInt(0) == row.getInt(0)) visit(other, count)
      }
    }

    override def count(row: UnsafeRow): Long = counts.getOrElse(row, 0L)

    override def update(row: UnsafeRow, count: Long): Unit = {
      writes += 1
      if (count == 0) counts -= row else counts(row) = count
    }
  }

  private class Run(refreshes: Boolean = false) {
    val memory = new Memory
    private val counter = new CountUnmatched
    private val processor = new ChangelogReplayProcessor(
      memory,
      (left, right) => Integer.compare(left.getInt(1), right.getInt(1)),
      counter,
      _.getInt(1).toString,
      refreshes)

    def unmatched: Long = counter.count

    /** What is replayed after changes of partition 1: value, times before, times after. */
    def apply(changes: (Int, Long)*): Seq[(Int, Long, Long)] = {
      changes.foreach { case (value, sign) => processor.add(row(1, value), sign) }
      processor
        .end()
        .toSeq
        .map(r => (r.row.getInt(1), r.timesBefore, r.timesAfter))
    }
  }

  test("all rows of a partition come in order, with their old and new count") {
    val run = new Run
    assert(run(5 -> 1, 3 -> 1, 5 -> 1) == Seq((3, 0, 1), (5, 0, 2)))
    assert(run(4 -> 1, 5 -> -1) == Seq((3, 1, 1), (4, 0, 1), (5, 2, 1)))
    assert(run(3 -> -1, 4 -> -1, 5 -> -1) == Seq((3, 1, 0), (4, 1, 0), (5, 1, 0)))
    assert(run.memory.counts.isEmpty && run.unmatched == 0)
  }

  test("changes that cancel out are not looked up, and only changed rows are written") {
    val run = new Run
    run(1 -> 1, 2 -> 1, 3 -> 1)
    assert(run(2 -> -1, 2 -> 1, 9 -> 1, 9 -> -1) == Nil)
    assert(run.memory.reads == 1 && run.memory.writes == 3)
    run(2 -> 1)
    assert(run.memory.writes == 4)
  }

  test("a row taken back before it came is not seen, and meets its insert") {
    val run = new Run
    assert(run(1 -> -1) == Nil)
    assert(run.unmatched == 1)
    assert(run(1 -> 1) == Nil)
    assert(run.memory.counts.isEmpty)
    assert(run(1 -> 1) == Seq((1, 0, 1)))
    assert(run(1 -> -3) == Seq((1, 1, 0)))
    assert(run.unmatched == 3)
  }

  test("where rows age, those of a touched partition are written anew") {
    val run = new Run(refreshes = true)
    run(1 -> 1, 2 -> 1, 3 -> 1)
    run(2 -> 1)
    assert(run.memory.writes == 6)
    run(2 -> 1, 2 -> -1)
    assert(run.memory.writes == 6)
  }
}
