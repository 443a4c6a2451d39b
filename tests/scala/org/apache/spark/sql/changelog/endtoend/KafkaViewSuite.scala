// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.endtoend

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._
import org.apache.spark.sql.changelog.views.{RunningViews, ViewCatalog}

/** A view over a topic of a real broker: filled, followed without a gap, and verified. */
class KafkaViewSuite extends AnyFunSuite with KafkaTopics {
  private val query =
    "SELECT city, count(*) AS n, sum(fare) AS total FROM from_upsert_kafka(" +
      "TABLE(rides_topic), 'id INT, city STRING, fare INT', 'id') GROUP BY city"

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    Map("spark.sql.warehouse.dir" -> QuickFileSystem.temporaryDirectory().getPath))

  private def row(city: String, fare: Int): String = s"""{"city":"$city","fare":$fare}"""

  private def run(sql: String): Seq[String] =
    spark.sql(sql).collect().map(TextChangelog.format).toSeq.sorted

  /** The query in batch Spark over all there is now. */
  private def now: Seq[String] = {
    val session = spark.newSession()
    batch("viewed").createOrReplaceGlobalTempView("rides_now")
    session
      .sql(query.replace("rides_topic", "global_temp.rides_now"))
      .collect()
      .map(TextChangelog.format)
      .toSeq
      .sorted
  }

  test("a view over a topic is verified at the offsets it has read") {
    createTopic("viewed", partitions = 2)
    send("viewed", Seq("1" -> row("Oslo", 5), "2" -> row("Rome", 7), "1" -> row("Oslo", 6)))
    stream("viewed").createOrReplaceTempView("rides_topic")
    spark.sql(s"CREATE MATERIALIZED VIEW v USING parquet AS $query")
    assert(run("SELECT * FROM v") == Seq("Oslo 1 6", "Rome 1 7"))
    // what the view has not read yet is no difference
    send("viewed", Seq("3" -> row("Oslo", 1), "4" -> row("Bern", 1)))
    send("viewed", Seq("2" -> null))
    assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
    run("REFRESH MATERIALIZED VIEW v")
    assert(run("SELECT * FROM v") == now && now == Seq("Bern 1 1", "Oslo 2 7"))
    assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
    // what comes while it is filled, and then while it runs, is neither lost nor read twice
    val sender =
      new Thread(() => (5 to 8).foreach(id => send("viewed", Seq(s"$id" -> row("Nice", id)))))
    sender.start()
    run("REFRESH MATERIALIZED VIEW v FULL")
    run("START MATERIALIZED VIEW v")
    sender.join()
    try {
      val view = new ViewCatalog(spark).get(Seq("v"))
      RunningViews.active(view).get.processAllAvailable()
      assert(run("SELECT * FROM v") == now && now.contains("Nice 4 26"))
      assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
    } finally run("STOP MATERIALIZED VIEW v")
    // wrong rows are found, at the same offsets
    spark
      .sql("SELECT 'Oslo' AS city, 3L AS n, 7L AS total")
      .write
      .mode("overwrite")
      .parquet(shown)
    assert(
      run("VERIFY MATERIALIZED VIEW v") == Seq(
        "missing Bern 1 1",
        "missing Nice 4 26",
        "missing Oslo 2 7",
        "unexpected Oslo 3 7"))
    run("DROP MATERIALIZED VIEW v")
  }

  /** The folder with the rows of the view. */
  private def shown: String = {
    val text = spark.sessionState.catalog
      .getTableMetadata(new ViewCatalog(spark).get(Seq("v")).name)
      .viewText
      .get
    "`([^`]*batch-[\\d-]+)`".r.findFirstMatchIn(text).get.group(1)
  }
}
