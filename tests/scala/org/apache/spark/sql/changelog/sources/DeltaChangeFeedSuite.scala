// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** The change data feed of a Delta table, with Delta's own extension in the same session. */
class DeltaChangeFeedSuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf =
      ChangelogSession.DeltaConf ++ ChangelogSession.MostlyInterpreted)

  private val view =
    "SELECT city, count(*) AS n, sum(fare) AS total, max(id) AS last FROM rides GROUP BY city"

  test("UPDATE, DELETE and MERGE of a Delta table keep a view over it current") {
    val path = QuickFileSystem.temporaryDirectory().getPath
    val table = s"delta.`$path`"
    spark.sql(
      s"CREATE TABLE $table (id INT, city STRING, fare INT) USING delta " +
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    spark.readStream
      .format("delta")
      .option("readChangeFeed", "true")
      .option("startingVersion", "0")
      .load(path)
      .drop("_commit_version", "_commit_timestamp")
      .createOrReplaceTempView("rides_changes")
    spark
      .sql("SELECT * FROM from_changelog(TABLE(rides_changes), '_change_type', key => 'id')")
      .createOrReplaceTempView("rides")
    val kept = new KeptTable(spark, view)
    Seq(
      s"INSERT INTO $table VALUES (1, 'Oslo', 5), (2, 'Rome', 7), (3, NULL, 1), (4, 'Oslo', NULL)",
      s"UPDATE $table SET city = 'Bern', fare = fare + 1 WHERE id <= 2",
      s"DELETE FROM $table WHERE id = 3",
      s"""MERGE INTO $table t USING (SELECT * FROM VALUES (1, 'Rome', 9), (5, 'Rome', 3) AS v(id, city, fare)) s
         |ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
         |WHEN NOT MATCHED BY SOURCE AND t.city = 'Oslo' THEN DELETE""".stripMargin,
      s"OPTIMIZE $table",
      s"INSERT OVERWRITE $table VALUES (7, 'Nice', 1)").foreach { statement =>
      spark.sql(statement)
      kept.check(spark.read.format("delta").load(path), s"after $statement")
    }
  }
}
