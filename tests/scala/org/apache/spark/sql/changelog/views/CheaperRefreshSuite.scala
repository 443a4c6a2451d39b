// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.delta.DeltaLog

import org.apache.spark.sql.changelog.testing._

/** Views with the policy `auto`, which are computed anew where that costs less. */
class CheaperRefreshSuite extends AnyFunSuite with ViewSession with BeforeAndAfterEach {
  private val rows = 30000
  private val query =
    "SELECT id % 100 AS g, count(*) AS n, max(t) AS most FROM facts GROUP BY id % 100"
  private val feed = "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
  private val files = "USING delta TBLPROPERTIES (delta.enableDeletionVectors = false)"
  private val vectors = "USING delta TBLPROPERTIES (delta.enableDeletionVectors = true)"

  override def afterEach(): Unit = {
    Seq("w", "v").foreach(view => run(s"DROP MATERIALIZED VIEW IF EXISTS $view"))
    run("DROP TABLE IF EXISTS facts")
  }

  /** A table of some megabytes. */
  private def make(format: String): Unit = {
    run(s"CREATE TABLE facts (id BIGINT, t STRING) $format")
    run(s"INSERT INTO facts SELECT id, sha2(string(id), 256) FROM range($rows)")
  }

  private def create(query: String, name: String = "v", using: String = "parquet"): Unit =
    run(s"CREATE MATERIALIZED VIEW $name USING $using AS $query")

  private val updateAll = "UPDATE facts SET t = sha2(t, 256)"

  /** How it was done, and bytes that had changed and in all. */
  private def refresh(more: String = "", view: String = "v"): (String, Option[Long], Long) = {
    run(s"REFRESH MATERIALIZED VIEW $view $more")
    val last = spark
      .sql(s"SHOW REFRESHES OF $view")
      .selectExpr("mode", "estimate.bytes_changed", "estimate.bytes_in_all")
      .head()
    (last.getString(0), Option(last.getAs[java.lang.Long](1)).map(_.longValue), last.getLong(2))
  }

  private def check(view: String = "v"): Unit = {
    val kept = RowMultiset.of(run(s"SELECT * FROM $view"))
    assert(kept == RowMultiset.of(run(query)))
  }

  test("much that has changed leads to a full refresh, after which changes are followed again") {
    make(feed)
    create(query)
    run("DELETE FROM facts WHERE id = 1")
    val (mode, few, all) = refresh("INCREMENTAL")
    assert(mode == "incremental" && few.get < 10000 && all > 1500000, (few, all))
    run(updateAll)
    assert(refresh()._1 == "full")
    check()
    val Row(reason, incremental: Double, full: Double) = spark
      .sql("SHOW REFRESHES OF v")
      .selectExpr("reason", "estimate.incremental_seconds", "estimate.full_seconds")
      .head()
    assert(reason == "an incremental refresh is expected to cost more")
    assert(full > 0 && incremental > full)
    run("DELETE FROM facts WHERE id = 2")
    assert(refresh()._1 == "incremental")
    check()
    assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
  }

  test(
    "the first refresh of a new view leaves the state to the second, unless its changes are read") {
    make(feed)
    create(query)
    run("REFRESH MATERIALIZED VIEW v")
    assert(refresh()._1 == "incremental")
    run("DROP MATERIALIZED VIEW v")
    create(query)
    run("DELETE FROM facts WHERE id = 1")
    assert(refresh()._1 == "full")
    val reason = spark.sql("SHOW REFRESHES OF v").head().getAs[String]("reason")
    assert(reason == "the next refresh computes the state")
    run("DELETE FROM facts WHERE id = 2")
    assert(refresh()._1 == "incremental")
    check()
    run("DROP MATERIALIZED VIEW v")
    create("SELECT id, t FROM facts", "v", "delta")
    create(query.replace("facts", "v"), "w")
    run("DELETE FROM facts WHERE id = 3")
    assert(refresh()._1 == "incremental")
    assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
  }

  test("where most has changed before there is state, the rows are computed once more") {
    make(feed)
    create(query)
    run(updateAll)
    val (mode, changed, all) = refresh()
    assert(mode == "full" && changed.get > all / 2)
    check()
    run("DELETE FROM facts WHERE id = 1")
    assert(refresh()._1 == "incremental")
    check()
  }

  test("nothing is computed anew where somebody asks for changes") {
    make(feed)
    create(query)
    run(updateAll)
    val (mode, changed, all) = refresh("INCREMENTAL")
    assert(mode == "incremental" && changed.get > all)
    check()
  }

  test("what has changed is told by files, deletion vectors and lists of files, too") {
    Share.ofWays(Seq(files, vectors, "USING parquet"), "told").foreach { format =>
      make(format)
      create(query)
      run(s"INSERT INTO facts SELECT id, sha2(string(id), 256) FROM range($rows, $rows + 3000)")
      val (_, some, all) = refresh("INCREMENTAL")
      val part = some.get.toDouble / all
      assert(part > 0.07 && part < 0.12, s"$format $part")
      if (format != "USING parquet") {
        run("UPDATE facts SET t = 'x' WHERE id = 5")
        val share = refresh()._2.get.toDouble / all
        // half of the rows were written anew, and are read twice
        if (format == files) assert(share > 0.15 && share < 0.35, share)
        else assert(share < 0.01, share)
        run("OPTIMIZE facts")
        assert(refresh()._2.contains(0L))
      }
      check()
      afterEach()
    }
  }

  test("a Delta table whose changes another view reads is not written anew for costs") {
    make(feed)
    create(query, using = "delta")
    create("SELECT sum(n) AS n FROM v", "w")
    run(updateAll)
    assert(refresh()._1 == "incremental")
    check()
  }

  test("of a view that is kept in Delta it is known how much has changed, too") {
    make(feed)
    create("SELECT id, t FROM facts", using = "delta")
    create(query.replace("facts", "v"), "w")
    run("DELETE FROM facts WHERE id = 1")
    assert(refresh()._1 == "incremental")
    val (mode, few, all) = refresh("INCREMENTAL", view = "w")
    assert(mode == "incremental" && few.get < 10000 && all > 1500000, (few, all))
    assert(refresh(view = "w")._2.contains(0L))
    run(updateAll)
    assert(refresh()._1 == "incremental")
    // whether that is much depends on how long the small ones took
    assert(refresh(view = "w")._2.get > all)
    check("w")
    val (full, _, again) = refresh("FULL", view = "w")
    assert(full == "full" && again > 1500000)
    run("DELETE FROM facts WHERE id = 2")
    refresh()
    assert(refresh("INCREMENTAL", view = "w")._2.get < 10000)
    check("w")
    assert(run("VERIFY MATERIALIZED VIEW w").isEmpty)
  }

  test("a streaming table that reads another one keeps its rows, whatever that costs") {
    make("USING parquet")
    run("CREATE STREAMING TABLE v USING delta AS SELECT id, t FROM STREAM facts")
    run("CREATE STREAMING TABLE w USING delta AS SELECT id, t FROM v")
    // as a session without the extension could
    RefuseViewWrites.allow(spark) {
      run("DELETE FROM v WHERE id > 9")
      ()
    }
    Seq("", "INCREMENTAL").foreach { how =>
      val error = intercept[Exception](refresh(how, view = "w"))
      assert(error.getMessage.contains("CHANGELOG_"), error)
    }
    assert(run("SELECT count(*) FROM w") == Seq(Row(rows)))
    assert(refresh("FULL", view = "w")._1 == "full")
    assert(run("SELECT count(*) FROM w") == Seq(Row(10)))
  }

  test("costs are not asked where all anew would give other rows, or nobody knows") {
    make(feed)
    run("CREATE TABLE names (g BIGINT, name STRING) USING parquet")
    try {
      Seq(
        "SELECT id, name FROM facts JOIN lookup(TABLE(names)) ON g = id % 100",
        "SELECT /*+ ROW_TTL(facts, '3 days') */ id, t FROM facts",
        "SELECT id, t FROM STREAM facts").foreach { query =>
        create(query)
        run("REFRESH MATERIALIZED VIEW v")
        assert(
          run("SHOW REFRESHES OF v").map(row => row.isNullAt(row.fieldIndex("estimate"))).head,
          query)
        run("DROP MATERIALIZED VIEW v")
      }
    } finally run("DROP TABLE names")
  }

  test("to know how much has changed nobody goes through all files of a table") {
    make(feed)
    create(query)
    run("DELETE FROM facts WHERE id = 1")
    DeltaLog.clearCache()
    assert(refresh("INCREMENTAL")._3 > 1500000)
    val snapshot = DeltaLog.forTable(spark, TableIdentifier("facts")).unsafeVolatileSnapshot
    // Delta lets nobody else ask
    val wasComputed = snapshot.getClass.getMethod("_computedStateTriggered").invoke(snapshot)
    assert(wasComputed == false)
  }
}
