// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.{AnalysisException, Row}

import org.apache.spark.sql.changelog.testing.{
  ChangelogSession, Pipelines, QuickFileSystem, RowMultiset
}

/** Pipelines of Spark's own keep what statements in them make, which are written like those for views. */
class StockPipelineSuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    ChangelogSession.Quick +
      ("spark.sql.warehouse.dir" -> QuickFileSystem.temporaryDirectory().getPath))

  private val statements =
    """CREATE STREAMING TABLE arrived AS SELECT k, n FROM STREAM numbers;
      |CREATE MATERIALIZED VIEW sums AS SELECT k, sum(n) AS total FROM arrived GROUP BY k;
      |CREATE MATERIALIZED VIEW three AS SELECT * FROM range(3);""".stripMargin

  private def run(sql: String): Seq[Row] = spark.sql(sql).collect().toSeq

  test("a pipeline's statements are Spark's") {
    run("CREATE TABLE numbers (k INT, n INT) USING parquet")
    run("INSERT INTO numbers VALUES (1, 10), (1, 5), (2, 1)")
    val storage = QuickFileSystem.temporaryDirectory().toURI.toString
    for (rows <- Seq("(1, 15), (2, 1)", "(1, 15), (2, 8)")) {
      val graph = Pipelines.graph(spark, statements)
      assert(graph.tables.map(_.identifier.table).toSet == Set("arrived", "sums", "three"))
      Pipelines.run(spark, graph, storage)
      val expected = run(s"SELECT k, BIGINT(n) FROM VALUES $rows AS (k, n)")
      assert(RowMultiset.of(run("SELECT * FROM sums")) == RowMultiset.of(expected))
      run("INSERT INTO numbers VALUES (2, 7)")
    }
    assert(run("SELECT * FROM three").size == 3)
    assert(run("SHOW MATERIALIZED VIEWS").isEmpty)
  }

  test("a clause that pipelines refuse is refused by them") {
    assume(!ChangelogSession.isSpark43, "Pipelines of Spark 4.3 take CLUSTER BY")
    val clustered = "CREATE MATERIALIZED VIEW v CLUSTER BY (id) AS SELECT * FROM range(3)"
    val error = intercept[AnalysisException](Pipelines.graph(spark, clustered))
    assert(error.getCondition == "PIPELINE_SQL_GRAPH_ELEMENT_REGISTRATION_ERROR")
    assert(error.message.contains("cluster_by(id)"))
  }
}
