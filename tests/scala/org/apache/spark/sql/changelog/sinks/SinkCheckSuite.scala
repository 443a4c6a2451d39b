// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.DataFrame

import org.apache.spark.sql.changelog.testing._

/** What sinks refuse, and that they do so when the query is started. */
class SinkCheckSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  private val jdbc = Map(
    "url" -> "jdbc:h2:mem:checks;DB_CLOSE_DELAY=-1",
    "dbtable" -> "t",
    "createTable" -> "true")

  private lazy val views: Unit = {
    new RawStream(spark, "raw", "op STRING, id INT, city STRING, fare INT")
    new RawStream(spark, "plain", "id INT, city STRING")
    spark.sql("SELECT * FROM from_changelog(TABLE(raw), 'op', 'id')").createOrReplaceTempView("t")
    spark.sql("SELECT * FROM from_changelog(TABLE(raw), 'op')").createOrReplaceTempView("bag")
  }

  private def changes(sql: String, arguments: String = ""): DataFrame = {
    views
    spark.sql(s"SELECT * FROM to_changelog(TABLE($sql)$arguments)")
  }

  private def start(changes: DataFrame, format: String, options: Map[String, String]): Unit =
    changes.writeStream
      .format(format)
      .options(options)
      .option("checkpointLocation", QuickFileSystem.temporaryDirectory().getPath)
      .start()
      .stop()

  private val formats = Map(
    "changelog-jdbc" -> jdbc,
    "changelog-kafka" -> Map("topic" -> "t", "kafka.bootstrap.servers" -> "127.0.0.1:9"),
    "changelog-table" -> Map("table" -> "t"))

  for ((format, options) <- formats) {
    test(s"$format refuses rows that change and have no key, naming what changes them") {
      checkError(
        "CHANGELOG_SINK_NEEDS_APPEND",
        "sink" -> format,
        "producer" -> "ChangelogSource [id, city, fare]",
        "kinds" -> "update and delete")(start(changes("SELECT * FROM bag"), format, options))
      start(changes("SELECT * FROM plain"), format, options)
      start(changes("SELECT * FROM t"), format, options)
    }

    test(s"$format refuses a key that does not identify a row") {
      val all = options + ("key" -> "city")
      checkError("CHANGELOG_SINK_KEY_NOT_UNIQUE", "key" -> "(city)", "keys" -> "(id)")(
        start(changes("SELECT * FROM t"), format, all))
      start(changes("SELECT city, count(*) FROM t GROUP BY city"), format, all)
      start(changes("SELECT * FROM t"), format, options + ("key" -> "ID, city"))
    }

    test(s"$format refuses what is no changelog") {
      views
      val error = checkError("CHANGELOG_SINK_CHANGE_TYPE_MISSING", "columns" -> "id, city") {
        start(spark.table("plain"), format, options)
      }
      assert(error.getMessage.contains("Apply to_changelog"))
    }
  }

  test(
    "a Kafka address at which nothing listens is named, by a source at the start and by the sink") {
    val nowhere = "127.0.0.1:9,nowhere.invalid:9092,nowhere"
    spark.readStream
      .format("kafka")
      .option("kafka.bootstrap.servers", nowhere)
      .option("subscribe", "t")
      .load()
      .createOrReplaceTempView("topic")
    val refused = checkError("CHANGELOG_KAFKA_NOT_REACHABLE", "servers" -> nowhere) {
      start(changes("SELECT * FROM topic"), "noop", Map.empty)
    }
    assert(refused.getMessage.linesIterator.size == 1, refused.getMessage)
    val feed = Feed("f", "id INT", key = Seq("id"))
    val query = new KeptQuery(spark, feed, "SELECT id FROM f", null)
    query.start("changelog-kafka", formats("changelog-kafka") + ("kafka.max.block.ms" -> "500"))
    checkError("CHANGELOG_KAFKA_NOT_REACHABLE", "servers" -> "127.0.0.1:9") {
      query.check("+I 1")
    }
  }

  test("rows of a batch query are refused, and so is CREATE TABLE") {
    val rows = spark.sql("SELECT 1 AS id, INTERVAL 1 DAY AS length, PARSE_JSON('1') AS json")
    ChangelogSinkProvider.formats.foreach { format =>
      checkError("CHANGELOG_SINK_NEEDS_STREAM", "sink" -> format) {
        rows.write.format(format).options(formats.getOrElse(format, Map.empty)).save()
      }
      checkError("CHANGELOG_SINK_NEEDS_STREAM", "sink" -> format) {
        spark.sql(s"CREATE TABLE written USING `$format` AS SELECT 1 AS id")
      }
    }
  }

  test("a key that is not among the columns is refused") {
    checkError("CHANGELOG_COLUMN_NOT_FOUND", "column" -> "town", "argument" -> "key") {
      start(changes("SELECT * FROM t"), "changelog-jdbc", jdbc + ("key" -> "town"))
    }
  }

  test("the key that to_changelog was given is the sink's") {
    val query = changes("SELECT *, id + 1 AS next FROM t", ", mode => 'upsert', key => 'id'")
    start(query, "changelog-jdbc", jdbc)
    checkError("CHANGELOG_SINK_KEY_NOT_UNIQUE") {
      start(query, "changelog-jdbc", jdbc + ("key" -> "next"))
    }
  }

  test("a key of one of several changelogs says nothing of the rows of all") {
    views
    val query = spark.sql("""SELECT * FROM to_changelog(TABLE(SELECT * FROM t))
      UNION ALL SELECT * FROM to_changelog(TABLE(SELECT * FROM t WHERE fare > 1))""")
    checkError("CHANGELOG_SINK_OPTION_INVALID", "option" -> "key") {
      start(query, "changelog-jdbc", jdbc)
    }
  }

  test("a key that to_changelog is told in vain is refused too") {
    val query = changes("SELECT * FROM t", ", key => 'city'")
    checkError("CHANGELOG_SINK_KEY_NOT_UNIQUE", "key" -> "(city)") {
      start(query, "changelog-jdbc", jdbc)
    }
  }

  test("options that are missing or make no sense are refused, without their neighbours") {
    val query = changes("SELECT * FROM t")
    def refused(format: String, option: String, options: (String, String)*): Unit = {
      val all = Map("password" -> "pw-secret") ++ options
      val error = checkError("CHANGELOG_SINK_OPTION_INVALID", "option" -> option) {
        start(query, format, all)
      }
      assert(!error.getMessage.contains("pw-secret"))
    }
    refused("changelog-jdbc", "url", "dbtable" -> "t")
    refused("changelog-jdbc", "dbtable", "url" -> jdbc("url"))
    refused("changelog-jdbc", "numPartitions", (jdbc + ("numPartitions" -> "0")).toSeq: _*)
    refused("changelog-jdbc", "createTable", (jdbc + ("createTable" -> "maybe")).toSeq: _*)
    refused("changelog-kafka", "topic")
    refused("changelog-kafka", "value.format", "topic" -> "t", "value.format" -> "xml")
    refused("changelog-kafka", "schemaRegistry", "topic" -> "t", "value.format" -> "avro")
    refused("changelog-table", "table")
    refused("changelog-memory", "queryName")
    refused("changelog-fanout", "sinks")
    refused("changelog-fanout", "a.format", "sinks" -> "a")
    refused(
      "changelog-fanout",
      "a.format",
      "sinks" -> "a",
      "a.format" -> "parquet",
      "path" -> "p")
  }

  test("Debezium's format needs old rows") {
    val options = formats("changelog-kafka") + ("value.format" -> "debezium-json")
    start(changes("SELECT * FROM t"), "changelog-kafka", options)
    checkError("CHANGELOG_SINK_OPTION_INVALID", "option" -> "value.format") {
      start(changes("SELECT * FROM t", ", mode => 'upsert'"), "changelog-kafka", options)
    }
  }

  test("a table that does not exist is created only if asked for") {
    val query =
      new KeptQuery(spark, Feed("f", "id INT", key = Seq("id")), "SELECT id FROM f", null)
    checkError("CHANGELOG_SINK_TABLE_NOT_FOUND", "table" -> "missing") {
      query.start("changelog-jdbc", jdbc ++ Map("dbtable" -> "missing", "createTable" -> "false"))
    }
  }

  test("a driver that is not there is told before data come") {
    def refused(options: (String, String)*)(kind: String, driver: String): Unit =
      checkError("CHANGELOG_SINK_DRIVER_NOT_FOUND", "kind" -> kind, "driver" -> driver) {
        start(changes("SELECT * FROM t"), "changelog-jdbc", jdbc ++ options)
      }
    refused("url" -> "jdbc:nowhere:x")("nowhere", "")
    refused("url" -> "jdbc:oracle:thin:@db:1521/x")(
      "oracle",
      " of the class oracle.jdbc.OracleDriver")
    refused("driver" -> "org.example.Driver")("h2", " of the class org.example.Driver")
  }

  test("an option that is nearly one of the sink's is refused, others are passed on") {
    def refused(format: String, option: String, meant: String): Unit =
      // Spark gives sinks the names of options in small letters
      checkError(
        "CHANGELOG_SINK_OPTION_UNKNOWN",
        "option" -> option.toLowerCase,
        "meant" -> meant) {
        start(changes("SELECT * FROM t"), format, formats(format) + (option -> "x"))
      }
    refused("changelog-jdbc", "createTables", "createTable")
    refused("changelog-jdbc", "pasword", "password")
    refused("changelog-kafka", "valueformat", "value.format")
    refused("changelog-table", "create_table", "createTable")
    start(changes("SELECT * FROM t"), "changelog-jdbc", jdbc + ("ApplicationName" -> "x"))
  }
}
