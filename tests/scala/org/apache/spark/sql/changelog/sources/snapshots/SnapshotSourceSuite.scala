// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.snapshots

import java.io.File

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.streaming.Trigger

import org.apache.spark.sql.changelog.testing._

class SnapshotSourceSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  private val view = "SELECT city, count(*) AS n, sum(fare) AS total FROM rides GROUP BY city"

  private def write(folder: File, rows: String*): Unit = {
    val values = if (rows.isEmpty) "(1, '', 1) LIMIT 0" else rows.mkString(", ")
    spark
      .sql(s"SELECT * FROM VALUES $values")
      .toDF("id", "city", "fare")
      .write
      .mode("overwrite")
      .parquet(folder.getPath)
  }

  private def read(folder: File, arguments: String): Unit =
    follow(s"SELECT * FROM parquet.`${folder.getPath}`", arguments)

  /** Reads the snapshots of a query as the table `rides`. */
  private def follow(query: String, arguments: String): Unit = {
    spark.readStream
      .format("changelog-snapshots")
      .option("query", query)
      .load()
      .createOrReplaceTempView("rides_changes")
    spark
      .sql(s"SELECT * FROM from_changelog(TABLE(rides_changes), '_change_type'$arguments)")
      .createOrReplaceTempView("rides")
  }

  private def check(arguments: String, rounds: Seq[String]*): Unit = {
    val folder = QuickFileSystem.temporaryDirectory()
    write(folder)
    read(folder, arguments)
    val kept = new KeptTable(spark, view)
    rounds.foreach { rows =>
      write(folder, rows: _*)
      kept.check(spark.read.parquet(folder.getPath))
    }
  }

  test("each snapshot's differences lead to the view over it, with restarts") {
    check(
      ", key => 'id'",
      Seq("(1, 'Oslo', 5)", "(2, 'Rome', 7)", "(3, NULL, 1)"),
      Seq("(1, 'Rome', 5)", "(2, 'Rome', 7)", "(4, 'Bern', 2)"),
      Seq("(1, 'Rome', 5)", "(2, 'Rome', 7)", "(4, 'Bern', 2)"),
      Nil,
      Seq("(1, 'Oslo', 5)"))
  }

  test("rows without a key are counted") {
    check(
      "",
      Seq("(1, 'Oslo', 5)", "(1, 'Oslo', 5)", "(1, 'Oslo', 5)"),
      Seq("(1, 'Oslo', 5)", "(1, 'Rome', 5)", "(1, 'Rome', 5)"))
  }

  test("a table of a database is followed, by a view over it") {
    val url = "jdbc:h2:mem:snapshots;DB_CLOSE_DELAY=-1"
    def execute(sql: String): Unit =
      DatabaseTable.execute(Map("url" -> url, "user" -> "", "password" -> ""), sql)
    execute("CREATE TABLE rides (id INT PRIMARY KEY, city VARCHAR(20), fare INT)")
    spark.read
      .format("jdbc")
      .options(Map("url" -> url, "dbtable" -> "rides"))
      .load()
      .createOrReplaceTempView("stored")
    follow("SELECT id AS id, city AS city, fare AS fare FROM stored", ", key => 'id'")
    val kept = new KeptTable(spark, view)
    Seq(
      "INSERT INTO rides VALUES (1, 'Oslo', 5), (2, 'Rome', 7), (3, NULL, 1)",
      "UPDATE rides SET city = 'Rome', fare = fare + 1 WHERE id = 1",
      "DELETE FROM rides WHERE id > 1").foreach { statement =>
      execute(statement)
      kept.check(spark.table("stored"), s"after $statement")
    }
  }

  test("an unchanged snapshot is no batch") {
    val folder = QuickFileSystem.temporaryDirectory()
    write(folder, "(1, 'Oslo', 5)")
    read(folder, "")
    val query = spark
      .sql(s"SELECT * FROM to_changelog(TABLE($view))")
      .writeStream
      .format("noop")
      .option("checkpointLocation", QuickFileSystem.temporaryDirectory().getPath)
      .trigger(Trigger.ProcessingTime(0))
      .start()
    query.processAllAvailable()
    query.processAllAvailable()
    assert(query.lastProgress.batchId <= 1)
    query.stop()
  }

  test("options are checked") {
    def load(options: (String, String)*) =
      spark.readStream.format("changelog-snapshots").options(options.toMap).load()
    checkError("CHANGELOG_ARGUMENT_INVALID", "argument" -> "query")(load())
    checkError("CHANGELOG_ARGUMENT_INVALID", "argument" -> "query") {
      load("query" -> "SELECT 1", "table" -> "t")
    }
    checkError("CHANGELOG_ARGUMENT_INVALID", "argument" -> "query") {
      load("query" -> "SELECT 'insert' AS _change_type")
    }
  }
}
