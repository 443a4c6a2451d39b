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

  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.DeltaConf)

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

  // kills take long: several writers differ from one by their keys only, databases by their statements
  Seq("PostgreSQL" -> (() => Services.postgres()), "MariaDB" -> (() => Services.mariadb()))
    .filter { case (database, _) => KilledWriter.isLong || database == "PostgreSQL" }
    .foreach { case (database, address) =>
      test(s"$database, a batch at once") {
        val options = jdbc(address(), "killed")
        new KilledWriter(spark, Seq(Query(byCity, "changelog-jdbc", options)))
          .run(rounds(few = 1), atomic = true)(read(options, "city, n, total"))
      }

      if (KilledWriter.isLong)
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

  private def delta(path: String): Seq[Row] =
    if (!new java.io.File(path, "_delta_log/00000000000000000000.json").exists()) Nil
    else spark.read.format("delta").load(path).select("city", "n", "total").collect().toSeq

  test("Delta") {
    val path = QuickFileSystem.temporaryDirectory().getPath + "/killed"
    val options = Map("path" -> path, "createTable" -> "true")
    new KilledWriter(
      spark,
      Seq(Query(byCity, "changelog-table", options)),
      ChangelogSession.DeltaConf)
      .run(rounds(few = 1), atomic = true)(delta(path))
  }

  if (KilledWriter.isLong) test("Iceberg") {
    val home = QuickFileSystem.temporaryDirectory()
    val catalog = Map(
      "spark.sql.catalog.iceberg" -> classOf[IcebergCatalog].getName,
      "spark.sql.catalog.iceberg.home" -> home.getPath)
    catalog.foreach { case (name, value) => spark.conf.set(name, value) }
    def stored =
      if (!spark.catalog.tableExists("iceberg.killed")) Nil
      else spark.sql("SELECT city, n, total FROM iceberg.killed").collect().toSeq
    val options =
      Map("table" -> "iceberg.killed", "provider" -> "iceberg", "createTable" -> "true")
    new KilledWriter(spark, Seq(Query(byCity, "changelog-table", options)), catalog)
      .run(rounds(few = 1), atomic = true)(stored)
  }

  // rows that only come, each once, need no sink of ours
  private val distinct = "SELECT DISTINCT city, fare, op FROM changes"

  Seq("delta" -> "_delta_log/00000000000000000000.json", "parquet" -> "_spark_metadata/0")
    .filter { case (format, _) => KilledWriter.isLong || format == "parquet" }
    .foreach { case (format, first) =>
      test(s"rows that only come, appended to files in $format") {
        val path = QuickFileSystem.temporaryDirectory().getPath + "/appended"
        def stored =
          if (!new java.io.File(path, first).exists()) Nil
          else {
            val rows = spark.read.format(format).load(path)
            assert(rows.where("_change_type <> 'insert'").isEmpty)
            rows.drop("_change_type").collect().toSeq
          }
        val query = Query(distinct, format, Map("path" -> path))
        new KilledWriter(spark, Seq(query), ChangelogSession.DeltaConf)
          .run(rounds(few = 1), atomic = true)(stored)
      }
    }

  private lazy val kafka = Map("kafka.bootstrap.servers" -> Services.kafka()("bootstrap"))
  private val columns = "city STRING, n BIGINT, total BIGINT"

  private def records(topic: String) =
    spark.read.format("kafka").options(kafka).option("subscribe", topic).load()

  test("Kafka, the newest record of each key") {
    def newest = records("killed")
      .groupBy("key")
      .agg(max_by(struct("value"), struct("partition", "offset")).as("newest"))
      .where("newest.value IS NOT NULL")
      .select(
        from_json(col("newest.value").cast("string"), StructType.fromDDL(columns)).as("row"))
      .select("row.*")
      .collect()
      .toSeq
    new KilledWriter(spark, Seq(Query(byCity, "changelog-kafka", kafka + ("topic" -> "killed"))))
      .run(rounds(few = 1), atomic = false)(newest)
  }

  if (KilledWriter.isLong) {
    test("Kafka, Debezium's change events") {
      def table = {
        records("killed_events").createOrReplaceTempView("events")
        spark
          .sql(
            s"SELECT * FROM from_debezium(TABLE(events), '$columns', key => 'city', " +
              "sequence_by => 'offset')")
          .collect()
          .toSeq
      }
      val options = kafka ++ Map("topic" -> "killed_events", "value.format" -> "debezium-json")
      // a key can't be NULL where it is read
      val sql = byCity.replace("GROUP BY", "WHERE city IS NOT NULL GROUP BY")
      new KilledWriter(spark, Seq(Query(sql, "changelog-kafka", options)))
        .run(rounds(few = 1), atomic = false)(table)
    }

    test("several sinks, PostgreSQL and Delta") {
      val path = QuickFileSystem.temporaryDirectory().getPath + "/fanned"
      val database = jdbc(Services.postgres(), "fanned")
      val sinks = Seq(
        "a" -> (database + ("format" -> "changelog-jdbc")),
        "b" -> Map("format" -> "changelog-table", "path" -> path, "createTable" -> "true"))
      val options = sinks.flatMap { case (sink, options) =>
        options.map { case (name, value) => s"$sink.$name" -> value }
      }.toMap + ("sinks" -> "a,b")
      def stored = read(database, "city, n, total")
      new KilledWriter(
        spark,
        Seq(Query(byCity, "changelog-fanout", options)),
        ChangelogSession.DeltaConf)
        .run(rounds(few = 1), atomic = true)(delta(path))
      assert(RowMultiset.of(stored) == RowMultiset.of(delta(path)))
    }
  }
}
