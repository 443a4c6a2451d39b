// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources

import java.io.ByteArrayOutputStream
import java.math.BigDecimal
import java.net.InetSocketAddress
import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.util.Base64
import java.util.concurrent.atomic.AtomicInteger

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import com.sun.net.httpserver.HttpServer
import org.apache.avro.generic.{GenericData, GenericDatumWriter, GenericRecord}
import org.apache.avro.io.EncoderFactory
import org.apache.avro.{Schema, SchemaBuilder}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Encoders, Row}

import org.apache.spark.sql.changelog.testing._

/** Avro of a schema registry, in bytes that Avro's own encoder writes behind Confluent's header. */
class SchemaRegistrySuite
    extends AnyFunSuite
    with ChangelogSession
    with ErrorChecks
    with BeforeAndAfterAll {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Quick)

  private val password = "spark.sql.changelog.schemaRegistry.password"
  private val registry = new Registry

  override protected def afterAll(): Unit = {
    registry.stop()
    super.afterAll()
  }

  /** A registry on this machine that knows the schemas given to it. */
  private class Registry {
    @volatile var schemas: Map[Int, (String, String)] = Map.empty
    @volatile var authorization: Option[String] = None
    val requests = new AtomicInteger
    private val server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0)
    server.createContext(
      "/schemas/ids/",
      exchange => {
        requests.incrementAndGet()
        val id = exchange.getRequestURI.getPath.split('/').last.toInt
        val isKnown =
          authorization.forall(_ == exchange.getRequestHeaders.getFirst("Authorization"))
        val (status, body) = schemas.get(id) match {
          case _ if !isKnown => (401, """{"error_code":401,"message":"Unauthorized"}""")
          case None => (404, """{"error_code":40403,"message":"Schema not found"}""")
          case Some((kind, schema)) =>
            val answer = new ObjectMapper().createObjectNode().put("schema", schema)
            if (kind != "AVRO") answer.put("schemaType", kind)
            (200, answer.toString)
        }
        val bytes = body.getBytes(UTF_8)
        exchange.sendResponseHeaders(status, bytes.length.toLong)
        exchange.getResponseBody.write(bytes)
        exchange.close()
      })
    server.start()

    def url: String = s"http://127.0.0.1:${server.getAddress.getPort}"

    def add(schema: Schema): Int = add("AVRO", schema.toString)

    def add(kind: String, schema: String): Int = synchronized {
      val id = schemas.size + 1
      schemas += id -> (kind -> schema)
      id
    }

    def stop(): Unit = server.stop(0)
  }

  private def encode(id: Int, schema: Schema, value: Any): Array[Byte] = {
    val out = new ByteArrayOutputStream
    out.write(ByteBuffer.allocate(5).put(0.toByte).putInt(id).array)
    val encoder = EncoderFactory.get.binaryEncoder(out, null)
    new GenericDatumWriter[Any](schema).write(value, encoder)
    encoder.flush()
    out.toByteArray
  }

  private def record(schema: Schema, values: (String, Any)*): GenericRecord = {
    val record = new GenericData.Record(schema)
    schema.getFields.asScala.filter(_.hasDefaultValue).foreach { field =>
      record.put(field.pos, GenericData.get.getDefaultValue(field))
    }
    values.foreach { case (name, value) => record.put(name, value) }
    record
  }

  /** Types as Kafka Connect's converter writes them. */
  private def connect(base: String, name: String, more: String = ""): String =
    s"""["null",{"type":"$base","connect.version":1,"connect.name":"$name"$more}]"""

  private def rows(more: String): Schema = new Schema.Parser().parse(s"""{"type":"record","name":"Value","namespace":"shop.orders","fields":[{"name":"id","type":"long"},
       |{"name":"amount","type":${connect(
      "bytes",
      "org.apache.kafka.connect.data.Decimal",
      ""","scale":2,"precision":10,"connect.parameters":{"scale":"2"},"logicalType":"decimal"""")},"default":null},
       |{"name":"at","type":${connect("long", "io.debezium.time.MicroTimestamp")},"default":null},
       |{"name":"day","type":${connect("int", "io.debezium.time.Date")},"default":null}
       |$more]}""".stripMargin)

  private def envelope(row: Schema): Schema = SchemaBuilder
    .record("Envelope")
    .namespace("shop.orders")
    .fields()
    .name("before")
    .`type`(Schema.createUnion(Schema.create(Schema.Type.NULL), row))
    .withDefault(null)
    .name("after")
    .`type`(Schema.createUnion(Schema.create(Schema.Type.NULL), row))
    .withDefault(null)
    .name("source")
    .`type`(
      SchemaBuilder
        .record("Source")
        .fields()
        .requiredString("table")
        .requiredLong("lsn")
        .endRecord())
    .noDefault()
    .requiredString("op")
    .optionalLong("ts_ms")
    .endRecord()

  private val first = rows("")
  private val second = rows(s""",{"name":"note","type":["null","string"],"default":null},
       |{"name":"tags","type":["null",{"type":"array","items":["null","string"]}],"default":null},
       |{"name":"picture","type":["null","bytes"],"default":null},
       |{"name":"clock","type":${connect(
      "long",
      "io.debezium.time.MicroTime")},"default":null}""".stripMargin)

  private def event(op: String, lsn: Long, row: GenericRecord): Array[Byte] = {
    val schema = envelope(row.getSchema)
    val source =
      record(schema.getField("source").schema, "table" -> "orders", "lsn" -> lsn)
    val image = if (op == "d") "before" else "after"
    encode(ids(schema), schema, record(schema, "op" -> op, "source" -> source, image -> row))
  }

  private lazy val ids: Map[Schema, Int] =
    Seq(first, second).map(envelope).map(schema => schema -> registry.add(schema)).toMap

  private def decimal(text: String): ByteBuffer =
    ByteBuffer.wrap(new BigDecimal(text).unscaledValue.toByteArray)

  private val micros = 1700000000123456L
  private lazy val events = Seq(
    event(
      "c",
      1,
      record(first, "id" -> 1L, "amount" -> decimal("12.50"), "at" -> micros, "day" -> 19675)),
    event("c", 2, record(first, "id" -> 2L, "amount" -> decimal("-0.01"))),
    event(
      "u",
      3,
      record(
        second,
        "id" -> 1L,
        "amount" -> decimal("7.00"),
        "at" -> micros,
        "note" -> "new",
        "tags" -> java.util.List.of("a", "b"),
        "picture" -> ByteBuffer.wrap(Array[Byte](1, -1)),
        "clock" -> 3600000001L)),
    event("c", 4, record(first, "id" -> 3L)),
    event("d", 5, record(second, "id" -> 2L)),
    null,
    event(
      "u",
      6,
      record(second, "id" -> 3L, "note" -> "__debezium_unavailable_value", "day" -> 0)))

  private val fields =
    "id BIGINT, amount DECIMAL(10,2), at TIMESTAMP, day DATE, note STRING, tags ARRAY<STRING>, picture BINARY"
  private val expected = Seq(
    "1 7.00 2023-11-14T22:13:20.123456 NULL new [a,b] 01FF",
    "3 NULL NULL 1970-01-01 NULL NULL NULL")
  private val shown =
    "SELECT id, amount, cast(at AS TIMESTAMP_NTZ) AS at, day, note, concat('[', array_join(tags, ','), ']') AS tags, hex(picture) AS picture FROM feed"

  private val schema = StructType.fromDDL("key BINARY, value BINARY")

  private def batch(
      values: Seq[Array[Byte]],
      call: String,
      sql: String = "SELECT * FROM feed",
      keys: Seq[Array[Byte]] = Nil): Seq[String] = {
    val all = values.zipWithIndex.map { case (value, at) => Row(keys.lift(at).orNull, value) }
    spark.createDataFrame(all.asJava, schema).createOrReplaceTempView("records")
    spark.sql(s"SELECT * FROM $call").createOrReplaceTempView("feed")
    spark.sql(sql).collect().map(TextChangelog.format).sorted.toSeq
  }

  private def debezium(more: String = "", columns: String = fields): String =
    s"from_debezium(TABLE(records), schema => '$columns', schema_registry => '${registry.url}'$more)"

  test("Debezium's events of two writer schemas in one batch") {
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    val call = debezium(", key => 'id'")
    val before = registry.requests.get
    assert(batch(events, call, shown) == expected)
    assert(registry.requests.get - before <= 2, "a schema is read once")
    Seq(1, 100).foreach { size =>
      val stream = MemoryStream[Row](1)(Encoders.row(schema), spark.sqlContext)
      stream.toDF().createOrReplaceTempView("records")
      spark.sql(s"SELECT * FROM $call").createOrReplaceTempView("feed")
      val kept = new KeptTable(spark, shown)
      events.map(Row(null, _)).grouped(size).foreach { rows =>
        stream.addData(rows)
        kept.catchUp()
      }
      kept.stop()
      assert(kept.table == expected)
    }
  }

  test("times of day, infinity, and digits") {
    assume(!ChangelogSession.isSpark41, "Spark 4.1 has no type TIME")
    val row = record(second, "id" -> 1L, "clock" -> 3600000001L, "amount" -> decimal("1.00"))
    val call = debezium(columns = "id BIGINT, clock TIME(6), amount DECIMAL(4,1)")
    assert(batch(Seq(event("c", 1, row)), call) == Seq("1 01:00:00.000001 1.0"))
    def refused(column: (String, Any), fault: String) =
      checkError("CHANGELOG_RECORD_MALFORMED", "fault" -> fault) {
        val row = record(second, "id" -> 1L, column)
        batch(
          Seq(event("c", 1, row)),
          debezium(columns = "id BIGINT, at TIMESTAMP, amount DECIMAL(4,1)"))
      }
    refused(
      "at" -> 9223372036825200000L,
      "column at has the value '9223372036825200000', a TIMESTAMP in an unknown unit: give time_precision_mode or encodings")
    refused(
      "amount" -> decimal("1.25"),
      "column amount has the value '1.25', which is not of its type DECIMAL(4,1)")
  }

  test("a compacted topic with keys and rows in Avro") {
    val key = SchemaBuilder.record("Key").fields().requiredLong("id").endRecord()
    val keyId = registry.add(key)
    val rowId = registry.add(first)
    def keyOf(id: Long) = encode(keyId, key, record(key, "id" -> id))
    def valueOf(id: Long, amount: String) =
      encode(rowId, first, record(first, "id" -> id, "amount" -> decimal(amount), "day" -> 1))
    val call =
      s"from_upsert_kafka(TABLE(records), schema => 'id BIGINT, amount DECIMAL(10,2), day DATE', key => 'id', schema_registry => '${registry.url}')"
    val values = Seq(valueOf(1, "1.00"), valueOf(2, "2.00"), valueOf(1, "1.50"), null)
    assert(
      batch(values, call, keys = Seq(keyOf(1), keyOf(2), keyOf(1), keyOf(2))) ==
        Seq("1 1.50 1970-01-02"))
    // keys that are no Avro
    assert(
      batch(values, call, keys = Seq("1", "2", "1", "2").map(_.getBytes(UTF_8))) ==
        Seq("1 1.50 1970-01-02"))
  }

  test("JSON behind the header, and JSON without one") {
    val id = registry.add("JSON", "{}")
    val text =
      """{"op":"c","after":{"id":5},"source":{"table":"orders","lsn":9}}""".getBytes(UTF_8)
    val behind = ByteBuffer.allocate(5 + text.length).put(0.toByte).putInt(id).put(text).array
    val call = debezium(", key => 'id'", "id BIGINT")
    assert(batch(Seq(behind), call) == Seq("5"))
    assert(batch(Seq(text), call) == Seq("5"))
  }

  test("bytes that the schema can't read are a fault of the record") {
    val cut = events.head.dropRight(3)
    val error =
      checkError("CHANGELOG_RECORD_MALFORMED", "fault" -> "it is not a JSON object") {
        batch(Seq(cut), debezium(", key => 'id'"))
      }
    assert(error.getMessageParameters.get("record").startsWith("not Avro of schema "))
    val encoded = Base64.getEncoder.encodeToString(cut)
    assert(error.getMessageParameters.get("record").endsWith(encoded))
    val longer = checkError("CHANGELOG_RECORD_MALFORMED") {
      batch(Seq(events.head :+ 0.toByte), debezium(", key => 'id'"))
    }
    assert(longer.getMessage.contains("bytes are left over"))
    val kept =
      batch(Seq(cut, events(1)), debezium(", key => 'id', on_error => 'drop'", "id BIGINT"))
    assert(kept == Seq("2"))
  }

  test("a schema that the registry doesn't give fails the query, and drops no record") {
    def failed(id: Int, reason: String) = {
      val bytes = ByteBuffer.allocate(8).put(0.toByte).putInt(id).array
      val error = checkError(
        "CHANGELOG_SCHEMA_NOT_READ",
        "schema" -> id.toString,
        "registry" -> registry.url) {
        batch(Seq(bytes), debezium(", key => 'id', on_error => 'drop'"))
      }
      assert(error.getMessageParameters.get("reason").startsWith(reason), error)
    }
    failed(4711, "the registry answers 404: {\"error_code\":40403")
    failed(
      registry.add("PROTOBUF", "syntax = \"proto3\";"),
      "its type is PROTOBUF, not AVRO or JSON")
    failed(registry.add("AVRO", "{"), "org.apache.avro.SchemaParseException")
    val gone = new Registry
    gone.stop()
    checkError("CHANGELOG_SCHEMA_NOT_READ", "registry" -> gone.url) {
      batch(events, debezium(", key => 'id'").replace(registry.url, gone.url))
    }
  }

  test("a registry with a password, which is in no plan") {
    val guarded = new Registry
    try {
      val schema = SchemaBuilder.record("Envelope").fields().requiredString("op").endRecord()
      Seq("user:reg1stry" -> "Basic dXNlcjpyZWcxc3RyeQ==", "reg1stry" -> "Bearer reg1stry")
        .foreach { case (secret, header) =>
          val id = guarded.add(schema)
          guarded.authorization = Some(header)
          val call = debezium(columns = "id BIGINT").replace(registry.url, guarded.url)
          val message = encode(id, schema, record(schema, "op" -> "m"))
          val error = checkError("CHANGELOG_SCHEMA_NOT_READ")(batch(Seq(message), call))
          assert(error.getMessageParameters.get("reason").contains("401"))
          spark.conf.set(password, secret)
          assert(batch(Seq(message), call) == Nil)
          val told = spark.sql("EXPLAIN EXTENDED SELECT * FROM feed").head().getString(0)
          assert(told.contains("schema registry") && !told.contains("reg1stry"))
          spark.conf.unset(password)
        }
    } finally guarded.stop()
  }

  test("an address with a password, or that is none, is refused") {
    def refused(url: String): Throwable =
      checkError("CHANGELOG_ARGUMENT_INVALID", "argument" -> "schema_registry")(
        batch(events, s"from_debezium(TABLE(records), 'id BIGINT', schema_registry => '$url')"))
    assert(!refused("http://user:reg1stry@127.0.0.1:8081").getMessage.contains("reg1stry"))
    refused("registry")
    spark
      .sql("SELECT '' AS value")
      .createOrReplaceTempView("texts")
    checkError("CHANGELOG_ARGUMENT_INVALID", "argument" -> "value") {
      spark.sql(
        s"SELECT * FROM from_debezium(TABLE(texts), 'id BIGINT', schema_registry => '${registry.url}')")
    }
  }
}
