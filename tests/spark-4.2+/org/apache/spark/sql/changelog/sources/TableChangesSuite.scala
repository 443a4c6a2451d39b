// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources

import java.util.concurrent.atomic.AtomicReference

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.testing._

/** Spark's catalog of tests, whose tables of the first session all sessions see. */
class SharedChangelogCatalog extends InMemoryChangelogCatalog {
  private def first: InMemoryChangelogCatalog = SharedChangelogCatalog.first(this)

  override def loadTable(table: Identifier): Table =
    if (first eq this) super.loadTable(table) else first.loadTable(table)

  override def loadChangelog(
      table: Identifier,
      context: ChangelogContext,
      options: CaseInsensitiveStringMap): Changelog =
    if (first eq this) super.loadChangelog(table, context, options)
    else first.loadChangelog(table, context, options)
}

object SharedChangelogCatalog {
  private val shared = new AtomicReference[InMemoryChangelogCatalog]()

  private def first(catalog: InMemoryChangelogCatalog): InMemoryChangelogCatalog =
    shared.updateAndGet(known => if (known == null) catalog else known)
}

/** Spark's own changes of tables, as `FROM t CHANGES` and `readStream.changes` give them. */
class TableChangesSuite extends AnyFunSuite with ChangelogSession {
  private val view = "SELECT city, count(*) AS n, sum(fare) AS total FROM rides GROUP BY city"

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf = Map(
    "spark.sql.catalog.changing" -> classOf[SharedChangelogCatalog].getName,
    "spark.sql.warehouse.dir" -> QuickFileSystem.temporaryDirectory().getPath))

  private val columns = "* EXCEPT (_commit_version, _commit_timestamp)"

  private def catalog: InMemoryChangelogCatalog =
    spark.sessionState.catalogManager.catalog("changing").asInstanceOf[InMemoryChangelogCatalog]

  private def commit(table: String, version: Long, changes: String*): Unit =
    catalog.addChangeRows(
      Identifier.of(Array("ns"), table),
      changes.map { change =>
        val Array(kind, id, city, fare) = change.split(' ')
        InternalRow(
          id.toInt,
          UTF8String.fromString(city),
          fare.toInt,
          UTF8String.fromString(kind),
          version,
          version * 1000000)
      })

  private def create(table: String, properties: ChangelogProperties): Unit = {
    spark.sql("CREATE NAMESPACE IF NOT EXISTS changing.ns")
    spark.sql(s"CREATE TABLE changing.ns.$table(id INT NOT NULL, city STRING, fare INT) USING x")
    catalog.setChangelogProperties(Identifier.of(Array("ns"), table), properties)
  }

  private val rounds = Seq(
    Seq("insert 1 Oslo 5", "insert 2 Rome 7", "insert 3 Oslo 1") -> Seq("Oslo 2 6", "Rome 1 7"),
    // rewritten files hold rows that did not change, and updates as deletes and inserts
    Seq("delete 1 Oslo 5", "insert 1 Oslo 5", "delete 2 Rome 7", "insert 2 Oslo 8") ->
      Seq("Oslo 3 14"),
    Seq("delete 3 Oslo 1", "insert 9 Bern 2", "delete 9 Bern 2") -> Seq("Oslo 2 13"),
    Seq("update_preimage 1 Oslo 5", "update_postimage 1 Bern 6", "delete 2 Oslo 8") ->
      Seq("Bern 1 6"))

  test("a stream of a table's changes, with carried over rows, is read as the table") {
    create(
      "streamed",
      ChangelogProperties(containsIntermediateChanges = true, rowIdNames = Seq("id")))
    check("streamed") {
      spark.readStream
        .option("deduplicationMode", "none")
        .changes("changing.ns.streamed")
        .selectExpr("id", "city", "fare", "_change_type")
        .createOrReplaceTempView("rides_changes")
    }
  }

  test("so it is in SQL") {
    create("sql_streamed", ChangelogProperties())
    check("sql_streamed") {
      spark.sql(
        s"CREATE OR REPLACE TEMPORARY VIEW rides_changes AS SELECT $columns " +
          "FROM STREAM changing.ns.sql_streamed CHANGES WITH (deduplicationMode = 'none')")
    }
  }

  /** This catalog's streams hold what was there when they were read. */
  private def check(table: String)(read: => Unit): Unit = {
    val kept = new KeptTable(spark, view)
    rounds.zipWithIndex.foreach { case ((rows, expected), version) =>
      commit(table, version, rows: _*)
      read
      spark
        .sql("SELECT * FROM from_changelog(TABLE(rides_changes), '_change_type', key => 'id')")
        .createOrReplaceTempView("rides")
      kept.catchUp()
      assert(kept.table == expected, s"after version $version")
    }
  }

  test("a view is kept by a table's changes, and verified") {
    create("viewed", ChangelogProperties())
    val changes =
      s"SELECT $columns FROM STREAM changing.ns.viewed CHANGES WITH (deduplicationMode = 'none')"
    val query =
      view.replace("rides", s"from_changelog(TABLE($changes), '_change_type', key => 'id')")
    def rows(sql: String): Seq[String] =
      spark.sql(sql).collect().map(TextChangelog.format).sorted.toSeq
    rounds.zipWithIndex.foreach { case ((changed, expected), version) =>
      commit("viewed", version, changed: _*)
      if (version == 0) spark.sql(s"CREATE MATERIALIZED VIEW kept USING parquet AS $query")
      else spark.sql("REFRESH MATERIALIZED VIEW kept INCREMENTAL")
      assert(rows("SELECT * FROM kept") == expected, s"after version $version")
      assert(rows("VERIFY MATERIALIZED VIEW kept").isEmpty)
    }
    spark.sql("DROP MATERIALIZED VIEW kept")
  }

  test("a batch of a table's changes is netted") {
    create("batch", ChangelogProperties())
    rounds.zipWithIndex.foreach { case ((rows, _), version) =>
      commit("batch", version, rows: _*)
    }
    spark.sql(
      "CREATE OR REPLACE TEMPORARY VIEW rides AS SELECT * FROM from_changelog(TABLE(" +
        "SELECT id, city, fare, _change_type FROM changing.ns.batch CHANGES FROM VERSION 0), " +
        "'_change_type')")
    assert(spark.sql(view).collect().map(TextChangelog.format).toSeq == Seq("Bern 1 6"))
  }
}
