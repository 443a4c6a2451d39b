// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.fanout

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Row

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

  test("what one of the sinks can't keep is refused at start") {
    val bag = rides.copy(name = "bag", key = Nil)
    val query = new KeptQuery(spark, bag, "SELECT * FROM bag", null)
    val options = jdbc("a", "bag") ++
      Map("sinks" -> "c,a", "c.format" -> "changelog-memory", "queryName" -> "bags")
    checkError("CHANGELOG_SINK_NEEDS_APPEND", "sink" -> "changelog-jdbc") {
      query.start("changelog-fanout", options)
    }
  }

  private def execute(sql: String): Unit = {
    val connection = java.sql.DriverManager.getConnection(url)
    try connection.createStatement().executeUpdate(sql)
    finally connection.close()
  }
}
