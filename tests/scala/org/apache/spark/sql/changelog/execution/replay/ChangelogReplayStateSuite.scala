// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.types._
import org.apache.spark.sql.{DataFrame, Encoders, Row}

import org.apache.spark.sql.changelog.testing._

/** What is in the state store, as Spark's own reader shows it. */
class ChangelogReplayStateSuite extends AnyFunSuite with ChangelogSession {
  private val schema = StructType.fromDDL("g STRING, n INT, unread STRING")

  /** The records in state after each batch, as `key -> count`. */
  private def state(sql: String, conf: Map[String, String])(
      batches: Seq[String]*): Seq[Set[String]] = {
    conf.foreach { case (key, value) => spark.conf.set(key, value) }
    val stream = MemoryStream[Row](2)(
      Encoders.row(StructType(StructField("op", StringType) +: schema)),
      spark.sqlContext)
    val checkpoint = QuickFileSystem.temporaryDirectory().getPath
    stream.toDF().createOrReplaceTempView("changes")
    val query = spark
      .sql(s"""SELECT * FROM to_changelog(TABLE(
           |WITH t AS (SELECT * FROM from_changelog(TABLE(changes), 'op')) $sql))""".stripMargin)
      .writeStream
      .option("checkpointLocation", checkpoint)
      .foreachBatch((batch: DataFrame, _: Long) => batch.collect().foreach(_ => ()))
      .start()
    try {
      batches.map { batch =>
        val changes = batch.map(TextChangelog.parse(_, schema))
        stream.addData(changes.map(change => Row.fromSeq(change.kind +: change.row.toSeq)))
        query.processAllAvailable()
        val records = spark.read.format("statestore").load(checkpoint)
        records
          .selectExpr("to_json(key, map('ignoreNullFields', 'false'))", "value.count")
          .collect()
          .map(record => s"${record.getString(0)} -> ${record.getLong(1)}")
          .toSet
      }
    } finally {
      query.stop()
      conf.keys.foreach(spark.conf.unset)
    }
  }

  for ((provider, conf) <- Seq(
      "in memory" -> Map.empty[String, String],
      "RocksDB" -> Variant.RocksDB)) {
    test(s"a group's rows are counted, in the columns that are read, $provider") {
      val sql = "SELECT g, median(n) FROM t GROUP BY g"
      assert(
        state(sql, conf)(
          Seq("+I a 1 x", "+I a 1 y", "+I a 2 z", "+I b NULL x"),
          Seq("-D a 1 x", "-D b NULL x"),
          Seq("-D a 9 x", "-D a 1 y", "-D a 2 z")) == Seq(
          Set(
            """{"g":"a","n":1} -> 2""",
            """{"g":"a","n":2} -> 1""",
            """{"g":"b","n":null} -> 1"""),
          Set("""{"g":"a","n":1} -> 1""", """{"g":"a","n":2} -> 1"""),
          Set("""{"g":"a","n":9} -> -1""")))
    }

    test(s"without groups it is remembered that a row was given, $provider") {
      assert(
        state("SELECT median(n) FROM t", conf)(Seq("+I a 1 x"), Seq("-D a 1 x")) == Seq(
          Set("""{"table":0,"n":1} -> 1""", """{"table":1,"n":null} -> 1"""),
          Set("""{"table":1,"n":null} -> 1""")))
    }

    test(s"a window keeps the columns of its rows, $provider") {
      assert(
        state("SELECT n, lag(g) OVER (ORDER BY n) AS before FROM t", conf)(
          Seq("+I a 1 x", "+I b 2 y", "+I b 2 z")) == Seq(
          Set("""{"table":0,"n":1,"g":"a"} -> 1""", """{"table":0,"n":2,"g":"b"} -> 2""")))
    }
  }
}
