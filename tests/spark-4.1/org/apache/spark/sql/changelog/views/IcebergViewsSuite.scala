// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.File

import org.apache.commons.io.FileUtils
import org.apache.iceberg.expressions.Expressions

import org.apache.spark.sql.Row

import org.apache.spark.sql.changelog.testing.{IcebergCatalog, RowMultiset}

/** Views stored in Iceberg tables. */
class IcebergViewsSuite extends CatalogViewTest with IcebergSession {
  override protected def catalog: String = "ice"
  override protected def provider: String = "iceberg"

  private def batches: Seq[String] = {
    run(s"REFRESH TABLE $view")
    run(s"SELECT summary['spark-changelog.batch'] FROM $view.snapshots ORDER BY committed_at")
      .flatMap(row => Option(row.getString(0)))
  }

  ways.foreach { case (way, format) =>
    test(s"each batch is one commit, also a repeated one, with $way") {
      deliver("+I 1 Ada 5", "+I 2 Ben 3", "+I 3 Ada 1")
      create(totals, s"PARTITIONED BY (bucket(2, customer)) $format", view)
      deliver("-U 1 Ada 5", "+U 1 Ada 6", "-D 2 Ben 3", "+I 4 NULL 1")
      refresh("INCREMENTAL STRICT")
      check(totals, view)
      forgetLastBatch()
      refresh("INCREMENTAL STRICT")
      deliver("-U 4 NULL 1", "+U 4 NULL 2")
      refresh("INCREMENTAL STRICT")
      check(totals, view)
      assert(batches.size == 3 && batches.distinct == batches, batches)
      val summaries = run(s"SELECT summary['operation'] FROM $view.snapshots")
      assert(summaries.size == 4)
    }
  }

  test("columns, rows and definition change in one commit") {
    deliver("+I 1 Ada 5", "+I 2 Ben 3")
    create(totals, name = view)
    val more = totals.replace("sum(amount) AS total", "max(amount) AS top, sum(amount) AS total")
    for (statement <- Seq(
        s"ALTER MATERIALIZED VIEW $view AS $more",
        s"REFRESH MATERIALIZED VIEW $view FULL",
        s"ALTER MATERIALIZED VIEW $view SET TBLPROPERTIES ('a' = '1')",
        s"CREATE OR REPLACE MATERIALIZED VIEW $view AS $totals")) {
      def commits = {
        run(s"REFRESH TABLE $view")
        run(s"SELECT count(*) FROM $view.metadata_log_entries").head.getLong(0)
      }
      val before = commits
      run(statement)
      assert(commits == before + 1, statement)
      check(definition().query, view)
    }
  }

  test("maintenance by others changes nothing, and another process sees the view") {
    deliver("+I 1 Ada 5", "+I 2 Ben 3")
    create(totals, name = view)
    deliver("+I 3 Eve 3")
    run("REFRESH MATERIALIZED VIEW other.db.v")
    call("rewrite_data_files", "v", "options => map('rewrite-all', 'true')")
    val weekAgo = System.currentTimeMillis() - 7 * 24 * 3600 * 1000L
    def age(file: File): Unit = {
      Option(file.listFiles()).toSeq.flatten.foreach(age)
      assert(file.setLastModified(weekAgo))
    }
    age(new File(definition().home.toUri.getPath))
    call("remove_orphan_files", "v")
    deliver("-D 1 Ada 5")
    refresh("INCREMENTAL STRICT")
    check(totals, view)
    assert(run("SELECT count(*) FROM other.db.v") == Seq(Row(2L)))
  }

  test("the next refresh tells of a commit by others, and FULL mends the view") {
    deliver("+I 1 Ada 5", "+I 2 Ben 3", "+I 3 Ben 4")
    create(totals, name = view)
    deliver("+I 4 Eve 3")
    refresh()
    def others(statement: String): Unit = RefuseViewWrites.allow(spark) {
      run(statement)
      ()
    }
    def current = api("v").currentSnapshot.snapshotId
    val commits = Seq[(String, () => Unit)](
      "an INSERT of a session without the extension" ->
        (() => others(s"INSERT INTO $view VALUES ('Zoe', 1, 1)")),
      "an UPDATE of such a session" -> (() => others(s"UPDATE $view SET n = 7")),
      "a DELETE by another engine" ->
        (() => api("v").newDelete().deleteFromRowFilter(Expressions.alwaysTrue()).commit()),
      "a rollback" -> { () =>
        val last = api("v").currentSnapshot
        api("v").manageSnapshots().rollbackTo(last.parentId).commit()
      },
      "a rollback, with a change of properties after it" -> { () =>
        api("v").manageSnapshots().rollbackTo(api("v").currentSnapshot.parentId).commit()
        run(s"ALTER MATERIALIZED VIEW $view SET TBLPROPERTIES ('a' = '1')")
        ()
      })
    for (((what, commit), index) <- commits.zipWithIndex) withClue(s"$what: ") {
      deliver(s"+I ${10 + index} Eve 1")
      refresh("INCREMENTAL STRICT")
      call("rewrite_data_files", "v", "options => map('rewrite-all', 'true')")
      run(s"ALTER MATERIALIZED VIEW $view SET TBLPROPERTIES ('b' = '$index')")
      refresh("INCREMENTAL STRICT")
      val before = current
      commit()
      assert(current != before)
      for (_ <- 1 to 2)
        checkError("CHANGELOG_VIEW_WRITTEN_BY_OTHERS", "view" -> "`ice`.`db`.`v`")(refresh())
      checkError("CHANGELOG_VIEW_WRITTEN_BY_OTHERS")(run(s"START MATERIALIZED VIEW $view"))
      refresh("FULL")
      check(totals, view)
    }
    run(s"START MATERIALIZED VIEW $view")
    run(s"STOP MATERIALIZED VIEW $view")
    call("rewrite_data_files", "v", "options => map('rewrite-all', 'true')")
    expire()
    refresh("INCREMENTAL STRICT")
    others(s"INSERT INTO $view VALUES ('Zoe', 1, 1)")
    val written = s"the snapshot $current"
    checkError("CHANGELOG_VIEW_WRITTEN_BY_OTHERS", "written" -> written)(refresh())
  }

  private def version: Long =
    facts(s"DESCRIBE EXTENDED MATERIALIZED VIEW $view")("Version").toLong

  private def expire(): Unit =
    call("expire_snapshots", "v", "older_than => TIMESTAMP '2100-01-01'", "retain_last => 1")

  test("changes of expired snapshots fail by name, and savepoints stay") {
    deliver("+I 1 Ada 5")
    create(totals, name = view)
    val first = version
    deliver("-U 1 Ada 5", "+U 1 Ada 7", "+I 2 Ben 1")
    refresh()
    run(s"CREATE SAVEPOINT s OF MATERIALIZED VIEW $view")
    val saved = RowMultiset.of(run(s"SELECT * FROM $view"))
    deliver("-D 2 Ben 1")
    refresh()
    val last = version
    // Compaction changes no rows, and is the oldest snapshot left.
    call("rewrite_data_files", "v", "options => map('rewrite-all', 'true')")
    expire()
    for (range <- Seq(
        s"from_version => $first",
        s"from_version => ${first + 1}, to_version => ${last - 1}",
        s"from_version => $last")) {
      checkError("CHANGELOG_VIEW_VERSION_GONE")(run(s"SELECT * FROM changes('$view', $range)"))
    }
    deliver("+I 3 Eve 1")
    refresh("INCREMENTAL STRICT")
    check(totals, view)
    val changes = run(s"SELECT * FROM changes('$view', from_version => $version)")
    assert(changes.map(_.getString(0)) == Seq("Eve"))
    run(s"CREATE SAVEPOINT t OF MATERIALIZED VIEW $view")
    expire()
    run(s"RESTORE MATERIALIZED VIEW $view TO SAVEPOINT s")
    assert(RowMultiset.of(run(s"SELECT * FROM $view")) == saved)
    refresh()
    check(totals, view)
    run(s"CREATE MATERIALIZED VIEW $second FROM $view AT SAVEPOINT t")
    check(totals, second)
  }

  test("a count of changes counts rows that differ in columns that it does not read") {
    deliver("+I 1 Ada 5", "+I 2 Ben 3")
    create(totals, name = view)
    val before = version
    deliver("-U 1 Ada 5", "+U 1 Ada 6")
    refresh()
    val changes = s"changes('$view', from_version => ${before + 1})"
    for (from <- Seq(changes, s"(SELECT customer FROM $changes)"))
      assert(run(s"SELECT count(*) FROM $from") == Seq(Row(2L)))
  }

  test("version 1 of the format, nested namespaces and the session catalog are refused by name") {
    checkError(
      "CHANGELOG_VIEW_CATALOG_NOT_SUPPORTED",
      "reason" -> "the name of a view is a catalog, a database and a table")(
      create(totals, name = "ice.a.b.v"))
    checkError("CHANGELOG_VIEW_PROVIDER_NOT_SUPPORTED", "provider" -> "iceberg")(create(totals))
    val error = checkError("CHANGELOG_VIEW_CATALOG_NOT_SUPPORTED")(
      create(totals, "TBLPROPERTIES ('format-version' = '1')", view))
    assert(error.getMessageParameters.get("reason").contains("'format-version' = '2'"))
    assert(run("SHOW TABLES IN ice.db").isEmpty)
  }

  test("a copy of a view's table is no view") {
    deliver("+I 1 Ada 5")
    create(totals, name = view)
    val table = new File(definition().home.getParent.toUri.getPath)
    FileUtils.copyDirectory(table, new File(table.getParentFile, "copy"))
    val copies = new File(warehouse, "copies")
    FileUtils.copyDirectory(table, new File(copies, "db/v"))
    spark.conf.set("spark.sql.catalog.copies", classOf[IcebergCatalog].getName)
    spark.conf.set("spark.sql.catalog.copies.home", copies.getPath)
    try {
      assert(run("SELECT total FROM copies.db.v") == Seq(Row(5L)))
      assert(run("SHOW MATERIALIZED VIEWS IN copies.db").isEmpty)
      checkError("CHANGELOG_VIEW_NOT_FOUND")(refresh(name = "copies.db.v"))
      assert(run("SELECT total FROM ice.db.copy") == Seq(Row(5L)))
      assert(run("SHOW MATERIALIZED VIEWS IN ice.db").map(_.getString(1)) == Seq("v"))
      checkError("CHANGELOG_VIEW_NOT_FOUND")(refresh(name = "ice.db.copy"))
      run("INSERT INTO ice.db.copy VALUES ('Eve', 1, 1)")
    } finally run("DROP TABLE ice.db.copy")
    deliver("+I 2 Ben 3")
    refresh("INCREMENTAL STRICT")
    check(totals, view)
  }

  test("a dropped view leaves nothing") {
    create(totals, name = view)
    val table = new File(definition().home.getParent.toUri.getPath)
    assert(table.exists() && table.getName == "v")
    run(s"DROP TABLE $view")
    assert(!table.exists())
  }
}
