// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain

import org.scalatest.concurrent.Eventually
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Seconds, Span}

import org.apache.spark.metrics.MetricsSystem
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.{AnalysisException, DataFrame, Row}

import org.apache.spark.sql.changelog.testing._

/** What queries that run do, as a table and as metrics. */
class ChangelogStatusSuite extends AnyFunSuite with ChangelogSession with Eventually {
  override implicit val patienceConfig: PatienceConfig = PatienceConfig(Span(20, Seconds))

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    ChangelogSession.Quick ++ Map(
      "spark.sql.streaming.metricsEnabled" -> "true",
      "spark.metrics.conf.*.sink.prometheusServlet.class" ->
        "org.apache.spark.metrics.sink.PrometheusServlet",
      "spark.metrics.conf.*.sink.prometheusServlet.path" -> "/metrics/prometheus"))

  private lazy val raw = new RawStream(spark, "raw", "op STRING, id INT, city STRING, fare INT")
  private val rides = "from_changelog(TABLE(raw), 'op', 'id')"
  private val counts = s"SELECT city, count(*) AS n FROM $rides GROUP BY city"

  private def started(name: String, sql: String)(check: => Unit): Unit = {
    raw // makes the table, in any test
    val query = spark
      .sql(s"SELECT * FROM to_changelog(TABLE($sql))")
      .writeStream
      .queryName(name)
      .foreachBatch { (batch: DataFrame, _: Long) =>
        batch.collect()
        ()
      }
      .start()
    try {
      query.processAllAvailable()
      eventually(assert(query.lastProgress != null && !query.status.isTriggerActive))
      check
    } finally query.stop()
  }

  private def status(columns: String): Seq[Row] =
    spark
      .sql(s"SELECT $columns FROM changelog_status() ORDER BY query, operator_id")
      .collect()
      .toSeq

  test("each operator of each query that runs is a row, as long as it runs") {
    raw
    assert(status("*").isEmpty)
    raw.add("+I 1 a 5", "+I 2 a 7", "+I 3 b 2", "-D 9 c 1")
    val freq = s"SELECT n, count(*) AS freq FROM ($counts) GROUP BY n"
    started("two", freq) {
      started("none", s"SELECT id FROM $rides WHERE fare > 5") {
        val columns =
          "query, batch_id, operator_id, node, rows_in, rows_out, inserts, deletes, churn, " +
            "unmatched_retractions, state_rows, state_bound"
        assert(
          status(columns) == Seq(
            Row("none", 0, null, null, null, null, null, null, null, null, null, null),
            Row(
              "two",
              0,
              0,
              "ChangelogAggregate [city] [count(1) AS n]",
              4,
              2,
              2,
              0,
              0.5,
              1,
              3,
              "unbounded"),
            Row(
              "two",
              0,
              1,
              "ChangelogAggregate [n] [count(1) AS freq]",
              2,
              2,
              2,
              0,
              1.0,
              0,
              2,
              "unbounded")))
        val Seq(_, row, _) =
          status("batch_seconds, task_seconds, state_bytes, compiled_classes, batch_time")
        assert(row.getDouble(0) > 0 && row.getDouble(1) >= 0 && row.getLong(2) > 0)
        assert(row.getLong(3) >= 0 && row.getTimestamp(4).getTime > 0)
      }
      assert(status("query, operator_id").map(_.getString(0)).distinct == Seq("two"))
    }
    assert(status("*").isEmpty)
  }

  test("each query that reads it has what is so then, through a view, too") {
    spark.sql("SELECT query FROM changelog_status()").createOrReplaceTempView("running")
    assert(spark.table("running").isEmpty)
    raw.reset()
    raw.add("+I 1 a 5")
    started("anew", counts)(assert(spark.table("running").collect().toSeq == Seq(Row("anew"))))
    assert(spark.sql("SELECT * FROM changelog_status() a JOIN changelog_status() b").count() == 0)
    intercept[AnalysisException](spark.sql("SELECT * FROM changelog_status(1)"))
  }

  /** What the Prometheus servlet answers. Its own classes are not for others to compile against. */
  private def servletText: String = {
    val system = spark.sparkContext.env.metricsSystem
    val field = classOf[MetricsSystem].getDeclaredField("prometheusServlet")
    field.setAccessible(true)
    val servlet = field.get(system).asInstanceOf[Option[AnyRef]].get
    servlet.getClass.getMethod("getMetricsSnapshot").invoke(servlet).toString
  }

  test("the Prometheus servlet has the numbers of each operator until the query ends") {
    raw.reset()
    raw.add("+I 1 a 5", "+I 2 a 7", "+I 3 b 2")
    started("totals", counts) {
      val lines = servletText.linesIterator.filter(_.contains("_spark_changelog_totals_")).toSeq
      def value(metric: String): Option[String] =
        lines.find(_.contains(s"_totals_${metric}_Value")).map(_.split(" ").last)
      Seq("rowsIn" -> "3", "inserts" -> "2", "stateRows" -> "2", "deletes" -> "0").foreach {
        case (metric, expected) =>
          val found = value(s"operator0_changelogAggregate_$metric")
          assert(found.contains(expected), s"$metric in ${lines.mkString("\n")}")
      }
      assert(value("compiledClasses").isDefined)
    }
    eventually(assert(!servletText.contains("spark_changelog_totals")))
  }
}
