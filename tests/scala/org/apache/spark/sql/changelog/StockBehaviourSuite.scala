// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import scala.util.control.NonFatal

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.{
  MicroBatchExecution, StreamingQueryWrapper
}

import org.apache.spark.sql.changelog.testing._

/** Everything without our functions is as in a session without the extension: plans and errors. */
class StockBehaviourSuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession = {
    val plain = ChangelogSession.start(extension = false)
    prepare(plain)
    plain
  }
  private lazy val extended: SparkSession = {
    val session = ChangelogSession.start()
    assert(session.sparkContext eq spark.sparkContext)
    prepare(session)
    session
  }

  private def prepare(session: SparkSession): Unit = {
    session
      .sql(
        "SELECT 1 AS k, 'a' AS v, 2L AS n, TIMESTAMP '2020-01-01 00:00:00' AS at FROM range(3)")
      .createOrReplaceTempView("t")
    session.sql("SELECT id AS k, 'x' AS w FROM range(3)").createOrReplaceTempView("u")
    val s = new RawStream(session, "s", "k BIGINT, v STRING, n BIGINT, at TIMESTAMP")
    s.toDF.withWatermark("at", "1 minute").createOrReplaceTempView("s")
    s.add("1 a 1 2020-01-01T00:00:00", "2 b 2 2020-01-01T00:00:00")
    new RawStream(session, "r", "k BIGINT, w STRING").add("1 x")
  }

  /** What tells two runs of one query apart, though nothing differs. */
  private def normalize(text: String): String = text
    .replaceAll("#\\d+L?", "#")
    .replaceAll("plan_id=\\d+", "plan_id=")
    .replaceAll("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "uuid")
    .replaceAll("(checkpoint|query)[-_]?\\d+", "$1")
    .replaceAll("@[0-9a-f]{5,}", "@")
    .replaceAll("spark-changelog\\d+", "directory")
    .replaceAll("(CTERelationDef|CTERelationRef|UnionLoop|UnionLoopRef) \\d+", "$1")
    .replaceAll("(epoch|queryId|batchId)[:=] ?\\w+", "$1")
    .replaceAll("\\$Lambda[^,\\s)]*", "lambda")
    .replaceAll("_(we|w|gen_alias|groupingexpression|pre)_?\\d+", "_$1")
    .replaceAll("(rand|uuid)\\([^)]*\\)", "$1")

  private def outcome(session: SparkSession)(plans: SparkSession => Seq[Any]): Seq[String] = {
    SparkSession.setActiveSession(session)
    try plans(session).map(plan => normalize(plan.toString))
    catch {
      case NonFatal(error) =>
        val thrown = error match {
          case error: SparkThrowable => error.getCondition
          case _ => ""
        }
        Seq(error.getClass.getName, thrown, normalize(String.valueOf(error.getMessage)))
    }
  }

  private def batchPlans(sql: String)(session: SparkSession): Seq[Any] = {
    val parsed = session.sessionState.sqlParser.parsePlan(sql)
    val execution = session.sessionState.executePlan(parsed)
    execution.assertSupported()
    val rows =
      if (sql.startsWith("EXPLAIN")) session.sql(sql).collect().toSeq else Nil
    Seq(parsed, execution.analyzed, execution.optimizedPlan, execution.executedPlan) ++ rows
  }

  private def streamingPlans(sql: String, mode: String)(session: SparkSession): Seq[Any] = {
    val query = session
      .sql(sql)
      .writeStream
      .format("noop")
      .outputMode(mode)
      .option("checkpointLocation", QuickFileSystem.temporaryDirectory().getPath)
      .start()
    try {
      query.processAllAvailable()
      val execution = query
        .asInstanceOf[StreamingQueryWrapper]
        .streamingQuery
        .asInstanceOf[MicroBatchExecution]
        .lastExecution
      Seq(execution.analyzed, execution.optimizedPlan, execution.executedPlan)
    } finally query.stop()
  }

  private def compare(what: String, isError: Boolean)(plans: SparkSession => Seq[Any]): Unit = {
    val stock = outcome(spark)(plans)
    val ours = outcome(extended)(plans)
    val differing = stock.zipAll(ours, "", "").flatMap { case (left, right) =>
      left.linesIterator.toSeq
        .zipAll(right.linesIterator.toSeq, "", "")
        .filter(Function.tupled(_ != _))
    }
    assert(differing.isEmpty, s"in $what")
    val hasFailed = stock.head.matches("[a-zA-Z.]+(Exception|Error)")
    assert(hasFailed == isError, s"for $what: ${stock.mkString("\n")}")
  }

  test("batch queries and commands keep their plans") {
    StockQueries.batch.foreach(sql =>
      compare(sql, isError = sql.startsWith("INSERT"))(batchPlans(sql)))
  }

  test("wrong queries keep their errors") {
    StockQueries.wrong.foreach(sql => compare(sql, isError = true)(batchPlans(sql)))
  }

  test("streaming queries keep their plans") {
    StockQueries.streaming.foreach { case (sql, mode) =>
      compare(s"$mode $sql", isError = false)(streamingPlans(sql, mode))
    }
  }

  test("unsupported streaming queries keep their errors") {
    StockQueries.wrongStreaming.foreach { case (sql, mode) =>
      compare(s"$mode $sql", isError = true)(streamingPlans(sql, mode))
    }
  }

  test("a plain session knows nothing of us") {
    val sql = "SELECT * FROM to_changelog(TABLE(t))"
    assert(outcome(spark)(batchPlans(sql))(1) == "UNRESOLVABLE_TABLE_VALUED_FUNCTION")
    assert(outcome(extended)(batchPlans(sql)).head.contains("to_changelog"))
  }
}
