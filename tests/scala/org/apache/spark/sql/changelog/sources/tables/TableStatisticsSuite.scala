// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** What is known of tables without reading them. */
class TableStatisticsSuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Quick ++ ChangelogSession.DeltaConf)

  private def known(table: String): Option[TableStatistics] = {
    val leaf = spark.table(table).queryExecution.analyzed.collectLeaves().head
    TableStatistics.of(spark, leaf)
  }

  private def ofStream(table: String): Option[TableStatistics] = {
    val leaf = spark.readStream.table(table).queryExecution.analyzed.collectLeaves().head
    TableStatistics.of(spark, leaf)
  }

  private def withTable(name: String, format: String)(check: => Unit): Unit = {
    spark.sql(s"CREATE TABLE $name USING $format AS SELECT id FROM range(0, 1000, 1, 1)")
    try check
    finally {
      spark.sql(s"DROP TABLE $name")
      ()
    }
  }

  test("of files their size is known, and how many rows they have where somebody counted") {
    withTable("stored", "parquet") {
      assert(known("stored").exists(found => found.rows.isEmpty && found.bytes > 1000))
      assert(ofStream("stored").isEmpty)
      spark.sql("ANALYZE TABLE stored COMPUTE STATISTICS")
      Seq(known("stored"), ofStream("stored")).foreach { found =>
        assert(found.exists(_.rows.contains(BigInt(1000))), found)
      }
    }
  }

  test("of a Delta table its log tells how large it is, at once and as a stream") {
    withTable("logged", "delta") {
      Seq(known("logged"), ofStream("logged")).foreach { found =>
        assert(found.exists(_.bytes > 1000), found)
        assert(found.exists(_.table.contains("logged")), found)
      }
    }
  }

  test("of rows that are in no table nothing is known") {
    spark.range(5).createOrReplaceTempView("five")
    new RawStream(spark, "raw", "id INT")
    assert(known("five").isEmpty)
    assert(known("raw").isEmpty)
  }
}
