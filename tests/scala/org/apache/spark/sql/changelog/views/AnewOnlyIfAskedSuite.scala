// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.File

import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.{AnalysisException, Row}

import org.apache.spark.sql.changelog.testing._

/** Views that can't be refreshed by what has changed, and would lose rows if they were computed anew. */
class AnewOnlyIfAskedSuite
    extends AnyFunSuite
    with ViewSession
    with ErrorChecks
    with BeforeAndAfterEach {
  private val feed = "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"

  override def beforeEach(): Unit = {
    run("CREATE TABLE orders (id INT, customer INT) USING parquet")
    run(s"CREATE TABLE customers (customer INT, country STRING) $feed")
    run("INSERT INTO orders VALUES (1, 1), (2, 2)")
    run("INSERT INTO customers VALUES (1, 'NO'), (2, 'IT')")
  }

  override def afterEach(): Unit = {
    Seq("second", "v").foreach(view => run(s"DROP MATERIALIZED VIEW IF EXISTS $view"))
    Seq("orders", "customers").foreach(table => run(s"DROP TABLE $table"))
  }

  private def create(query: String, name: String = "v"): Unit =
    run(s"CREATE MATERIALIZED VIEW $name USING delta AS $query")

  private def refused(
      obstacle: String,
      reason: String = "CHANGELOG_TABLE_COLUMNS_CHANGED"): Unit = {
    val thrown = intercept[AnalysisException](run("REFRESH MATERIALIZED VIEW v"))
    assert(thrown.getCause.getMessage.contains(reason))
    val error = checkError("CHANGELOG_VIEW_NOT_RECOMPUTABLE")(throw thrown)
    val parameters = error.getMessageParameters
    assert(parameters.get("obstacle").contains(obstacle), parameters)
    assert(parameters.get("reason").contains(reason), parameters)
    assert(
      error.getMessage.contains("REFRESH MATERIALIZED VIEW `spark_catalog`.`default`.`v` FULL"))
  }

  test(
    "rows of a stream that are cleaned up stay in a view, whatever becomes of a table beside it") {
    create("SELECT id, country FROM STREAM orders JOIN customers USING (customer)")
    val written = new File(warehouse, "orders").listFiles()
    run("INSERT INTO orders VALUES (3, 1)")
    written.foreach(file => assert(file.delete()))
    run("ALTER TABLE customers ADD COLUMNS (x INT FIRST)")
    run("UPDATE customers SET country = 'SE' WHERE customer = 1")
    refused("orders")
    assert(run("SELECT id FROM v ORDER BY id") == Seq(Row(1), Row(2)))
    assert(run("SHOW REFRESHES OF v").head.getAs[String]("state") == "FAILED")
    run("REFRESH MATERIALIZED VIEW v FULL")
    assert(run("SELECT * FROM v") == Seq(Row(3, "SE")))
  }

  test("rows that depend on when they came stay as they are") {
    Seq(
      "SELECT id, country FROM customers JOIN lookup(TABLE(orders)) USING (customer)",
      "SELECT /*+ ROW_TTL(customers, '3 days') */ country FROM customers").zipWithIndex.foreach {
      case (query, index) =>
        create(query)
        run(s"ALTER TABLE customers ADD COLUMNS (x$index INT FIRST)")
        run("UPDATE customers SET country = 'SE' WHERE customer = 1")
        refused("ROW_TTL", reason = "CHANGELOG_")
        run("REFRESH MATERIALIZED VIEW v FULL")
        run("DROP MATERIALIZED VIEW v")
    }
  }

  test("a changed query does without what a stream has forgotten, or is refused") {
    val counts = "SELECT customer, count(*) AS n"
    create(s"$counts FROM STREAM orders GROUP BY customer")
    val written = new File(warehouse, "orders").listFiles()
    run("INSERT INTO orders VALUES (3, 1)")
    run("REFRESH MATERIALIZED VIEW v")
    written.foreach(file => assert(file.delete()))
    for ((statement, query) <- Seq(
        "ALTER MATERIALIZED VIEW v" ->
          s"$counts, max(id) AS latest FROM STREAM orders GROUP BY customer",
        "CREATE OR REPLACE MATERIALIZED VIEW v USING delta" ->
          "SELECT count(*) AS n FROM STREAM orders")) {
      val error = checkError("CHANGELOG_VIEW_NOT_ALTERED")(run(s"$statement AS $query"))
      assert(error.getMessageParameters.get("obstacle").contains("orders"), error)
      assert(run("SELECT * FROM v ORDER BY customer") == Seq(Row(1, 2L), Row(2, 1L)))
    }
    run(s"ALTER MATERIALIZED VIEW v AS $counts FROM STREAM orders GROUP BY customer HAVING n > 1")
    assert(run("SELECT * FROM v") == Seq(Row(1, 2L)))
    run("INSERT INTO orders VALUES (4, 2)")
    run("REFRESH MATERIALIZED VIEW v")
    assert(run("SELECT * FROM v ORDER BY customer") == Seq(Row(1, 2L), Row(2, 2L)))
  }

  test("a view that read no stream is computed anew for a query that does") {
    create("SELECT country, count(*) AS n FROM customers GROUP BY country")
    run(
      "ALTER MATERIALIZED VIEW v AS SELECT customer, count(*) AS n FROM STREAM orders GROUP BY customer")
    assert(run("SELECT * FROM v ORDER BY customer") == Seq(Row(1, 1L), Row(2, 1L)))
    assert(run("SHOW REFRESHES OF v").head.getAs[String]("mode") == "full")
  }

  test("a query over views and tables is computed anew where it has to be") {
    create("SELECT customer, count(*) AS n FROM STREAM orders GROUP BY customer")
    val query = "SELECT country, n FROM v JOIN customers USING (customer)"
    create(query, "second")
    run("ALTER TABLE customers ADD COLUMNS (x INT FIRST)")
    run("UPDATE customers SET country = 'SE' WHERE customer = 1")
    run("REFRESH MATERIALIZED VIEW second")
    assert(RowMultiset.of(run("SELECT * FROM second")) == RowMultiset.of(run(query)))
    assert(run("SHOW REFRESHES OF second").head.getAs[String]("mode") == "full")
  }
}
