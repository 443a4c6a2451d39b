// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.File

import org.apache.spark.sql.changelog.testing.RowMultiset

/** Views that read each other are refreshed in order, and dropped only together. */
trait ViewPipelineTests extends ViewTest {
  private val counts = "SELECT n, count(*) AS customers FROM v GROUP BY n"

  override def afterEach(): Unit = {
    run("DROP MATERIALIZED VIEW IF EXISTS v CASCADE")
    Seq("a_third", "other").foreach(name => run(s"DROP MATERIALIZED VIEW IF EXISTS $name"))
    super.afterEach()
  }

  /** State of each view, in the order in which they were refreshed. */
  protected def refreshed(sql: String): Seq[String] =
    spark.sql(sql).selectExpr("concat(name, ' ', state)").collect().map(_.getString(0)).toSeq

  protected def make(): Unit = {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    create(totals)
    create(counts, name = "second")
    // its name comes before those that it reads
    create("WITH w AS (SELECT * FROM second) SELECT sum(customers) AS c FROM w", name = "a_third")
    create(s"SELECT count(*) AS n FROM $orders", name = "other")
  }

  private def checkAll(): Unit = {
    def same(query: String, name: String) = assert(
      RowMultiset.of(run(s"SELECT * FROM $name")) == RowMultiset.of(
        run(query.replace("STREAM ", ""))),
      name)
    same(totals, "v")
    same(counts, "second")
    same("SELECT sum(customers) AS c FROM second", "a_third")
    same(s"SELECT count(*) AS n FROM $orders", "other")
  }

  testEach("views are refreshed after those that they read") {
    make()
    deliver("-D 1 Ada 30", "+I 3 Ben 1", "+I 4 Eve 2")
    val all = Seq("v", "second", "a_third", "other")
    val states = refreshed("REFRESH MATERIALIZED VIEWS")
    assert(states.sorted == all.map(name => s"$name REFRESHED").sorted)
    assert(states.indexOf("v REFRESHED") < states.indexOf("second REFRESHED"))
    assert(states.indexOf("second REFRESHED") < states.indexOf("a_third REFRESHED"))
    checkAll()
    deliver("+I 5 Eve 2")
    assert(
      refreshed("REFRESH MATERIALIZED VIEW a_third WITH UPSTREAM") ==
        Seq("v REFRESHED", "second REFRESHED", "a_third REFRESHED"))
    assert(run("SELECT n FROM other").head.getLong(0) == 3)
    assert(run("SELECT sum(n) FROM v").head.getLong(0) == 4)
  }

  testEach("those of one database are refreshed alone") {
    run("CREATE DATABASE apart")
    try {
      create(totals)
      create(totals.replace("STREAM orders", "STREAM default.orders"), name = "apart.v")
      deliver("+I 1 Ada 30")
      assert(refreshed("REFRESH MATERIALIZED VIEWS IN apart") == Seq("v REFRESHED"))
      assert(run("SELECT n FROM apart.v").size == 1 && run("SELECT n FROM v").isEmpty)
      assert(run("SHOW MATERIALIZED VIEWS IN apart").size == 1)
    } finally {
      run("DROP MATERIALIZED VIEW IF EXISTS apart.v")
      run("DROP DATABASE apart")
    }
  }

  testEach("a view that others read stays, unless they go as well") {
    make()
    def refused(sql: String) =
      checkError("CHANGELOG_VIEW_IS_READ", "readers" -> "`spark_catalog`.`default`.`second`")(
        run(sql))
    refused("DROP MATERIALIZED VIEW v")
    val table = if (provider == "delta") "TABLE" else "VIEW"
    refused(s"DROP $table v")
    checkError("CHANGELOG_VIEW_CYCLE")(
      run(s"CREATE OR REPLACE MATERIALIZED VIEW v USING $provider AS SELECT * FROM a_third"))
    checkAll()
    run("DROP MATERIALIZED VIEW v CASCADE")
    assert(run("SHOW MATERIALIZED VIEWS").map(_.getString(1)) == Seq("other"))
  }

  testEach("the changes of a view depend on it, too") {
    create(totals)
    for (changes <- Seq("changes('v')", "changes(`view` => 'Default.V', from_version => 0)")) {
      create(s"SELECT customer, _change_type AS kind FROM $changes", name = "second")
      checkError("CHANGELOG_VIEW_IS_READ", "readers" -> "`spark_catalog`.`default`.`second`")(
        run("DROP MATERIALIZED VIEW v"))
      run("DROP MATERIALIZED VIEW second")
    }
  }

  testEach("a view over a view is explained as it is kept, in each format") {
    create(totals)
    val largest = "SELECT max(total) AS m FROM v"
    def explained(format: String) =
      run(
        s"EXPLAIN CHANGELOG $format CREATE MATERIALIZED VIEW second USING $provider AS $largest").head
        .getString(0)
    val text = explained("")
    assert(text.startsWith("`spark_catalog`.`default`.`v` is followed by its changes\n"), text)
    // of rows that also go all values are kept
    assert(text.contains("values of total"), text)
    assert(explained("FORMAT JSON").contains("values of total"))
    assert(explained("FORMAT HTML").contains("values of total"))
  }

  testEach("DROP TABLE and DROP VIEW leave nothing of a view") {
    for (sql <- Seq(
        "DROP TABLE v",
        "DROP TABLE IF EXISTS default.v",
        "DROP VIEW spark_catalog.default.v")) {
      create(totals)
      run(sql)
      assert(!spark.catalog.tableExists("v") && !new File(warehouse, "v").exists(), sql)
      assert(run("SHOW MATERIALIZED VIEWS").isEmpty)
    }
    // Spark's own are dropped as ever
    spark.sql("CREATE TABLE plain (a INT) USING json")
    spark.sql("CREATE VIEW over AS SELECT * FROM plain")
    run("DROP VIEW over")
    run("DROP TABLE plain")
    assert(!spark.catalog.tableExists("over") && !spark.catalog.tableExists("plain"))
  }
}

class DeltaViewPipelineSuite extends ViewPipelineTests {
  override protected def provider = "delta"

  test("a view over one whose log has lost what it has not read is computed anew") {
    create(totals, "TBLPROPERTIES (delta.checkpointInterval = 2)")
    val query = "SELECT sum(total) AS total FROM v"
    create(query, name = "second")
    (1 to 5).foreach { id =>
      deliver(s"+I $id Ada $id")
      run("REFRESH MATERIALIZED VIEW v")
    }
    val log = new File(warehouse, "v/_delta_log")
    val read = run("SHOW REFRESHES OF second").size
    val gone = log.listFiles().filter(_.getName.contains("00002."))
    assert(gone.nonEmpty && read == 1 && log.list().exists(_.endsWith("4.checkpoint.parquet")))
    gone.foreach(file => assert(file.delete()))
    checkError("CHANGELOG_TABLE_FILES_GONE")(run("REFRESH MATERIALIZED VIEW second INCREMENTAL"))
    run("REFRESH MATERIALIZED VIEW second")
    check(query, "second")
    assert(spark.sql("SHOW REFRESHES OF second").select("mode").head().getString(0) == "full")
  }
}

class SnapshotViewPipelineSuite extends ViewPipelineTests {

  test("a view over one of which another column has got another type is computed anew") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    create(totals)
    val query = "SELECT customer, n FROM v"
    create(query, name = "second")
    run(s"ALTER MATERIALIZED VIEW v AS ${totals.replace("sum(amount)", "avg(amount)")}")
    run("REFRESH MATERIALIZED VIEW second")
    check(query, "second")
    deliver("+I 3 Eve 1")
    run("REFRESH MATERIALIZED VIEWS")
    check(query, "second")
  }

  test("a view that fails leaves the others right") {
    make()
    spark.sql("ALTER TABLE orders ADD COLUMNS (note STRING)")
    val broken = s"SELECT id, note FROM $orders"
    create(broken, name = "fourth")
    try {
      val before =
        Seq("v", "second", "a_third").map(name => RowMultiset.of(run(s"SELECT * FROM $name")))
      run("DROP MATERIALIZED VIEW other")
      spark.sql("CREATE TABLE fine (a INT) USING json")
      create("SELECT count(*) AS n FROM STREAM fine", name = "other")
      spark.sql("INSERT INTO fine VALUES (1)")
      deliver4("? 5 Eve 2")
      val error = checkError(
        "CHANGELOG_VIEWS_NOT_REFRESHED",
        "skipped" -> "`spark_catalog`.`default`.`second`, `spark_catalog`.`default`.`a_third`")(
        run("REFRESH MATERIALIZED VIEWS IN default"))
      val failed = error.getMessageParameters.get("failed")
      assert(failed.contains("`v` (") && failed.contains("`fourth` ("), failed)
      assert(run("SELECT n FROM other").head.getLong(0) == 1)
      assert(Seq("v", "second", "a_third").map(name =>
        RowMultiset.of(run(s"SELECT * FROM $name"))) == before)
    } finally {
      run("DROP MATERIALIZED VIEW fourth")
      run("DROP MATERIALIZED VIEW other")
      spark.sql("DROP TABLE IF EXISTS fine")
    }
  }

  private def deliver4(change: String): Unit = {
    val Array(op, id, customer, amount) = change.split(' ')
    spark.sql(s"INSERT INTO orders VALUES ('$op', $id, '$customer', $amount, 'note')")
    ()
  }

  test("Spark's own views in between are looked through, common tables hide views") {
    create(totals)
    spark.sql("CREATE VIEW between AS SELECT * FROM V")
    create("SELECT count(*) AS n, max(total) AS most FROM between", name = "second")
    try {
      Seq("+I 1 Ada 30", "+I 2 Ben 20", "-D 1 Ada 30").foreach { change =>
        deliver(change)
        run("REFRESH MATERIALIZED VIEW v")
        run("REFRESH MATERIALIZED VIEW second INCREMENTAL STRICT")
        check("SELECT count(*) AS n, max(total) AS most FROM v", "second")
      }
      assert(run("SHOW REFRESHES OF second").head.getAs[Long]("rows_read") == 1)
      checkError("CHANGELOG_VIEW_IS_READ")(run("DROP MATERIALIZED VIEW v"))
      // a common table hides the view, but not in its own query
      val same = "WITH v AS (SELECT customer, total FROM v WHERE n = 1) SELECT * FROM v"
      run(s"CREATE OR REPLACE MATERIALIZED VIEW second AS $same")
      checkError("CHANGELOG_VIEW_IS_READ")(run("DROP MATERIALIZED VIEW v"))
      deliver("+I 3 Eve 7")
      run("REFRESH MATERIALIZED VIEW second WITH UPSTREAM")
      check(same, "second")
      run(
        s"CREATE OR REPLACE MATERIALIZED VIEW second AS WITH v AS (SELECT 1 AS a) SELECT * FROM v")
      run("DROP MATERIALIZED VIEW v")
    } finally spark.sql("DROP VIEW between")
  }

  test("views that read each other are named, and others are refreshed") {
    create(totals)
    spark.sql("CREATE VIEW between AS SELECT * FROM v")
    try {
      create("SELECT count(*) AS n FROM between", name = "second")
      create("SELECT max(n) AS n FROM second", name = "a_third")
      create("SELECT n + 1 AS n FROM a_third", name = "other")
      spark.sql("CREATE OR REPLACE VIEW between AS SELECT n FROM a_third")
      deliver("+I 1 Ada 30", "+I 2 Ben 20")
      val error = checkError(
        "CHANGELOG_VIEWS_NOT_REFRESHED",
        "skipped" -> "`spark_catalog`.`default`.`other`")(run("REFRESH MATERIALIZED VIEWS"))
      val failed = error.getMessageParameters.get("failed")
      for (name <- Seq("second", "a_third"))
        assert(failed.contains(s"`$name` ([CHANGELOG_VIEW_CYCLE]"), failed)
      check(totals)
      run("DROP MATERIALIZED VIEW second CASCADE")
      assert(run("SHOW MATERIALIZED VIEWS").map(_.getString(1)) == Seq("v"))
    } finally {
      spark.sql("DROP VIEW between")
      run("DROP MATERIALIZED VIEW IF EXISTS second CASCADE")
    }
  }

  test("a temporary view that came later is not what a view reads") {
    create(totals)
    create("SELECT count(*) AS n FROM v", name = "second")
    spark.sql("CREATE TEMPORARY VIEW v AS SELECT 1 AS x")
    try {
      checkError("CHANGELOG_VIEW_IS_READ")(run("DROP MATERIALIZED VIEW default.v"))
      deliver("+I 1 Ada 30", "+I 2 Ben 20")
      assert(
        refreshed("REFRESH MATERIALIZED VIEWS IN default") ==
          Seq("v REFRESHED", "second REFRESHED"))
      assert(run("SELECT n FROM second").head.getLong(0) == 2)
    } finally spark.catalog.dropTempView("v")
  }

  test("temporary views in between are looked through, those of data frames too") {
    create(totals)
    spark.sql("CREATE TEMPORARY VIEW rich AS SELECT * FROM v WHERE total > 10")
    spark.sql("CREATE TEMPORARY VIEW known AS SELECT * FROM rich WHERE customer IS NOT NULL")
    spark.table("v").filter("total > 10").createOrReplaceTempView("framed")
    spark.sql("SELECT * FROM v").createOrReplaceGlobalTempView("shared")
    try
      for (temporary <- Seq("known", "framed", "global_temp.shared")) {
        // its name comes before that of the view that it reads
        create(s"SELECT count(*) AS n FROM $temporary", name = "a_third")
        checkError("CHANGELOG_VIEW_IS_READ")(run("DROP MATERIALIZED VIEW v"))
        deliver("+I 1 Ada 30", "+I 2 Ben 20")
        assert(
          refreshed("REFRESH MATERIALIZED VIEWS IN default") ==
            Seq("v REFRESHED", "a_third REFRESHED"))
        assert(run("SELECT n FROM a_third").head.getLong(0) == 2)
        deliver("-D 1 Ada 30", "-D 2 Ben 20")
        run("REFRESH MATERIALIZED VIEWS")
        run("DROP MATERIALIZED VIEW a_third")
      }
    finally {
      Seq("rich", "known", "framed").foreach(name => spark.sql(s"DROP VIEW $name"))
      spark.sql("DROP VIEW global_temp.shared")
    }
  }
}
