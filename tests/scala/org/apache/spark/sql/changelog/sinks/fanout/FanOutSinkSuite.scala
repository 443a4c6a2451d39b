// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.fanout

import java.sql.Timestamp

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Row
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.testing._

/** Several sinks of one query hold the same rows after every batch. */
class FanOutSinkSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  private val rides = Feed("rides", "id INT, city STRING, fare INT", key = Seq("id"))
  private val url = "jdbc:h2:mem:fanout;DB_CLOSE_DELAY=-1"
  private val byCity = "SELECT city, sum(fare) AS total FROM rides GROUP BY city"

  private def table(name: String) =
    spark.read.format("jdbc").option("url", url).option("dbtable", name).load()

  private def jdbc(sink: String, table: String) = Map(
    s"$sink.format" -> "changelog-jdbc",
    s"$sink.url" -> url,
    s"$sink.dbtable" -> table,
    s"$sink.createTable" -> "true")

  test("all sinks have every batch, also after one of them has failed") {
    val query = new KeptQuery(spark, rides, byCity, table("one"))
    val options = jdbc("a", "one") ++ jdbc("b", "two") ++ Map(
      "sinks" -> "a, c, b",
      "c.format" -> "changelog-memory",
      "queryName" -> "third")
    def compareAll(): Unit = {
      val rows = RowMultiset.of(table("one").collect())
      assert(RowMultiset.of(table("two").collect()) == rows)
      assert(RowMultiset.of(spark.table("third").collect()) == rows)
    }
    query.start("changelog-fanout", options)
    query.check("+I 1 Oslo 5", "+I 2 Rome 7")
    compareAll()
    execute("""ALTER TABLE two ADD CONSTRAINT small CHECK ("total" < 10)""")
    query.add("-U 1 Oslo 5", "+U 1 Rome 5")
    intercept[Exception](query.processAll())
    assert(table("one").collect().toSeq == Seq(Row("Rome", 12L)))
    execute("ALTER TABLE two DROP CONSTRAINT small")
    query.start("changelog-fanout", options)
    query.check()
    compareAll()
    query.stop()
  }

  test("rows that come in an order, by columns that the optimizer has given other ids") {
    // a file source makes new columns for each batch
    val files = FeedFiles.Json.open(spark, StructType.fromDDL("at TIMESTAMP, city STRING"), 1)
    files.stream(spark).withWatermark("at", "1 second").createOrReplaceTempView("raw_calls")
    spark
      .sql("SELECT * FROM from_changelog(TABLE(raw_calls))")
      .createOrReplaceTempView("calls")
    val query = spark
      .sql("""SELECT * FROM to_changelog(TABLE(SELECT city, session_window.end AS e, count(*) AS n
             |FROM calls GROUP BY city, session_window(at, '20 seconds')), mode => 'append')""".stripMargin)
      .writeStream
      .format("changelog-fanout")
      .options(jdbc("a", "over") ++ jdbc("b", "also_over") + ("sinks" -> "a, b"))
      .option("checkpointLocation", QuickFileSystem.temporaryDirectory().getPath)
      .start()
    Seq("00:00:00" -> "Oslo", "00:00:05" -> "Oslo", "00:09:00" -> "Rome", "00:09:30" -> "Rome")
      .foreach { case (time, city) =>
        files.add(Seq(Row(Timestamp.valueOf(s"2024-01-01 $time"), city)))
        query.processAllAvailable()
      }
    query.stop()
    val over = Row("Oslo", Timestamp.valueOf("2024-01-01 00:00:25"), 2L)
    Seq("over", "also_over").foreach(name => assert(table(name).collect().toSeq == Seq(over)))
  }

  test("what one of the sinks can't keep is refused at start") {
    val bag = rides.copy(name = "bag", key = Nil)
    val query = new KeptQuery(spark, bag, "SELECT * FROM bag", null)
    val options = jdbc("a", "bag") ++
      Map("sinks" -> "c,a", "c.format" -> "changelog-memory", "queryName" -> "bags")
    checkError("CHANGELOG_SINK_NEEDS_APPEND", "sink" -> "changelog-jdbc") {
      query.start("changelog-fanout", options)
    }
  }

  test("a format that none of the sinks has is refused with those that they have") {
    val formats =
      "changelog-function, changelog-jdbc, changelog-kafka, changelog-memory, changelog-table"
    Seq("changelog-jbdc", "noop").foreach { wrong =>
      val query = new KeptQuery(spark, rides, byCity, null)
      val options = jdbc("a", "wrong") ++ Map("sinks" -> "a,b", "b.format" -> wrong)
      checkError(
        "CHANGELOG_SINK_OPTION_INVALID",
        "option" -> "b.format",
        "value" -> wrong,
        "expected" -> s"one of $formats is expected") {
        query.start("changelog-fanout", options)
      }
    }
  }

  private def execute(sql: String): Unit = {
    val connection = java.sql.DriverManager.getConnection(url)
    try connection.createStatement().executeUpdate(sql)
    finally connection.close()
  }
}
