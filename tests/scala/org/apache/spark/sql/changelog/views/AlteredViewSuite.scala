// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.File
import java.nio.file.Files

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.classic.Dataset
import org.apache.spark.sql.delta.DeltaLog

import org.apache.spark.sql.changelog.parser.ChangelogParser

/** Views get other names and properties, and go on; their columns are called as they are told. */
trait AlteredViewTests extends ViewTest {
  override def afterEach(): Unit = {
    Seq("w", "v").foreach(name => run(s"DROP MATERIALIZED VIEW IF EXISTS $name"))
    super.afterEach()
  }

  private def rows(view: String): Seq[Row] = run(s"SELECT * FROM $view")

  private def comments(table: String): Map[String, String] =
    spark.table(table).schema.fields.flatMap(f => f.getComment().map(f.name -> _)).toMap

  testEach("a view goes on under another name, and its old one is free") {
    deliver("+I 1 Ada 30")
    create(totals)
    run("ALTER MATERIALIZED VIEW v RENAME TO w")
    assert(run("SHOW MATERIALIZED VIEWS").map(_.getString(1)) == Seq("w"))
    deliver("-D 1 Ada 30", "+I 2 Ben 20")
    run("REFRESH MATERIALIZED VIEW w")
    assert(rows("w") == Seq(Row("Ben", 1L, 20L)))
    assert(run("SHOW REFRESHES OF w").map(_.getString(2)) == Seq("incremental", "incremental"))
    create(s"SELECT id, amount FROM $orders")
    deliver("+I 3 Ben 1")
    run("REFRESH MATERIALIZED VIEW v FULL")
    run("REFRESH MATERIALIZED VIEW w FULL")
    assert(rows("w") == Seq(Row("Ben", 2L, 21L)) && rows("v").size == 2)
    checkError("CHANGELOG_VIEW_EXISTS")(run("ALTER MATERIALIZED VIEW v RENAME TO w"))
    create("SELECT * FROM w", name = "second")
    checkError("CHANGELOG_VIEW_NAME_IS_READ")(run("ALTER MATERIALIZED VIEW w RENAME TO x"))
    Seq("second", "v", "w").foreach(name => run(s"DROP MATERIALIZED VIEW $name"))
    assert(Seq("v", "v-2", "w").forall(name => !new File(warehouse, name).exists()))
  }

  testEach("properties are set and unset") {
    create(totals, "TBLPROPERTIES ('changelog.INTERVAL' = '5 seconds', 'team' = 'me')")
    def definition = new ViewCatalog(spark).get(Seq("v")).definition
    run(
      "ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('changelog.interval' = '7 seconds', " +
        "'CHANGELOG.refreshpolicy' = 'full')")
    assert(definition.policy == RefreshPolicy.Full)
    assert(
      definition.properties == Map(
        "changelog.interval" -> "7 seconds",
        "changelog.refreshPolicy" -> "full",
        "team" -> "me"))
    checkError("CHANGELOG_VIEW_PROPERTY_INVALID")(
      run("ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('changelog.interval' = 'soon')"))
    checkError("CHANGELOG_VIEW_PROPERTY_INVALID", "property" -> "changelog.emit")(
      run("ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('changelog.emit' = 'on close')"))
    run("ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('changelog.emit' = 'changes')")
    run("ALTER MATERIALIZED VIEW v UNSET TBLPROPERTIES ('changelog.emit')")
    checkError("CHANGELOG_VIEW_PROPERTY_UNKNOWN")(
      run("ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('changelog.often' = 'soon')"))
    checkError("CHANGELOG_VIEW_SECRET")(
      run("ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('password' = 'x')"))
    run("ALTER MATERIALIZED VIEW v UNSET TBLPROPERTIES ('changelog.refreshPolicy', 'team')")
    assert(definition.properties == Map("changelog.interval" -> "7 seconds"))
    checkError("CHANGELOG_VIEW_PROPERTY_UNKNOWN")(
      run("ALTER MATERIALIZED VIEW v UNSET TBLPROPERTIES ('team')"))
    run("ALTER MATERIALIZED VIEW v UNSET TBLPROPERTIES IF EXISTS ('team')")
    deliver("+I 1 Ada 30")
    run("REFRESH MATERIALIZED VIEW v")
    check(totals)
  }

  testEach(
    "a property that means nothing is told, and a table that can't be read is passed over") {
    create(totals)
    create(s"SELECT count(*) AS n FROM $orders", name = "second")
    run("CREATE TABLE broken (a INT) USING delta")
    val kind = if (provider == "delta") "TABLE" else "VIEW"
    run(s"ALTER $kind v SET TBLPROPERTIES ('changelog.lag' = 'soon')")
    val log = new File(warehouse, "broken/_delta_log/00000000000000000000.json").toPath
    Files.write(log, "no log".getBytes)
    DeltaLog.clearCache()
    try {
      val shown = spark
        .sql("SHOW MATERIALIZED VIEWS")
        .select("name", "status", "lag_seconds", "failure")
        .collect()
      assert(shown.map(_.getString(0)).toSeq == Seq("second", "v"))
      val Row("v", "FAILED", null, failure: String) = shown(1)
      assert(failure.contains("CHANGELOG_VIEW_PROPERTY_INVALID"), failure)
      assert(shown(0).getString(1) == "IDLE")
      assert(facts("DESCRIBE MATERIALIZED VIEW v")("Failure").contains("'soon'"))
      run("ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('changelog.lag' = '5 minutes')")
      assert(run("REFRESH MATERIALIZED VIEWS").size == 2)
      assert(run("SHOW MATERIALIZED VIEWS").map(_.getString(3)) == Seq("IDLE", "IDLE"))
    } finally {
      spark.sessionState.catalog
        .dropTable(TableIdentifier("broken"), ignoreIfNotExists = true, purge = true)
    }
  }

  testEach("columns have the names and comments of the statement") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    val columns = "(`client` STRING COMMENT 'who', n BIGINT, total BIGINT COMMENT 'owed')"
    run(s"CREATE MATERIALIZED VIEW v $columns USING $provider AS $totals -- by customer")
    val query = totals.replace("SELECT customer", "SELECT customer AS `client`")
    val expected = Map("client" -> "who", "total" -> "owed")
    check(query)
    assert(comments("v") == expected)
    deliver("-D 2 Ben 20")
    run("REFRESH MATERIALIZED VIEW v")
    run("REFRESH MATERIALIZED VIEW v FULL")
    check(query)
    assert(comments("v") == expected)
    val described = facts("DESCRIBE MATERIALIZED VIEW v")
    assert(described("total") == "BIGINT COMMENT 'owed'")
    assert(described("Plan") == "incremental, [I,UB,UA,D], key (client)")
    run(
      s"CREATE OR REPLACE MATERIALIZED VIEW v (a STRING COMMENT 'x', n BIGINT, t BIGINT) USING $provider AS $totals")
    check(totals.replace("SELECT customer", "SELECT customer AS a").replace("AS total", "AS t"))
    assert(comments("v") == Map("a" -> "x"))
  }
}

class SnapshotAlteredViewSuite extends AlteredViewTests

class DeltaAlteredViewSuite extends AlteredViewTests {
  override protected def provider = "delta"

  private def detail(column: String): Seq[String] =
    spark.sql("DESCRIBE DETAIL v").select(column).head().getSeq[String](0).toSeq

  test("delta: a view is partitioned as its statement says, and stays so") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    def make(how: String, replace: String) =
      run(s"CREATE $replace MATERIALIZED VIEW v USING delta $how AS $totals")
    make("PARTITIONED BY (customer)", "")
    assert(detail("partitionColumns") == Seq("customer"))
    deliver("+I 3 Eve 30")
    run("REFRESH MATERIALIZED VIEW v FULL")
    check(totals)
    assert(detail("partitionColumns") == Seq("customer"))
    make("PARTITIONED BY (n)", "OR REPLACE")
    assert(detail("partitionColumns") == Seq("n"))
    check(totals)
  }

  test("delta: a view is clustered as its statement says, and stays so") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    // Delta's parser takes it for partitioning, if it comes first
    val parser = new ChangelogParser(spark.sessionState.sqlParser)
    def make(how: String, replace: String = "OR REPLACE") =
      Dataset.ofRows(
        spark,
        parser.parsePlan(s"CREATE $replace MATERIALIZED VIEW v USING delta $how AS $totals"))
    make("COMMENT 'CLUSTER BY (total)' CLUSTER BY (`customer`, n)", replace = "")
    assert(detail("clusteringColumns") == Seq("customer", "n"))
    deliver("+I 3 Eve 30")
    run("REFRESH MATERIALIZED VIEW v FULL")
    assert(detail("clusteringColumns") == Seq("customer", "n"))
    run("ALTER TABLE v CLUSTER BY (total)")
    run(s"ALTER MATERIALIZED VIEW v AS SELECT total, customer FROM ($totals)")
    assert(detail("clusteringColumns") == Seq("total"))
    make("CLUSTER BY (n)")
    check(totals)
    assert(detail("clusteringColumns") == Seq("n") && detail("partitionColumns").isEmpty)
    deliver("-D 3 Eve 30")
    run("REFRESH MATERIALIZED VIEW v")
    check(totals)
    make("COMMENT 'CLUSTER BY (total)'")
    assert(detail("clusteringColumns").isEmpty)
  }
}
