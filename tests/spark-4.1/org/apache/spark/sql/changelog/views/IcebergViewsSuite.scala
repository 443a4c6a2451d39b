// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.File

import org.apache.spark.sql.Row

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

  test("a dropped view leaves nothing") {
    create(totals, name = view)
    val table = new File(definition().home.getParent.toUri.getPath)
    assert(table.exists() && table.getName == "v")
    run(s"DROP TABLE $view")
    assert(!table.exists())
  }
}
