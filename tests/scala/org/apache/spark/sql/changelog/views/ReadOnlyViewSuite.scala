// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.File
import java.nio.file.Files
import java.util.concurrent.{Callable, Executors}

import io.delta.tables.DeltaTable
import org.apache.commons.io.FileUtils
import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.SaveMode
import org.apache.spark.sql.functions.lit
import org.apache.spark.sql.streaming.Trigger

import org.apache.spark.sql.changelog.checkpoint.Fence
import org.apache.spark.sql.changelog.testing._

/** The table of a view is written by its query only, and a copy of it is a table like others. */
class ReadOnlyViewSuite
    extends AnyFunSuite
    with ViewSession
    with ErrorChecks
    with BeforeAndAfterEach {
  private val query = "SELECT id, sum(v) AS s FROM t GROUP BY id"
  private val other = "SELECT id, sum(v + 1) AS s FROM t GROUP BY id"

  override def beforeEach(): Unit = {
    run("CREATE TABLE t (id INT, v INT) USING delta")
    run("INSERT INTO t VALUES (1, 1), (2, 2)")
    run(s"CREATE MATERIALIZED VIEW v USING delta AS $query")
  }

  override def afterEach(): Unit = {
    Seq("copied", "t").foreach(table => run(s"DROP TABLE IF EXISTS $table"))
    run("DROP MATERIALIZED VIEW IF EXISTS v")
  }

  private def check(): Unit =
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(query)))

  private def refused(statement: String)(body: => Any): Unit = {
    checkError(
      "CHANGELOG_VIEW_READ_ONLY",
      "view" -> "`spark_catalog`.`default`.`v`",
      "statement" -> statement)(body)
    ()
  }

  test("statements and data frames that would write a view are refused") {
    refused("INSERT")(run("INSERT INTO v VALUES (9, 9)"))
    refused("INSERT")(run("INSERT OVERWRITE default.v VALUES (9, 9)"))
    refused("INSERT")(run("INSERT INTO spark_catalog.default.v SELECT * FROM v"))
    refused("DELETE")(run("DELETE FROM v AS gone WHERE id = 1"))
    refused("UPDATE")(run("UPDATE v SET s = 0"))
    refused("MERGE")(
      run("MERGE INTO v AS a USING t AS b ON a.id = b.id WHEN MATCHED THEN DELETE"))
    refused("TRUNCATE")(run("TRUNCATE TABLE v"))
    val rows = spark.table("v")
    refused("INSERT")(rows.writeTo("v").append())
    refused("INSERT")(rows.write.insertInto("v"))
    refused("INSERT")(rows.write.format("delta").mode(SaveMode.Append).saveAsTable("v"))
    run("INSERT INTO t VALUES (3, 3)")
    run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
    check()
  }

  test("replacing, restoring and streaming into a view are refused") {
    refused("CREATE OR REPLACE TABLE")(
      run("CREATE OR REPLACE TABLE v USING delta AS SELECT 1 AS id"))
    refused("CREATE OR REPLACE TABLE")(
      run("CREATE OR REPLACE TABLE default.v (id INT) USING delta"))
    refused("CREATE OR REPLACE TABLE")(
      spark.range(3).write.format("delta").mode(SaveMode.Overwrite).saveAsTable("v"))
    refused("CREATE OR REPLACE TABLE")(
      spark.range(3).writeTo("v").using("delta").createOrReplace())
    refused("RESTORE")(run("RESTORE TABLE v TO VERSION AS OF 0"))
    val checkpoint = Files.createTempDirectory("stream").toString
    refused("a streaming query")(
      spark.readStream
        .table("t")
        .writeStream
        .format("delta")
        .option("checkpointLocation", checkpoint)
        .toTable("v"))
    run("INSERT INTO t VALUES (3, 3)")
    run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
    check()
  }

  test("Delta's API can't write a view") {
    val table = DeltaTable.forName(spark, "v")
    refused("DELETE")(table.delete("id = 1"))
    refused("UPDATE")(table.update(Map("s" -> lit(0))))
    refused("RESTORE")(table.restoreToVersion(0))
    check()
  }

  test("the Spark view over the files of a view can't be replaced") {
    run("DROP MATERIALIZED VIEW v")
    run(s"CREATE MATERIALIZED VIEW v USING parquet AS $query")
    refused("CREATE OR REPLACE VIEW")(run("CREATE OR REPLACE VIEW v AS SELECT 1 AS id"))
    refused("ALTER VIEW")(run("ALTER VIEW v AS SELECT 1 AS id"))
    refused("INSERT")(run("INSERT INTO v VALUES (9, 9)"))
    run("INSERT INTO t VALUES (3, 3)")
    run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
    check()
  }

  test("the next refresh tells of rows that somebody else has written, and how that is mended") {
    run("INSERT INTO t VALUES (3, 3)")
    run("REFRESH MATERIALIZED VIEW v")
    run("OPTIMIZE v")
    val path = new ViewCatalog(spark).get(Seq("v")).definition.home.getParent
    run(s"DELETE FROM delta.`$path` WHERE id = 1")
    val written = run("DESCRIBE HISTORY v LIMIT 1").head
    assert(written.getAs[String]("operation") == "DELETE")
    run("OPTIMIZE v")
    (1 to 2).foreach { _ =>
      checkError(
        "CHANGELOG_VIEW_WRITTEN_BY_OTHERS",
        "written" -> s"version ${written.getAs[Long]("version")}, which DESCRIBE HISTORY `spark_catalog`.`default`.`v` shows")(
        run("REFRESH MATERIALIZED VIEW v"))
    }
    checkError("CHANGELOG_VIEW_WRITTEN_BY_OTHERS")(run("START MATERIALIZED VIEW v"))
    run("REFRESH MATERIALIZED VIEW v FULL")
    check()
    run("INSERT INTO t VALUES (4, 4)")
    run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
    check()
  }

  test("the next refresh tells of a MERGE by Delta's API") {
    DeltaTable
      .forName(spark, "v")
      .as("a")
      .merge(spark.table("t").as("b"), "a.id = b.id AND b.id = 1")
      .whenMatched()
      .delete()
      .execute()
    checkError("CHANGELOG_VIEW_WRITTEN_BY_OTHERS")(run("REFRESH MATERIALIZED VIEW v"))
    run("REFRESH MATERIALIZED VIEW v FULL")
    check()
  }

  test("a commit by others during a refresh is told by the next one") {
    run("REFRESH MATERIALIZED VIEW v INCREMENTAL")
    val path = new ViewCatalog(spark).get(Seq("v")).definition.home.getParent
    run("INSERT INTO t VALUES (3, 3)")
    Fence.onEffect = (effect, _) =>
      if (effect == "batch") {
        Fence.onEffect = (_, _) => ()
        run(s"DELETE FROM delta.`$path` WHERE id = 1")
      }
    try run("REFRESH MATERIALIZED VIEW v INCREMENTAL")
    finally Fence.onEffect = (_, _) => ()
    checkError("CHANGELOG_VIEW_WRITTEN_BY_OTHERS")(run("REFRESH MATERIALIZED VIEW v"))
    run("REFRESH MATERIALIZED VIEW v FULL")
    check()
  }

  Seq(
    "partitions" -> "REFRESH MATERIALIZED VIEW v",
    "rows" -> s"ALTER MATERIALIZED VIEW v AS $other")
    .foreach { case (replaced, statement) =>
      test(s"a commit by others while $replaced are replaced lets the statement fail") {
        run("DROP MATERIALIZED VIEW v")
        run(
          "CREATE OR REPLACE TABLE t USING delta PARTITIONED BY (id) AS SELECT id, id AS v FROM range(9)")
        run(s"CREATE MATERIALIZED VIEW v USING delta AS $query")
        run("UPDATE t SET v = 5 WHERE id = 3")
        val path = new ViewCatalog(spark).get(Seq("v")).definition.home.getParent
        val others = Executors.newSingleThreadExecutor()
        // the last commit of a statement is the one that shows rows
        val ids = Iterator.from(0)
        def commit(): Any =
          spark.newSession().sql(s"DELETE FROM delta.`$path` WHERE id = ${ids.next()}").collect()
        // outside the fences of the statement
        others.submit((() => ()): Runnable).get()
        Fence.onEffect = (effect, isChecked) =>
          if (effect == "commit" && !isChecked)
            others.submit((() => commit()): Callable[Any]).get()
        try checkError("CHANGELOG_VIEW_WRITTEN_BY_OTHERS")(run(statement))
        finally {
          Fence.onEffect = (_, _) => ()
          others.shutdown()
        }
        checkError("CHANGELOG_VIEW_WRITTEN_BY_OTHERS")(run("REFRESH MATERIALIZED VIEW v"))
        run("REFRESH MATERIALIZED VIEW v FULL")
        check()
      }
    }

  private def createOfFiles(): String = {
    run("DROP MATERIALIZED VIEW v")
    run(s"CREATE MATERIALIZED VIEW v USING parquet AS $query")
    run("INSERT INTO t VALUES (3, 3)")
    run("REFRESH MATERIALIZED VIEW v")
    val catalog = spark.sessionState.catalog
    val text =
      catalog.getTableMetadata(new ViewCatalog(spark).identify(Seq("v"))).viewText.get
    text.split('`').last
  }

  private def foreign = spark.sql("SELECT 9 AS id, 9L AS s")

  private def stream(path: String): Unit = {
    val checkpoint = Files.createTempDirectory("stream").toString
    spark.readStream
      .table("t")
      .selectExpr("id", "10L * v AS s")
      .writeStream
      .format("parquet")
      .option("checkpointLocation", checkpoint)
      .trigger(Trigger.AvailableNow())
      .start(path)
      .awaitTermination()
  }

  for ((what, write) <- Seq[(String, String => Unit)](
      "INSERT" -> ((path: String) => foreign.write.mode(SaveMode.Append).parquet(path)),
      "INSERT OVERWRITE" ->
        ((path: String) => foreign.write.mode(SaveMode.Overwrite).parquet(path)),
      "a streaming query" -> stream _))
    test(s"the next refresh tells of the files of a view that somebody has changed: $what") {
      val rows = createOfFiles()
      write(rows)
      spark.catalog.refreshByPath(rows)
      // Readers see what is there.
      assert(RowMultiset.of(run("SELECT * FROM v")) != RowMultiset.of(run(query)))
      run("ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('changelog.lag' = '5 minutes')")
      (1 to 2).foreach { _ =>
        checkError("CHANGELOG_VIEW_WRITTEN_BY_OTHERS", "written" -> s"files into $rows")(
          run("REFRESH MATERIALIZED VIEW v"))
      }
      run("REFRESH MATERIALIZED VIEW v FULL")
      check()
      run("INSERT INTO t VALUES (4, 4)")
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
      check()
    }

  test("files beside the rows of a view are nobody's business") {
    createOfFiles()
    val folder = new ViewCatalog(spark).get(Seq("v")).definition.home.toString
    foreign.write.mode(SaveMode.Append).parquet(folder)
    stream(folder)
    check()
    run("INSERT INTO t VALUES (4, 4)")
    run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
    check()
    run("DROP MATERIALIZED VIEW v")
    FileUtils.deleteDirectory(new File(warehouse, "v"))
  }

  test("a text of the Spark view by others is told by SHOW, and the next refresh restores it") {
    createOfFiles()
    val catalog = spark.sessionState.catalog
    val name = new ViewCatalog(spark).identify(Seq("v"))
    // As by another process
    val clean = spark.newSession()
    def failure =
      Option(run("SHOW MATERIALIZED VIEWS").head.getAs[String]("failure")).getOrElse("")
    for (text <- Seq("SELECT id, 7L AS s FROM t", "SELECT 'x' AS other")) {
      run("INSERT INTO t VALUES (4, 4)")
      RefuseViewWrites.allow(clean) {
        clean.sql(s"ALTER VIEW v AS $text").collect()
        ()
      }
      val table = catalog.getTableMetadata(name)
      assert(table.viewText.contains(text))
      assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(text)))
      assert(failure.contains("CHANGELOG_VIEW_TEXT_CHANGED"))
      run("ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('a' = '1')")
      assert(spark.table("v").columns.toSeq == Seq("id", "s"))
      catalog.alterTable(
        catalog
          .getTableMetadata(name)
          .copy(viewText = table.viewText, schema = table.schema))
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
      check()
      assert(failure.isEmpty)
      val told = run("SHOW REFRESHES OF v").map(_.mkString(" "))
      assert(told.count(_.contains("CHANGELOG_VIEW_TEXT_CHANGED")) >= 2)
    }
  }

  test("a view that others replace by a Spark view is no view any more, and its name is free") {
    createOfFiles()
    val clean = spark.newSession()
    RefuseViewWrites.allow(clean) {
      clean.sql("CREATE OR REPLACE VIEW v AS SELECT 7 AS a").collect()
      ()
    }
    checkError("CHANGELOG_VIEW_NOT_FOUND")(run("REFRESH MATERIALIZED VIEW v"))
    assert(run("SELECT * FROM v").map(_.getInt(0)) == Seq(7))
    assert(run("SHOW MATERIALIZED VIEWS").isEmpty)
    run("DROP VIEW v")
    run(s"CREATE MATERIALIZED VIEW v USING parquet AS $query")
    check()
    FileUtils.deleteDirectory(new File(warehouse, "v"))
  }

  test("copies of a view's table are no views") {
    run("CREATE TABLE copied SHALLOW CLONE v")
    assert(run("SHOW MATERIALIZED VIEWS").map(_.getAs[String]("name")) == Seq("v"))
    checkError("CHANGELOG_VIEW_NOT_FOUND")(run("REFRESH MATERIALIZED VIEW copied"))
    run("INSERT INTO copied VALUES (9, 9)")
    run("DROP TABLE copied")
    run("CREATE TABLE copied LIKE v")
    run("INSERT INTO copied VALUES (9, 9)")
    run("INSERT INTO t VALUES (3, 3)")
    run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
    check()
    run("ALTER MATERIALIZED VIEW v RENAME TO renamed")
    try {
      run("INSERT INTO t VALUES (4, 4)")
      run("REFRESH MATERIALIZED VIEW renamed INCREMENTAL STRICT")
    } finally run("DROP MATERIALIZED VIEW renamed")
  }

  test(
    "a column name that Delta can't merge is refused when the view is made, and others are kept") {
    run("DROP MATERIALIZED VIEW v")
    checkError("CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED")(
      run("CREATE MATERIALIZED VIEW v USING delta AS SELECT id, v AS `a``b` FROM t"))
    val odd = "SELECT id, v AS `select`, v + 1 AS `a.b` FROM t"
    run(s"CREATE MATERIALIZED VIEW v USING delta AS $odd")
    run("INSERT INTO t VALUES (3, 3)")
    run("DELETE FROM t WHERE id = 1")
    run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(odd)))
    assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
  }
}
