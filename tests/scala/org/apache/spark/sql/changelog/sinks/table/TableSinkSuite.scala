// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.table

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** Tables kept by MERGE: Delta's, and any that has row-level operations. */
class TableSinkSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  private val rides = Feed("rides", "id INT, city STRING, fare INT", key = Seq("id"))
  private val plain = Feed("plain", "id INT, city STRING", insertOnly = true)
  private val byCity = "SELECT city, count(*) AS n, sum(fare) AS total FROM rides GROUP BY city"

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    ChangelogSession.DeltaConf ++ ChangelogSession.MostlyInterpreted ++ Map(
      "spark.sql.catalog.mem" -> classOf[SharedCatalog].getName,
      "spark.sql.warehouse.dir" -> QuickFileSystem.temporaryDirectory().getPath))

  for (mode <- Share.ofWays(Seq("retract", "upsert"), "TableSinkSuite"))
    test(s"a Delta table equals the query, mode $mode") {
      val path = QuickFileSystem.temporaryDirectory().getPath
      val options = Map("path" -> s"$path/totals", "createTable" -> "true")
      val query =
        new KeptQuery(spark, rides, byCity, spark.read.format("delta").load(s"$path/totals"))
      query.start("changelog-table", options, s", mode => '$mode'")
      query.check("+I 1 Oslo 5", "+I 2 Rome 7", "+I 3 NULL 1", "+I 4 NULL NULL")
      query.check("-U 1 Oslo 5", "+U 1 Rome 5", "-D 3 NULL 1")
      query.stop()
      query.start("changelog-table", options, s", mode => '$mode'")
      query.check("+I 5 Oslo 1", "-D 4 NULL NULL")
      query.stop()
    }

  test("a batch is one commit of Delta's, and none when it comes again") {
    val options = Map("table" -> "appended", "createTable" -> "true")
    val query =
      new KeptQuery(spark, plain, "SELECT id, city FROM plain", spark.table("appended"))
    def commits = {
      val history = spark.sql("DESCRIBE HISTORY appended").select("version", "operation")
      history.collect().map(_.toSeq.mkString(" ")).toSeq.sorted
    }
    query.start("changelog-table", options)
    query.check("+I 1 Oslo", "+I 2 Rome", "+I 2 Rome")
    query.check("+I 3 NULL")
    val before = commits
    assert(before == Seq("0 CREATE TABLE", "1 MERGE", "2 MERGE"))
    query.forgetLastBatch()
    query.start("changelog-table", options)
    query.processAll()
    query.compare()
    assert(commits == before)
    query.check("+I 3 NULL")
    assert(commits == before :+ "3 MERGE")
    query.stop()
  }

  test("a table with deletion vectors is written without MERGE, each batch once") {
    run(
      "CREATE TABLE marked (city STRING, total BIGINT, n BIGINT) USING delta " +
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    val query =
      new KeptQuery(spark, rides, byCity, spark.table("marked").select("city", "n", "total"))
    def commits = run("DESCRIBE HISTORY marked").map(_.getAs[String]("operation")).reverse.tail
    query.start("changelog-table", Map("table" -> "marked"))
    query.check("+I 1 Oslo 5", "+I 2 Rome 7", "+I 3 NULL 1", "+I 4 NULL NULL")
    query.check("-U 1 Oslo 5", "+U 1 Rome 5", "-D 3 NULL 1")
    query.forgetLastBatch()
    query.start("changelog-table", Map("table" -> "marked"))
    query.processAll()
    query.compare()
    query.check("+I 5 Oslo 1", "-D 4 NULL NULL")
    assert(commits == Seq.fill(3)("STREAMING UPDATE"))
    // other columns than those of the query are left to MERGE, which leaves them as they are
    run("ALTER TABLE marked ADD COLUMN note STRING")
    query.check("+I 6 Bern 1")
    assert(commits.last == "MERGE")
    query.stop()
  }

  test("rows without a key are counted in a table with deletion vectors") {
    run(
      "CREATE TABLE fares (city STRING, fare INT) USING delta PARTITIONED BY (city) " +
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    val query =
      new KeptQuery(spark, rides, "SELECT city, fare FROM rides", spark.table("fares"))
    query.start("changelog-table", Map("table" -> "fares", "countRows" -> "true"))
    query.check("+I 1 Oslo 5", "+I 2 Oslo 5", "+I 3 NULL 1", "+I 4 Oslo 5", "+I 5 NULL NULL")
    query.check("-D 2 Oslo 5", "+I 6 Rome 1")
    query.check("-D 1 Oslo 5", "-D 4 Oslo 5", "-U 5 NULL NULL", "+U 5 NULL 1")
    query.stop()
  }

  private def run(sql: String) = spark.sql(sql).collect().toSeq

  test("a table of any source with row-level operations equals the query") {
    spark.sql("CREATE TABLE mem.db.totals (total BIGINT, city STRING, n BIGINT)")
    val query = new KeptQuery(
      spark,
      rides,
      byCity,
      spark.table("mem.db.totals").select("city", "n", "total"))
    query.start("changelog-table", Map("table" -> "mem.db.totals"))
    query.check("+I 1 Oslo 5", "+I 2 Rome 7", "+I 3 NULL 1")
    query.check("-U 1 Oslo 5", "+U 1 Rome 5", "-D 3 NULL 1")
    query.forgetLastBatch()
    query.start("changelog-table", Map("table" -> "mem.db.totals"))
    query.check()
    query.stop()
  }

  test("a query of one row keeps one row") {
    val query =
      new KeptQuery(spark, rides, "SELECT count(*) AS n FROM rides", spark.table("single"))
    query.start("changelog-table", Map("table" -> "single", "createTable" -> "true"))
    query.check("+I 1 Oslo 5", "+I 2 Oslo 7")
    query.check("-D 2 Oslo 7")
    query.stop()
  }
}
