// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.File
import java.nio.file.Files

import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.Row

import org.apache.spark.sql.changelog.testing._

/** A refresh fails over rows that its query can't be computed over, and succeeds again when they are mended. */
class MendedRowsSuite extends AnyFunSuite with ViewSession with BeforeAndAfterEach {

  override def beforeEach(): Unit = {
    run("CREATE TABLE t (id INT, v INT) USING delta")
    run("INSERT INTO t VALUES (1, 2)")
  }

  override def afterEach(): Unit = {
    run("DROP MATERIALIZED VIEW IF EXISTS v")
    run("DROP TABLE t")
  }

  private def create(format: String, policy: String, expression: String): Unit =
    run(
      s"CREATE MATERIALIZED VIEW v USING $format TBLPROPERTIES ('changelog.refreshPolicy' = '$policy') " +
        s"AS SELECT $expression AS n FROM t")

  private def fails(condition: String): Unit = {
    val error = intercept[Throwable](run("REFRESH MATERIALIZED VIEW v"))
    assert(
      Some(error)
        .collect { case named: SparkThrowable => named.getCondition }
        .contains(condition))
    Seq("Offsets", "=== Streaming Query", "Logical Plan").foreach { word =>
      assert(!error.getMessage.contains(word), error.getMessage)
    }
  }

  for {
    (expression, bad, condition) <- Seq(
      ("INT(sum(10 / v))", "0", "DIVIDE_BY_ZERO"),
      ("INT(sum(10 / v))", "0), (9, 0", "DIVIDE_BY_ZERO"),
      ("max(if(v = 0, raise_error('no'), v))", "0", "USER_RAISED_EXCEPTION"))
    format <- Share.ofWays(Seq("delta", "parquet"), expression + bad)
  } test(s"$condition, in $format, over ($bad)") {
    create(format, "auto", expression)
    run(s"INSERT INTO t VALUES (2, $bad)")
    (1 to 2).foreach(_ => fails(condition))
    assert(run("SELECT * FROM v").size == 1)
    run("DELETE FROM t WHERE v = 0")
    run("INSERT INTO t VALUES (3, 5)")
    run("REFRESH MATERIALIZED VIEW v")
    assert(run("SELECT n FROM v") == run(s"SELECT $expression FROM t"))
    run("INSERT INTO t VALUES (4, 1)")
    run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
    assert(run("SELECT n FROM v") == run(s"SELECT $expression FROM t"))
  }

  test("rows that have come and gone since the last refresh") {
    create("delta", "auto", "INT(sum(10 / v))")
    run("INSERT INTO t VALUES (2, 0)")
    run("DELETE FROM t WHERE v = 0")
    run("REFRESH MATERIALIZED VIEW v")
    assert(run("SELECT n FROM v") == Seq(Row(5)))
  }

  test("where all may not be computed anew unasked") {
    create("delta", "incremental", "INT(sum(10 / v))")
    run("INSERT INTO t VALUES (2, 0)")
    fails("DIVIDE_BY_ZERO")
    run("DELETE FROM t WHERE v = 0")
    fails("DIVIDE_BY_ZERO")
    run("REFRESH MATERIALIZED VIEW v FULL")
    assert(run("SELECT n FROM v") == Seq(Row(5)))
  }

  test("what may be shown is not deleted") {
    create("delta", "auto", "id")
    val view = new ViewCatalog(spark).get(Seq("v"))
    val log = new File(warehouse, "v/_delta_log")
    val next = f"${log.list().count(_.matches("\\d+\\.json"))}%020d.json"
    val broken = new File(log, next)
    Files.writeString(broken.toPath, "{")
    try ViewStorage.discard(spark, view)
    finally assert(broken.delete())
    assert(new File(view.definition.checkpoint.toUri).exists())
  }
}
