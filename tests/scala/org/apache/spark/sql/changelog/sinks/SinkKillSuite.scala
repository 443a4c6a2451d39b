// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import java.nio.file.Files

import scala.jdk.CollectionConverters._
import scala.util.{Random, Using}

import org.apache.kafka.clients.admin.Admin
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.functions._
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Column, DataFrame}

import org.apache.spark.sql.changelog.sinks.KilledQueries.{Sink, hasKey}
import org.apache.spark.sql.changelog.sinks.KilledWriter.{Query, rounds}
import org.apache.spark.sql.changelog.testing._

/**
 * Sinks hold what batch Spark gives, whatever query they keep, and however often the process that writes
 * is killed.
 */
class SinkKillSuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.DeltaConf)

  private def jdbc(address: Map[String, String], table: String) =
    Seq("url", "user", "password").map(name => name -> address(name)).toMap ++
      Map("dbtable" -> table, "createTable" -> "true")

  private def isThere(address: Map[String, String], table: String): Boolean =
    DatabaseTable.connected(address) {
      _.getMetaData.getTables(null, null, table, null).next()
    }

  /** @param name what decides, with the seed, which queries are drawn */
  private def killed(name: String, sink: Sink, conf: Map[String, String] = Map.empty): Unit = {
    val random = new Random(KilledWriter.seed * 31 + name.hashCode)
    val queries = new KilledQueries(spark, sink, random, conf)
    queries.run(rounds(few = 1))
    note(queries.told)
  }

  private def stored(address: Map[String, String], table: String): Option[DataFrame] =
    Option.when(isThere(address, table))(DatabaseTable.read(spark, jdbc(address, table), table))

  // kills take long: several writers differ from one by their keys only, databases by their statements
  Seq("PostgreSQL" -> (() => Services.postgres()), "MariaDB" -> (() => Services.mariadb()))
    .filter(_ => KilledWriter.isLong)
    .foreach { case (database, address) =>
      test(s"$database, a batch at once") {
        killed(
          database,
          Sink(
            "changelog-jdbc",
            jdbc(address(), _),
            (table, _) => stored(address(), table),
            isAtomic = true,
            hasKey))
      }

      if (KilledWriter.isLong)
        test(s"$database, three writers to other keys of one table, each in two partitions") {
          val options = jdbc(address(), "shared") + ("numPartitions" -> "2")
          val queries = (0 to 2).map { part =>
            val sql = s"SELECT id, city, fare FROM rides WHERE id % 3 = $part"
            Query(sql, "changelog-jdbc", options)
          }
          def rows = stored(address(), "shared").toSeq
            .flatMap(_.select("id", "city", "fare").collect().toSeq)
          new KilledWriter(spark, queries).run(rounds(few = 1), atomic = false)(rows)
        }
    }

  private val folder = QuickFileSystem.temporaryDirectory().toPath

  private def path(table: String): String = folder.resolve(table).toString

  /** A table of files, once there is the first file of its log. */
  private def files(format: String, log: String)(table: String): Option[DataFrame] =
    if (!Files.exists(folder.resolve(table).resolve(log))) None
    else Some(spark.read.format(format).load(path(table)))

  private val delta = files("delta", "_delta_log/00000000000000000000.json") _

  private def deltaOptions(table: String): Map[String, String] =
    Map("path" -> path(table), "createTable" -> "true", "countRows" -> "true")

  test("Delta") {
    killed(
      "Delta",
      Sink(
        "changelog-table",
        deltaOptions,
        (table, _) => delta(table),
        isAtomic = true,
        _ => true),
      ChangelogSession.DeltaConf)
  }

  if (KilledWriter.isLong) test("Iceberg") {
    val home = QuickFileSystem.temporaryDirectory()
    val catalog = Map(
      "spark.sql.catalog.iceberg" -> classOf[IcebergCatalog].getName,
      "spark.sql.catalog.iceberg.home" -> home.getPath,
      // the writer is another process, whose commits a cache does not see
      "spark.sql.catalog.iceberg.cache-enabled" -> "false")
    catalog.foreach { case (name, value) => spark.conf.set(name, value) }
    def name(table: String) = s"iceberg.$table"
    killed(
      "Iceberg",
      Sink(
        "changelog-table",
        table =>
          Map(
            "table" -> name(table),
            "provider" -> "iceberg",
            "createTable" -> "true",
            "countRows" -> "true"),
        (table, _) =>
          Option.when(spark.catalog.tableExists(name(table)))(spark.table(name(table))),
        isAtomic = true,
        _ => true),
      catalog)
  }

  // rows that only come, each once, need no sink of ours
  Seq("delta" -> "_delta_log/00000000000000000000.json", "parquet" -> "_spark_metadata/0")
    .filter(_ => KilledWriter.isLong)
    .foreach { case (format, log) =>
      test(s"rows that only come, appended to files in $format") {
        def inserted(table: String) = files(format, log)(table).map { rows =>
          assert(rows.where("_change_type <> 'insert'").isEmpty)
          rows
        }
        killed(
          s"appended in $format",
          Sink(
            format,
            table => Map("path" -> path(table)),
            (table, _) => inserted(table),
            isAtomic = true,
            PlannedChanges.isInsertOnly),
          ChangelogSession.DeltaConf)
      }
    }

  private lazy val kafka = Map("kafka.bootstrap.servers" -> Services.kafka()("bootstrap"))

  private def isTopic(name: String): Boolean = {
    val settings = Map[String, AnyRef]("bootstrap.servers" -> Services.kafka()("bootstrap"))
    Using.resource(Admin.create(settings.asJava))(_.listTopics().names().get().contains(name))
  }

  /** The committed records of a topic. */
  private def committed(topic: String): DataFrame = spark.read
    .format("kafka")
    .options(kafka)
    .option("subscribe", topic)
    .option("includeHeaders", "true")
    .option("kafka.isolation.level", "read_committed")
    .load()

  /** The newest record of each key of a topic, as JSON. */
  private def newest(topic: String): DataFrame = committed(topic)
    .groupBy("key")
    .agg(max_by(struct("value"), struct("partition", "offset")).as("newest"))
    .where("newest.value IS NOT NULL")
    .select(col("newest.value").cast("string").as("json"))

  private def topic(options: Map[String, String])(rowOf: (Column, StructType) => Column) = Sink(
    "changelog-kafka",
    table => kafka ++ options + ("topic" -> table),
    (table, schema) =>
      // a process that is killed early has not made the topic
      Option.when(isTopic(table)) {
        val rows = newest(table).select(rowOf(col("json"), schema).as("row"))
        rows.where("row IS NOT NULL").select("row.*")
      },
    isAtomic = false,
    _.upsertKeys.exists(_.nonEmpty))

  if (KilledWriter.isLong) {
    test("Kafka, the newest record of each key") {
      killed("Kafka", topic(Map.empty)((json, schema) => from_json(json, schema)))
    }

    test("Kafka, each record once") {
      val sink =
        topic(Map("delivery" -> "exactly-once"))((json, schema) => from_json(json, schema))
      def readOnce(table: String, schema: StructType) = sink.read(table, schema).map { rows =>
        val batch = filter(col("headers"), _.getField("key") === "spark-changelog-batch")
        val twice = committed(table).groupBy(batch, col("key")).count().where("count > 1")
        assert(twice.isEmpty)
        rows
      }
      killed("Kafka once", sink.copy(read = readOnce, isAtomic = true))
    }

    test("Kafka, Debezium's change events") {
      val sink = topic(Map("value.format" -> "debezium-json")) { (json, schema) =>
        from_json(json, new StructType().add("after", schema)).getField("after")
      }
      killed(
        "Debezium",
        sink.copy(takes = output => sink.takes(output) && output.sendsUpdateBefore))
    }

    test("several sinks, PostgreSQL and Delta") {
      def options(table: String) = Seq(
        "a" -> (jdbc(Services.postgres(), table) + ("format" -> "changelog-jdbc")),
        "b" -> (deltaOptions(table) + ("format" -> "changelog-table"))).flatMap {
        case (sink, options) =>
          options.map { case (name, value) => s"$sink.$name" -> value }
      }.toMap + ("sinks" -> "a,b")
      def sink(read: String => Option[DataFrame]) =
        Sink("changelog-fanout", options, (table, _) => read(table), isAtomic = true, hasKey)
      killed("the first of several", sink(delta), ChangelogSession.DeltaConf)
      killed(
        "the second of several",
        sink(stored(Services.postgres(), _)),
        ChangelogSession.DeltaConf)
    }
  }
}
