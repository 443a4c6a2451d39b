// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.File
import java.nio.file.Files

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Row

import org.apache.spark.sql.changelog.testing._

/** Tables and views in a REST catalog of Iceberg. */
class IcebergRestSuite extends AnyFunSuite with IcebergSession with ErrorChecks {
  private val home = new File(warehouse, "rest")
  private lazy val server = new IcebergRestServer(home)
  private val view = "rest.db.v"
  private val totals =
    "SELECT customer, count(*) AS n, sum(amount) AS total FROM rest.db.orders GROUP BY customer"

  override protected def settings: Map[String, String] = Map(
    "spark.sql.catalog.rest" -> "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.rest.type" -> "rest",
    "spark.sql.catalog.rest.uri" -> server.url)

  override protected def afterAll(): Unit =
    try super.afterAll()
    finally server.stop()

  private def check(query: String): Unit = {
    assert(RowMultiset.of(run(s"SELECT * FROM $view")) == RowMultiset.of(run(query)))
    assert(run(s"VERIFY MATERIALIZED VIEW $view").isEmpty)
  }

  test("a table of a REST catalog is followed by a view there, which is altered and dropped") {
    Files.createDirectories(new File(home, "db").toPath)
    run("CREATE TABLE rest.db.orders (id INT, customer STRING, amount INT) USING iceberg")
    run("INSERT INTO rest.db.orders VALUES (1, 'Ada', 5), (2, 'Ben', 3), (3, NULL, 1)")
    run(s"CREATE MATERIALIZED VIEW $view USING iceberg AS $totals")
    check(totals)
    for (statement <- Seq(
        "UPDATE rest.db.orders SET amount = 6 WHERE id = 1",
        "DELETE FROM rest.db.orders WHERE id = 2",
        "INSERT INTO rest.db.orders VALUES (4, 'Eve', 2), (5, 'Eve', 2)")) {
      run(statement)
      run(s"REFRESH MATERIALIZED VIEW $view INCREMENTAL STRICT")
      check(totals)
    }
    assert(run("SHOW MATERIALIZED VIEWS IN rest.db").map(_.getString(1)) == Seq("v"))
    val more = totals.replace("count(*) AS n", "max(amount) AS most, count(*) AS n")
    run(s"ALTER MATERIALIZED VIEW $view AS $more")
    check(more)
    run("DELETE FROM rest.db.orders WHERE id = 5")
    run(s"REFRESH MATERIALIZED VIEW $view INCREMENTAL STRICT")
    check(more)
    run(s"DROP MATERIALIZED VIEW $view")
    assert(run("SHOW TABLES IN rest.db").map(_.getString(1)) == Seq("orders"))
    assert(new File(home, "db").list().toSeq == Seq("orders"))
    assert(run("SELECT count(*) FROM rest.db.orders") == Seq(Row(3L)))
  }

  test("a refresh tells that a view's table is registered in a second catalog, too") {
    Files.createDirectories(new File(home, "db").toPath)
    val query = totals.replace("rest.db", "ice.db")
    run("CREATE TABLE ice.db.orders (id INT, customer STRING, amount INT) USING iceberg")
    run("INSERT INTO ice.db.orders VALUES (1, 'Ada', 5), (2, 'Ben', 3)")
    run(s"CREATE MATERIALIZED VIEW ice.db.v USING iceberg AS $query")
    val file = run("SELECT max_by(file, timestamp) FROM ice.db.v.metadata_log_entries")
    run(s"CALL rest.system.register_table('db.v', '${file.head.getString(0)}')")
    def change(id: Int, view: String): Unit = {
      run(s"INSERT INTO ice.db.orders VALUES ($id, 'Eve', 1)")
      run(s"REFRESH MATERIALIZED VIEW $view")
      assert(RowMultiset.of(run(s"SELECT * FROM $view")) == RowMultiset.of(run(query)))
    }
    // As after a move to another catalog, until the view is refreshed in both.
    change(3, "rest.db.v")
    checkError("CHANGELOG_VIEW_WRITTEN_BY_OTHERS", "view" -> "`ice`.`db`.`v`")(
      change(4, "ice.db.v"))
    run("REFRESH MATERIALIZED VIEW ice.db.v FULL")
    change(5, "ice.db.v")
    checkError("CHANGELOG_VIEW_WRITTEN_BY_OTHERS", "view" -> "`rest`.`db`.`v`")(
      change(6, "rest.db.v"))
    change(7, "ice.db.v")
    run("DROP MATERIALIZED VIEW ice.db.v")
  }
}
