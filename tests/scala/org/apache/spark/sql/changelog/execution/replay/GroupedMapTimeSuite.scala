// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import java.sql.Timestamp

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.functions.col

import org.apache.spark.sql.changelog.testing._

/** Functions over groups by event time, whose rows go when the watermark has passed them. */
class GroupedMapTimeSuite extends AnyFunSuite with TimedChanges {

  private def running(mode: String)(body: (RawStream, RunningChanges) => Unit): Unit = {
    val session = spark
    import session.implicits._
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")
    val stream = new RawStream(spark, "changes", "ts TIMESTAMP, g STRING, n INT")
    stream.toDF
      .withWatermark("ts", "10 minutes")
      .groupBy(col("ts"), col("g"))
      .as[(Timestamp, String), (Timestamp, String, Int)]
      .flatMapSortedGroups(col("n"))((key, rows) =>
        Iterator((key._1.toInstant.toString.slice(14, 16), key._2, rows.map(_._3).mkString(","))))
      .toDF("m", "g", "ns")
      .createOrReplaceTempView("mapped")
    val changes = spark.sql(s"SELECT * FROM to_changelog(TABLE(mapped), '$mode')")
    val query = new RunningChanges(changes, QuickFileSystem.temporaryDirectory())
    try body(stream, query)
    finally {
      query.stop()
      spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
    }
  }

  test("a group is given to the function once, when it is closed") {
    running("append") { (stream, query) =>
      stream.add(
        s"${minute(1)} a 3",
        s"${minute(2)} b 2",
        s"${minute(1)} a 1",
        s"${minute(5)} a 7")
      assert(query.next() == Nil)
      stream.add(s"${minute(2)} b 1", s"${minute(1)} a 2", s"${minute(1)} b 9")
      assert(query.next() == Nil)
      stream.add(s"${minute(14)} c 1")
      assert(query.next() == Seq("01 a 1,2,3 insert", "01 b 9 insert", "02 b 1,2 insert"))
      assert(stateRowsNow(query) == 2)
      stream.add(s"${minute(2)} b 5")
      assert(query.next() == Nil)
      assert(droppedRows(query) == 1)
    }
  }

  test("a group is given to the function at every change, until it is closed") {
    running("retract") { (stream, query) =>
      stream.add(s"${minute(1)} a 3")
      assert(query.next() == Seq("01 a 3 insert"))
      stream.add(s"${minute(1)} a 1", s"${minute(14)} c 1")
      assert(query.next() == Seq("01 a 1,3 insert", "01 a 3 delete", "14 c 1 insert"))
      stream.add(s"${minute(14)} c 2")
      assert(query.next() == Seq("14 c 1 delete", "14 c 1,2 insert"))
      assert(stateRowsNow(query) == 2)
      stream.add(s"${minute(1)} a 5")
      assert(query.next() == Nil)
      assert(droppedRows(query) == 1)
    }
  }
}
