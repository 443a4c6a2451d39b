// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.util.concurrent.atomic.AtomicBoolean

import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.LongOffset
import org.apache.spark.sql.execution.streaming.{Offset, Source}
import org.apache.spark.sql.sources.StreamSourceProvider
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{DataFrame, SQLContext}

import org.apache.spark.sql.changelog.testing._

/** A refresh that succeeds has read all that its sources had when it began. */
class CaughtUpViewSuite
    extends AnyFunSuite
    with ViewSession
    with ErrorChecks
    with BeforeAndAfterEach {
  override def beforeEach(): Unit = {
    run("CREATE TABLE t (id INT, k INT, at TIMESTAMP) USING parquet")
    run("INSERT INTO t VALUES (1, 1, TIMESTAMP'2026-01-01'), (2, 2, TIMESTAMP'2026-01-02')")
  }

  override def afterEach(): Unit = {
    Seq("second", "v").foreach(view => run(s"DROP MATERIALIZED VIEW IF EXISTS $view"))
    Seq("t", "u").foreach(table => run(s"DROP TABLE IF EXISTS $table"))
  }

  private def check(view: String, query: String): Unit =
    assert(RowMultiset.of(run(s"SELECT * FROM $view")) == RowMultiset.of(run(query)))

  test("a view with a condition on the current time reads the rows of a view in files") {
    val query = "SELECT id, k FROM v WHERE at > now() - INTERVAL 10000 DAYS"
    run("CREATE MATERIALIZED VIEW v USING parquet AS SELECT id, k, at FROM t")
    run(s"CREATE MATERIALIZED VIEW second USING delta AS $query")
    run("INSERT INTO t VALUES (3, 3, TIMESTAMP'2026-01-03')")
    Seq("v", "second").foreach(view => run(s"REFRESH MATERIALIZED VIEW $view"))
    check("second", query)
  }

  test("a changed query that keeps a view in files as a source reads its new sources, too") {
    run("CREATE TABLE u (id INT, k INT) USING parquet")
    run("INSERT INTO u VALUES (7, 7), (8, 8)")
    run("CREATE MATERIALIZED VIEW v USING parquet AS SELECT id, k FROM t")
    val counts = "SELECT k, count(*) AS n FROM v GROUP BY k"
    run(s"CREATE MATERIALIZED VIEW second USING delta AS $counts")
    val changed = s"$counts UNION ALL SELECT k, id FROM u"
    run(s"ALTER MATERIALIZED VIEW second AS $changed")
    check("second", changed)
  }

  test("a source of which Spark runs one batch is read up to its end, after one that was begun") {
    spark.readStream
      .format(classOf[NumbersProvider].getName)
      .load()
      .createOrReplaceTempView("numbers")
    val query = "SELECT id FROM numbers WHERE timestamp_seconds(id) < now()"
    NumbersProvider.last = 1
    run(s"CREATE MATERIALIZED VIEW v USING parquet AS $query")
    NumbersProvider.last = 3
    run("REFRESH MATERIALIZED VIEW v")
    assert(run("SELECT id FROM v ORDER BY id") == Seq(0, 1, 2).map(id => Row(id.toLong)))
    assert(run("SHOW REFRESHES OF v").head.getAs[Long]("rows_read") == 2)
  }

  test("a refresh whose query somebody stops fails, and the next one goes on") {
    CaughtUpViewSuite.session = spark
    spark.udf.register(
      "stopped",
      (id: Int) => {
        CaughtUpViewSuite.stopIfAsked()
        id
      })
    run("CREATE MATERIALIZED VIEW v USING parquet AS SELECT stopped(id) AS id FROM t")
    run("INSERT INTO t VALUES (3, 3, NULL)")
    CaughtUpViewSuite.stops.set(true)
    checkError("CHANGELOG_VIEW_REFRESH_STOPPED")(run("REFRESH MATERIALIZED VIEW v"))
    assert(run("SELECT * FROM v").size == 2)
    run("REFRESH MATERIALIZED VIEW v")
    check("v", "SELECT id FROM t")
  }
}

private object CaughtUpViewSuite {
  val stops = new AtomicBoolean(false)
  @volatile var session: SparkSession = _

  /** Stops all queries, once. */
  def stopIfAsked(): Unit = if (stops.getAndSet(false)) {
    val queries = session.sharedState.activeStreamingQueries.values()
    val stopping = new Thread(() => queries.forEach(_.stop()))
    stopping.start()
    stopping.join()
  }

  /** The numbers below [[NumbersProvider.last]], of a source that can't tell what there is at a moment. */
  class Numbers(context: SQLContext) extends Source {
    override def schema: StructType = NumbersProvider.Schema

    override def getOffset: Option[Offset] = Some(LongOffset(NumbersProvider.last))

    override def getBatch(start: Option[Offset], end: Offset): DataFrame = {
      val session = context.sparkSession.asInstanceOf[SparkSession]
      val rows = session.range(start.fold(0L)(_.json.toLong), end.json.toLong).toDF()
      session.internalCreateDataFrame(rows.queryExecution.toRdd, schema, isStreaming = true)
    }

    override def stop(): Unit = ()
  }
}

class NumbersProvider extends StreamSourceProvider {
  override def sourceSchema(
      context: SQLContext,
      schema: Option[StructType],
      name: String,
      parameters: Map[String, String]): (String, StructType) = "numbers" -> NumbersProvider.Schema

  override def createSource(
      context: SQLContext,
      metadataPath: String,
      schema: Option[StructType],
      name: String,
      parameters: Map[String, String]): Source = new CaughtUpViewSuite.Numbers(context)
}

object NumbersProvider {
  val Schema: StructType = StructType.fromDDL("id BIGINT")
  @volatile var last = 0L
}
