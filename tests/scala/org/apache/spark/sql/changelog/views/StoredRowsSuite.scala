// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/** What views store of rows, whatever their types are and how their tables are laid out. */
class StoredRowsSuite
    extends AnyFunSuite
    with ViewSession
    with ErrorChecks
    with BeforeAndAfterEach {
  private val counts = "SELECT count(*) AS n, p FROM t GROUP BY p"

  override def afterEach(): Unit = {
    run("DROP MATERIALIZED VIEW IF EXISTS v")
    run("DROP TABLE IF EXISTS t")
  }

  private def create(query: String, layout: String = "", format: String = "delta"): Unit =
    run(s"CREATE MATERIALIZED VIEW v USING $format $layout AS $query")

  private def check(query: String, how: String = ""): Unit = {
    run(s"REFRESH MATERIALIZED VIEW v $how")
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(query)))
    assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
  }

  test("partitions that have no rows any more go, whatever the session overwrites") {
    run("CREATE TABLE t (k INT, p STRING) USING delta")
    run("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try {
      create(counts, "PARTITIONED BY (p)")
      run("DELETE FROM t WHERE p = 'b'")
      check(counts, "FULL")
      run("DELETE FROM t")
      check(counts, "FULL")
    } finally spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
  }

  test("an empty text, which Delta would keep as NULL, is no partition") {
    run("CREATE TABLE t (k INT, p STRING) USING delta")
    run("INSERT INTO t VALUES (1, 'a'), (2, NULL)")
    Share.ofWays(Seq(counts, "SELECT k, p FROM t"), "empty").foreach { query =>
      create(query, "PARTITIONED BY (p)")
      run("INSERT INTO t VALUES (3, '')")
      Seq("INCREMENTAL", "FULL").foreach { how =>
        checkError("CHANGELOG_SINK_PARTITION_EMPTY", "column" -> "p")(
          run(s"REFRESH MATERIALIZED VIEW v $how"))
        assert(run("SELECT * FROM v").size == 2)
      }
      run("DELETE FROM t WHERE p = ''")
      // the batch that was begun has that row
      checkError("CHANGELOG_SINK_PARTITION_EMPTY")(run("REFRESH MATERIALIZED VIEW v INCREMENTAL"))
      check(query)
      run("DROP MATERIALIZED VIEW v")
    }
    run("INSERT INTO t VALUES (3, '')")
    checkError("CHANGELOG_SINK_PARTITION_EMPTY")(create(counts, "PARTITIONED BY (p)"))
  }

  test("an empty text of a row that the query leaves out is no partition") {
    run("CREATE TABLE t (k INT, p STRING) USING delta")
    run("INSERT INTO t VALUES (1, 'a'), (1, 'a'), (2, '')")
    val full = "PARTITIONED BY (p) TBLPROPERTIES ('changelog.refreshPolicy' = 'full')"
    val queries =
      Seq("SELECT t.k, p FROM t JOIN (SELECT 1 AS k) one ON t.k = one.k", s"$counts HAVING n > 1")
    Share.ofWays(queries, "leaves out").foreach { query =>
      create(query, full)
      check(query)
      run("DROP MATERIALIZED VIEW v")
    }
  }

  test("values that Delta mixes up in partitions are no partitions") {
    run("CREATE TABLE t (p TIMESTAMP, b BINARY) USING delta")
    Seq("p", "B").foreach { column =>
      checkError("CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED")(
        create("SELECT count(*) AS n, p, b FROM t GROUP BY p, b", s"PARTITIONED BY ($column)"))
    }
    create("SELECT count(*) AS n, date(p) AS p FROM t GROUP BY ALL", "PARTITIONED BY (p)")
  }

  test("rows may be told apart by maps in files, and not in Delta") {
    run("CREATE TABLE t (tags MAP<STRING, INT>, v INT) USING delta")
    run("INSERT INTO t VALUES (map('a', 1, 'b', 2), 1), (map('b', 2, 'a', 1), 2), (NULL, 3)")
    val query = "SELECT tags, count(*) AS n FROM t GROUP BY tags"
    create(query, format = "parquet")
    run("DELETE FROM t WHERE v = 2")
    run("INSERT INTO t VALUES (map(), 4)")
    check(query)
    run("DROP MATERIALIZED VIEW v")
    checkError("CHANGELOG_SINK_VALUE_NOT_COMPARABLE", "column" -> "tags")(create(query))
  }

  test("the default of a source's column is not that of a view's") {
    val formats = Seq("parquet" -> "parquet", "parquet" -> "delta", "delta" -> "delta")
    Share.ofWays(formats, "the default").foreach { case (source, format) =>
      val feature =
        if (source == "delta")
          "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
        else ""
      run(s"CREATE TABLE t (k INT, p INT DEFAULT 7) USING $source $feature")
      run("INSERT INTO t VALUES (1, 2), (2, 2)")
      create("SELECT k, p FROM t", format = format)
      run("INSERT INTO t (k) VALUES (3)")
      check("SELECT k, p FROM t")
      check("SELECT k, p FROM t", "FULL")
      assert(spark.table("v").schema.forall(_.getCurrentDefaultValue().isEmpty))
      afterEach()
    }
  }
}
