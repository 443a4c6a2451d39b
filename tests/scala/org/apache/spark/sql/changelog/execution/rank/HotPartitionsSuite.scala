// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper
import org.apache.spark.sql.types.IntegerType

import org.apache.spark.sql.changelog.UpdateKind
import org.apache.spark.sql.changelog.plans.{RankFunction, RankStrategy, Ranking}
import org.apache.spark.sql.changelog.testing._

/** Of a partition that many rows are of, tasks leave behind what can't be shown. */
class HotPartitionsSuite extends AnyFunSuite with ChangelogSession {
  private val columns =
    Seq("g", "v", "w").map(AttributeReference(_, IntegerType)())

  private def layout(end: Int): RankLayout = RankLayout(
    Ranking(
      RankFunction.RowNumber,
      Seq(columns.head),
      Seq(SortOrder(columns(1), Descending)),
      start = 1,
      end.toLong,
      number = None,
      RankStrategy.AppendFast,
      replaceBy = Nil,
      bySlot = false,
      pairBy = None,
      UpdateKind.BeforeAndAfter,
      inputKind = None),
    columns)

  private type Values = (Int, Int, Int)

  private def values(row: InternalRow): Values = (row.getInt(0), row.getInt(1), row.getInt(2))

  /** What a task sends of rows, and how many it says that it does not. */
  private def sent(end: Int, rows: Seq[Values]): (Seq[Values], Long) = {
    val numLeftBehind = new SQLMetric("sum", 0)
    val toUnsafe = UnsafeProjection.create(columns, columns)
    val input = rows.iterator.map { case (g, v, w) => toUnsafe(InternalRow(g, v, w)) }
    val sent =
      new HotPartitionsLimit(layout(end), columns, new KeySample(1), input, numLeftBehind)
    (sent.map(values).toSeq, numLeftBehind.value)
  }

  private def first(end: Int, rows: Seq[Values]): Map[Int, Seq[Values]] =
    rows.groupMap(_._1)(identity).map { case (group, all) =>
      group -> all.sortBy { case (_, v, w) => (-v, w) }.take(end)
    }

  test("the first rows of each partition come through, whichever are hot, and however rows tie") {
    val random = new Random(7)
    for (round <- 1 to 40) withClue(s"round $round") {
      val (end, numGroups, numValues) =
        (1 + random.nextInt(20), 1 + random.nextInt(50), 1 + random.nextInt(300))
      val share = random.nextDouble()
      val rows = Seq.fill(20000) {
        val group = if (random.nextDouble() < share) 0 else random.nextInt(numGroups)
        (group, random.nextInt(numValues), random.nextInt(3))
      }
      val (come, numLeftBehind) = sent(end, rows)
      assert(first(end, come) == first(end, rows))
      assert(come.size + numLeftBehind == rows.size)
      assert(numLeftBehind > (share - 0.3) * rows.size)
    }
  }

  test("a partition without many rows is sent whole, and so are few rows") {
    val many = (1 to 20000).map(number => (number % 20, number, 0))
    assert(sent(1, many) == ((many, 0)))
    val few = (1 to 3000).map(number => (0, number, 0))
    assert(sent(1, few) == ((few, 0)))
  }

  private val raw = new RawStream(spark, "raw", "g STRING, v INT, w INT")

  private val CameBy = Set("insert", "update_postimage")

  /** How many rows the last of two batches has left behind, if it can; the result is that of batch Spark. */
  private def leftBehind(sql: String)(add: => Unit): Option[Long] = {
    raw.reset()
    val changes = spark.sql(s"SELECT * FROM to_changelog(TABLE($sql))")
    val query = new RunningChanges(changes, QuickFileSystem.temporaryDirectory())
    try {
      add
      query.next()
      add
      query.next()
      val counts = query.all
        .map(_.split(" ").toSeq)
        .groupMapReduce(_.init)(row => if (CameBy.contains(row.last)) 1 else -1)(_ + _)
      val rows = counts.toSeq.flatMap { case (row, count) => Seq.fill(count)(row.mkString(" ")) }
      val batch = spark.sql(sql.replace("raw", "all_rows")).collect().map(_.mkString(" "))
      assert(rows.sorted == batch.toSeq.sorted)
      query.query
        .asInstanceOf[StreamingQueryWrapper]
        .streamingQuery
        .lastExecution
        .executedPlan
        .collectFirst { case limit: LimitHotPartitionsExec =>
          limit.metrics("numRowsLeftBehind").value
        }
    } finally query.stop()
  }

  private def best(function: String, bound: String): String =
    s"SELECT g, v FROM (SELECT *, $function() OVER (PARTITION BY g ORDER BY v) AS r FROM raw) WHERE $bound"

  test("a query over rows that come sends few of a hot partition, and shows the same") {
    var rows = Seq.empty[String]
    def add(): Unit = {
      val some = (1 to 8000).map { number =>
        s"${if (number % 3 == 0) s"g${number % 700}" else "a"} ${rows.size + number} 1"
      }
      rows ++= some
      raw.add(some: _*)
      import spark.implicits._
      rows
        .map(_.split(" "))
        .map(words => (words(0), words(1).toInt, words(2).toInt))
        .toDF("g", "v", "w")
        .createOrReplaceTempView("all_rows")
    }
    assert(leftBehind(best("row_number", "r <= 3"))(add()).exists(_ > 1000))
    rows = Nil
    assert(leftBehind(best("row_number", "r BETWEEN 2 AND 3"))(add()).exists(_ > 1000))
    rows = Nil
    // of rows that tie as many as there are may be shown
    assert(leftBehind(best("rank", "r <= 3"))(add()).isEmpty)
  }
}
