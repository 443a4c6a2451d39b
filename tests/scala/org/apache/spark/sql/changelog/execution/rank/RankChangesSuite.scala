// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.IntegerType

import org.apache.spark.sql.changelog.plans.{RankFunction, RankStrategy, Ranking}
import org.apache.spark.sql.changelog.testing.{MapStore, ProcessorTest}
import org.apache.spark.sql.changelog.{RowKind, UpdateKind}

/** What a batch asks of state, which grows with the partitions it has rows of and not with its rows. */
class RankChangesSuite extends AnyFunSuite with ProcessorTest {
  private val Seq(group, value) = Seq("g", "v").map(AttributeReference(_, IntegerType)())
  private val input = Seq(group, value)
  private val rowOf = rowsOf(input)

  private def layout(strategy: RankStrategy): RankLayout = RankLayout(
    Ranking(
      RankFunction.RowNumber,
      Seq(group),
      Seq(SortOrder(value, Ascending)),
      start = 1,
      end = 2,
      number = None,
      strategy,
      replaceBy = Nil,
      bySlot = false,
      pairBy = None,
      UpdateKind.BeforeAndAfter,
      inputKind = None),
    input)

  /** The changes of a batch, the rows of each group with these values. */
  private def batch(groups: Seq[Int], values: Seq[Int]): Iterator[InternalRow] =
    groups.iterator.flatMap(group => values.map(value => rowOf(Seq(group, value))))

  private def texts(rows: Iterator[InternalRow]): Seq[String] = rows.map { row =>
    s"${RowKind.Symbols(row.getByte(2))} ${row.getInt(0)} ${row.getInt(1)}"
  }.toSeq

  test("a partition is read once, and written if other rows are shown") {
    val store = new MapStore
    def run(rows: Iterator[InternalRow]) = {
      val (metrics, unmatched) = (newMetrics(), new CountUnmatched)
      val changes =
        new RankChanges(layout(RankStrategy.AppendFast), input, store, rows, metrics, unmatched)
      val emitted = texts(changes)
      assert(metrics.emitted.value == emitted.size)
      emitted
    }
    assert(
      run(batch(1 to 3, 100 to 199)).sorted == Seq(
        "+I 1 100",
        "+I 1 101",
        "+I 2 100",
        "+I 2 101",
        "+I 3 100",
        "+I 3 101"))
    assert(store.numRead == 3 && store.numWritten == 3 && store.size == 3)
    assert(run(batch(1 to 3, 200 to 299)) == Nil)
    assert(store.numRead == 6 && store.numWritten == 3)
    assert(run(batch(Seq(2), Seq(50, 300))).sorted == Seq("+I 2 50", "-D 2 101"))
    assert(store.numRead == 7 && store.numWritten == 4)
  }

  test("where any first rows will do, a partition that has them is not written again") {
    val store = new MapStore
    def run(rows: Iterator[InternalRow]) =
      texts(new FirstRows(layout(RankStrategy.FirstCome), input, store, rows, newMetrics()))
    assert(run(batch(1 to 2, Seq(7))) == Seq("+I 1 7", "+I 2 7"))
    assert(run(batch(Seq(2), 8 to 99)) == Seq("+I 2 8"))
    assert(store.numRead == 3 && store.numWritten == 3)
    assert(run(batch(Seq(2), 8 to 99)) == Nil)
    assert(store.numRead == 4 && store.numWritten == 3)
  }
}
