// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import java.io.File
import java.sql.Timestamp

import scala.collection.mutable

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions._
import org.apache.spark.sql.streaming.{GroupState, GroupStateTimeout, OutputMode}
import org.apache.spark.sql.{DataFrame, Row}

import org.apache.spark.sql.changelog.testing.{ChangelogSession, QuickFileSystem, Variant}

/** Spark's own stateful queries give the same in pages as in Spark's own store, restarts included. */
class StockQueriesInPagesSuite extends AnyFunSuite with ChangelogSession {
  import StockQueriesInPagesSuite._

  private lazy val session = spark
  import session.implicits._

  private def timed(rows: DataFrame): DataFrame = rows.withWatermark("at", "10 seconds")

  private val queries: Seq[(String, OutputMode, DataFrame => DataFrame)] = Seq(
    ("an aggregate", OutputMode.Update(), _.groupBy("k").agg(count("*"), max("n"))),
    ("an aggregate in full", OutputMode.Complete(), _.groupBy("k").agg(sum("n"))),
    (
      "closed windows",
      OutputMode.Append(),
      rows => timed(rows).groupBy(window($"at", "20 seconds"), $"k").count()),
    (
      "sessions",
      OutputMode.Append(),
      rows => timed(rows).groupBy(session_window($"at", "2 seconds"), $"k").count()),
    (
      "rows without duplicates",
      OutputMode.Append(),
      rows => timed(rows).dropDuplicates("k", "at")),
    (
      "a join of streams",
      OutputMode.Append(),
      rows => {
        val left = timed(rows).as("l")
        val right = timed(rows).as("r")
        left
          .join(
            right,
            expr("l.k = r.k AND l.n < r.n AND r.at BETWEEN l.at AND l.at + INTERVAL 30 SECONDS"),
            "left_outer")
          .select($"l.k", $"l.n", $"r.n")
      }),
    (
      "state of a user's own",
      OutputMode.Update(),
      _.as[Event]
        .groupByKey(_.k)
        .mapGroupsWithState(GroupStateTimeout.NoTimeout)(total)
        .toDF()))

  private def run(
      name: String,
      mode: OutputMode,
      query: DataFrame => DataFrame,
      provider: Map[String, String]): Seq[Seq[String]] = {
    provider.foreach { case (key, value) => spark.conf.set(key, value) }
    val checkpoint: File = QuickFileSystem.temporaryDirectory()
    val stream =
      MemoryStream[Event](2)(org.apache.spark.sql.Encoders.product[Event], spark.sqlContext)
    val batches = mutable.ArrayBuffer.empty[Seq[String]]
    try {
      for (step <- 0 until 6) {
        stream.addData((0 until 40).map { index =>
          val number = step * 40 + index
          Event(s"k${number % 7}", number, new Timestamp(1700000000000L + number * 700L))
        })
        val running = query(stream.toDF()).writeStream
          .outputMode(mode)
          .option("checkpointLocation", checkpoint.getPath)
          .foreachBatch { (rows: DataFrame, _: Long) =>
            val texts = rows.collect().toSeq.map((row: Row) => row.mkString(" ")).sorted
            if (texts.nonEmpty) batches += texts
            ()
          }
          .start()
        try running.processAllAvailable()
        finally running.stop()
      }
    } finally provider.keys.foreach(spark.conf.unset)
    assert(batches.nonEmpty, name)
    batches.toSeq
  }

  queries.foreach { case (name, mode, query) =>
    test(name) {
      assert(run(name, mode, query, Variant.Paged) == run(name, mode, query, Map.empty))
    }
  }
}

object StockQueriesInPagesSuite {
  final case class Event(k: String, n: Int, at: Timestamp)

  val total: (String, Iterator[Event], GroupState[Long]) => (String, Long) =
    (key, events, state) => {
      val sum = state.getOption.getOrElse(0L) + events.map(_.n.toLong).sum
      state.update(sum)
      (key, sum)
    }
}
