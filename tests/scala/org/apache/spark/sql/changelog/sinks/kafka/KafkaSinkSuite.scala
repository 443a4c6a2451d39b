// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.kafka

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.functions._
import org.apache.spark.sql.{DataFrame, Row}

import org.apache.spark.sql.changelog.testing._

/** Topics of newest rows, and of changes in Debezium's form. */
class KafkaSinkSuite extends AnyFunSuite with KafkaTopics with ErrorChecks {
  private val rides = Feed("rides", "id INT, city STRING, fare INT", key = Seq("id"))
  private val byCity = "SELECT city, count(*) AS n, sum(fare) AS total FROM rides GROUP BY city"
  private val row = "city STRING, n BIGINT, total BIGINT"

  private def records(topic: String): DataFrame = spark.read
    .format("kafka")
    .options(broker)
    .option("subscribe", topic)
    .option("includeHeaders", "true")
    .load()
    .selectExpr("*", "CAST(key AS STRING) AS k", "CAST(value AS STRING) AS v")

  for (mode <- Seq("retract", "upsert"))
    test(s"the newest record of each key is its row, mode $mode") {
      val topic = s"totals_$mode"
      val query = new KeptQuery(spark, rides, byCity, newest(topic, row))
      val start =
        () => query.start("changelog-kafka", broker + ("topic" -> topic), s", mode => '$mode'")
      start()
      query.check("+I 1 Oslo 5", "+I 2 Rome 7", "+I 3 NULL NULL")
      query.check("-U 1 Oslo 5", "+U 1 Rome 5", "-D 3 NULL NULL")
      val all = records(topic).collect()
      assert(all.length == 6, "one record per key and batch")
      assert(
        all.map(_.getAs[String]("k")).toSet ==
          Set("{\"city\":\"Oslo\"}", "{\"city\":\"Rome\"}", "{\"city\":null}"))
      assert(
        all
          .flatMap(r => Option(r.getAs[String]("v")))
          .contains("{\"city\":null,\"n\":1,\"total\":null}"))
      query.forgetLastBatch()
      start()
      query.check()
      query.check("+I 4 Oslo 1")
      query.stop()
    }

  test("a query without a key has a record of each row, with its count") {
    def copies = records("copies")
      .groupBy("k")
      .agg(max_by(struct("v"), struct("partition", "offset")).as("newest"))
      .selectExpr("from_json(newest.v, 'city STRING, fare INT, copies BIGINT') AS r")
      .where("r IS NOT NULL")
      .selectExpr("r.city", "r.fare", "explode(sequence(1L, r.copies))")
      .drop("col")
    val query = new KeptQuery(spark, rides, "SELECT city, fare FROM rides", copies)
    val (options, counting) =
      (broker + ("topic" -> "copies"), ", mode => 'upsert', count_rows => 'copies'")
    query.start("changelog-kafka", options, counting)
    query.check("+I 1 Oslo 5", "+I 2 Oslo 5", "+I 3 NULL 5")
    query.check("-D 1 Oslo 5", "-U 3 NULL 5", "+U 3 Rome NULL")
    query.forgetLastBatch()
    query.start("changelog-kafka", options, counting)
    query.check("-D 2 Oslo 5", "+I 6 NULL 5")
    query.stop()
  }

  test("a record is there once with exactly-once") {
    val once = broker + ("topic" -> "once") + ("delivery" -> "exactly-once")
    val query = new KeptQuery(spark, rides, byCity, newest("once", row))
    query.start("changelog-kafka", once)
    query.check("+I 1 Oslo 5", "+I 2 Rome 7")
    query.check("-U 1 Oslo 5", "+U 1 Rome 5")
    assert(records("once").count() == 4)
    query.forgetLastBatch()
    query.start("changelog-kafka", once)
    query.check()
    assert(records("once").count() == 4, "a batch that comes again is skipped")
    query.check("+I 3 Bern 1")
    query.stop()
    checkError("CHANGELOG_SINK_OPTION_INVALID", "option" -> "delivery", "value" -> "once") {
      query.start("changelog-kafka", once + ("delivery" -> "once"))
    }
    checkError("CHANGELOG_SINK_OPTION_INVALID", "option" -> "numPartitions", "value" -> "2") {
      query.start("changelog-kafka", once + ("numPartitions" -> "2"))
    }
  }

  test("every record says by which batch it was written") {
    val query = new KeptQuery(spark, rides, byCity, newest("marked", row))
    val id = query.start("changelog-kafka", broker + ("topic" -> "marked")).id
    query.check("+I 1 Oslo 5")
    query.check("+I 2 Oslo 5")
    query.forgetLastBatch()
    query.start("changelog-kafka", broker + ("topic" -> "marked"))
    query.check()
    query.stop()
    val marks = records("marked")
      .selectExpr("headers[0].key", "CAST(headers[0].value AS STRING)")
      .collect()
      .toSeq
    assert(marks == Seq(0, 1, 1).map(batch => Row("spark-changelog-batch", s"$id/$batch")))
  }

  test("Debezium's form has the old and the new row") {
    val query = new KeptQuery(spark, rides, byCity, null)
    query.start(
      "changelog-kafka",
      broker ++ Map("topic" -> "dbz", "value.format" -> "debezium-json"))
    def next(changes: String*): Set[String] = {
      val before = records("dbz").count()
      query.add(changes: _*)
      query.processAll()
      records("dbz")
        .orderBy("timestamp")
        .collect()
        .drop(before.toInt)
        .map(_.getAs[String]("v"))
        .toSet
    }
    spark.sql("SELECT 1").collect()
    query.add("+I 1 Oslo 5")
    query.processAll()
    assert(
      records("dbz").head().getAs[String]("v") ==
        """{"before":null,"after":{"city":"Oslo","n":1,"total":5},"op":"c"}""")
    assert(next("+I 2 Oslo NULL") == Set(
      """{"before":{"city":"Oslo","n":1,"total":5},"after":{"city":"Oslo","n":2,"total":5},"op":"u"}"""))
    assert(
      next("-D 1 Oslo 5", "-D 2 Oslo NULL", "+I 3 Rome 1") == Set(
        """{"before":{"city":"Oslo","n":2,"total":5},"after":null,"op":"d"}""",
        """{"before":null,"after":{"city":"Rome","n":1,"total":1},"op":"c"}"""))
    query.stop()
  }

  test("from_debezium reads Debezium's form as the same table, also what was sent twice") {
    records("round").createOrReplaceTempView("round")
    val read = spark.sql(s"""
      SELECT * FROM from_debezium(TABLE(round), '$row', key => 'city', sequence_by => 'offset')""")
    val query = new KeptQuery(spark, rides, byCity, spark.sql("SELECT * FROM kept"))
    read.createOrReplaceTempView("kept")
    val options = broker ++ Map("topic" -> "round", "value.format" -> "debezium-json")
    query.start("changelog-kafka", options)
    query.check("+I 1 Oslo 5", "+I 2 Rome 7", "+I 3 Bern 1")
    query.check("-U 1 Oslo 5", "+U 1 Rome 5", "-D 3 Bern 1")
    query.forgetLastBatch()
    query.start("changelog-kafka", options)
    query.check()
    query.check("+I 4 Oslo 1", "-D 2 Rome 7")
    query.stop()
  }

  private val registry = new RegistryStub

  override protected def afterAll(): Unit = {
    registry.stop()
    super.afterAll()
  }

  private def avro(topic: String, format: String): Map[String, String] =
    broker ++ Map("topic" -> topic, "value.format" -> format, "schemaRegistry" -> registry.url)

  test(
    "from_upsert_kafka and from_debezium read Avro as the same table, also what was sent twice") {
    val values =
      "count(*) AS n, sum(fare) AS total, cast(sum(fare) AS DECIMAL(12,2)) AS exact, max(array(fare)) AS l, " +
        "max(struct(fare, id)) AS s, timestamp_seconds(max(fare)) AS at, date_from_unix_date(max(fare)) AS day"
    val query = s"SELECT city, $values FROM rides GROUP BY city"
    val columns =
      "city STRING, n BIGINT, total BIGINT, exact DECIMAL(12,2), l ARRAY<INT>, s STRUCT<fare: INT, id: INT>, at TIMESTAMP, day DATE"
    Seq(
      "avro" -> ("from_upsert_kafka", ""),
      "debezium-avro" -> ("from_debezium", ", sequence_by => 'offset'")).foreach {
      case (format, (function, more)) =>
        val topic = s"in_$format"
        createTopic(topic)
        def read = {
          batch(topic).createOrReplaceTempView("written")
          spark.sql(
            s"SELECT * FROM $function(TABLE(written), '$columns', key => 'city', schema_registry => '${registry.url}'$more)")
        }
        val kept = new KeptQuery(spark, rides, query, read)
        val options = avro(topic, format)
        kept.start("changelog-kafka", options)
        kept.check("+I 1 Oslo 5", "+I 2 Rome 7", "+I 3 Kyiv 1", "+I 4 Bern NULL")
        kept.check("-U 1 Oslo 5", "+U 1 Rome 5", "-D 3 Kyiv 1")
        kept.forgetLastBatch()
        kept.start("changelog-kafka", options)
        kept.check()
        kept.check("+I 5 Oslo 1", "-D 2 Rome 7")
        kept.stop()
        val subjects = Seq("key", "value").map(part => registry.subjects(s"$topic-$part"))
        assert(subjects.forall(_.size == 1), "an equal schema is registered once")
        val ids = batch(topic)
          .selectExpr("conv(hex(substring(value, 1, 5)), 16, 10)")
          .where("value IS NOT NULL")
          .distinct()
          .collect()
          .map(_.getString(0).toInt)
        assert(ids.toSeq == subjects(1), "Confluent's header")
    }
  }

  test("a registry is needed for Avro, and its refusal is named") {
    def started(options: Map[String, String]): Unit = {
      val query = new KeptQuery(spark, rides, byCity, null)
      try {
        query.start("changelog-kafka", options)
        query.add("+I 1 Oslo 5")
        query.processAll()
      } finally query.stop()
    }
    Seq("", "registry", "http://user:secret@localhost:1").foreach { url =>
      val error = checkError("CHANGELOG_SINK_OPTION_INVALID", "option" -> "schemaRegistry")(
        started(avro("refused", "avro") + ("schemaRegistry" -> url)))
      assert(!error.getMessage.contains("secret"))
    }
    registry.authorization = Some("Bearer token")
    try
      checkError("CHANGELOG_SCHEMA_NOT_REGISTERED", "subject" -> "refused-key")(
        started(avro("refused", "avro")))
    finally registry.authorization = None
  }

  test("rows that only come have no key") {
    val plain = Feed("plain", "id INT, city STRING", insertOnly = true)
    val target = () =>
      records("appended")
        .where("k IS NULL")
        .select(
          from_json(
            col("v"),
            org.apache.spark.sql.types.StructType.fromDDL("id INT, city STRING")).as("r"))
        .select("r.*")
    val query = new KeptQuery(spark, plain, "SELECT id, city FROM plain", target())
    query.start("changelog-kafka", broker + ("topic" -> "appended"))
    query.check("+I 1 Oslo", "+I 2 NULL", "+I 2 NULL")
    query.check("+I 3 Rome")
    query.stop()
  }
}
