// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.functions._
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.sinks.KilledWriter.{Query, rounds}
import org.apache.spark.sql.changelog.testing._

/** Sinks hold what batch Spark gives, however often the process that writes is killed. */
class SinkKillSuite extends AnyFunSuite with ChangelogSession {
  private val byCity = "SELECT city, count(*) AS n, sum(fare) AS total FROM rides GROUP BY city"
  private val delta = Map(
    "spark.sql.extensions" ->
      "io.sparkchangelog.ChangelogExtensions,io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog" -> "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions" -> "1")

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf = delta)

  private def jdbc(address: Map[String, String], table: String) =
    Seq("url", "user", "password").map(name => name -> address(name)).toMap ++
      Map("dbtable" -> table, "createTable" -> "true")

  /** A table, empty as long as there is none, read by its own driver. */
  private def read(options: Map[String, String], columns: String): Seq[Row] = {
    val connection =
      java.sql.DriverManager.getConnection(options("url"), options("user"), options("password"))
    try {
      val table = options("dbtable")
      val exists = connection.getMetaData.getTables(null, null, table, null).next()
      if (!exists) Nil
      else {
        val rows = connection.createStatement().executeQuery(s"SELECT $columns FROM $table")
        val width = rows.getMetaData.getColumnCount
        Iterator
          .continually(rows)
          .takeWhile(_.next())
          .map(row => Row.fromSeq((1 to width).map(row.getObject)))
          .toList
      }
    } finally connection.close()
  }

  test("PostgreSQL, a batch at once") {
    val options = jdbc(Services.postgres(), "killed")
    new KilledWriter(spark, Seq(Query(byCity, "changelog-jdbc", options)))
      .run(rounds(few = 1), atomic = true)(read(options, "city, n, total").map(row =>
        Row(row(0), row(1), row(2))))
  }

  // kills take long: several writers differ from one by their keys only, databases by their statements
  if (KilledWriter.isLong)
    Seq("PostgreSQL" -> (() => Services.postgres()), "MariaDB" -> (() => Services.mariadb()))
      .foreach { case (database, address) =>
        test(s"$database, three writers to other keys of one table, each in two partitions") {
          val options = jdbc(address(), "shared") + ("numPartitions" -> "2")
          val queries = (0 to 2).map { part =>
            val sql = s"SELECT id, city, fare FROM rides WHERE id % 3 = $part"
            Query(sql, "changelog-jdbc", options)
          }
          new KilledWriter(spark, queries)
            .run(rounds(few = 1), atomic = false)(read(options, "id, city, fare"))
        }
      }

  test("Delta") {
    val path = QuickFileSystem.temporaryDirectory().getPath + "/killed"
    val options = Map("path" -> path, "createTable" -> "true")
    def rows = if (!new java.io.File(path, "_delta_log/00000000000000000000.json").exists()) Nil
    else spark.read.format("delta").load(path).select("city", "n", "total").collect().toSeq
    new KilledWriter(spark, Seq(Query(byCity, "changelog-table", options)), delta)
      .run(rounds(few = 1), atomic = true)(rows)
  }

  test("Kafka, the newest record of each key") {
    val kafka = Map("kafka.bootstrap.servers" -> Services.kafka()("bootstrap"))
    val options = kafka + ("topic" -> "killed")
    val row = StructType.fromDDL("city STRING, n BIGINT, total BIGINT")
    def newest = spark.read
      .format("kafka")
      .options(kafka)
      .option("subscribe", "killed")
      .load()
      .groupBy("key")
      .agg(max_by(struct("value"), struct("partition", "offset")).as("newest"))
      .where("newest.value IS NOT NULL")
      .select(from_json(col("newest.value").cast("string"), row).as("row"))
      .select("row.*")
      .collect()
      .toSeq
    new KilledWriter(spark, Seq(Query(byCity, "changelog-kafka", options)))
      .run(rounds(few = 1), atomic = false)(newest)
  }
}
