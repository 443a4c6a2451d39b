// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.File
import java.nio.file.Files

import org.apache.spark.sql.delta.DeltaLog

import org.apache.spark.sql.changelog.testing.RowMultiset

/** A view whose record can't be read is no free name, is named, and disturbs no other view. */
class UnreadableViewSuite extends EffectTest {
  override protected def provider: String = "delta"

  private val query = "SELECT customer, sum(amount) AS total FROM plain GROUP BY customer"

  override def afterEach(): Unit = {
    run("DROP MATERIALIZED VIEW IF EXISTS w")
    super.afterEach()
  }

  private def moveLog(from: String, to: String): Unit = {
    val table = new File(warehouse, "v")
    Files.move(new File(table, from).toPath, new File(table, to).toPath)
    DeltaLog.clearCache()
  }

  private def changeKind(from: String, to: String): Unit = {
    val catalog = spark.sessionState.catalog
    val table = catalog.getTableMetadata(new ViewCatalog(spark).identify(Seq("v")))
    assert(table.properties(ViewDefinition.Kind) == from)
    catalog.alterTable(table.copy(properties = table.properties + (ViewDefinition.Kind -> to)))
  }

  private def checkUnreadable(format: String)(spoil: => Unit)(mend: => Unit): Unit = {
    run(s"CREATE MATERIALIZED VIEW v USING $format AS $query")
    run(s"CREATE MATERIALIZED VIEW w USING $format AS $query")
    run("UPDATE plain SET amount = 5")
    spoil
    try {
      val shown = run("SHOW MATERIALIZED VIEWS").map(row => row.getString(1) -> row.getString(3))
      assert(shown == Seq("v" -> "UNREADABLE", "w" -> "IDLE"))
      val statements = Seq(
        "REFRESH MATERIALIZED VIEW v",
        s"CREATE MATERIALIZED VIEW v USING $format AS $query",
        s"CREATE OR REPLACE MATERIALIZED VIEW v USING $format AS $query",
        "ALTER MATERIALIZED VIEW w SWAP WITH v",
        "ALTER MATERIALIZED VIEW v SWAP WITH w",
        "DROP MATERIALIZED VIEW IF EXISTS v",
        if (format == "delta") "DROP TABLE v" else "DROP VIEW v")
      statements.foreach { statement =>
        withClue(s"$statement: ")(checkError("CHANGELOG_VIEW_UNREADABLE")(run(statement)))
      }
      val told = checkError("CHANGELOG_VIEWS_NOT_REFRESHED", "skipped" -> "none")(
        run("REFRESH MATERIALIZED VIEWS")).getMessageParameters.get("failed")
      assert(told.startsWith("`spark_catalog`.`default`.`v` ([CHANGELOG_VIEW_UNREADABLE]"), told)
      assert(RowMultiset.of(run("SELECT * FROM w")) == RowMultiset.of(run(query)))
    } finally mend
    run("REFRESH MATERIALIZED VIEW v")
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(query)))
  }

  test("a view of files that a later version has written") {
    val (now, later) = (ViewKind.MaterializedView.toString, "VIEW OF TOMORROW")
    checkUnreadable("parquet")(changeKind(now, later))(changeKind(later, now))
  }

  test("a view without its log") {
    checkUnreadable("delta")(moveLog("_delta_log", "log"))(moveLog("log", "_delta_log"))
  }
}
