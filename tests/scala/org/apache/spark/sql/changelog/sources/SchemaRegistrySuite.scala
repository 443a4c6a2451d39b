// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources

import java.io.ByteArrayOutputStream
import java.math.{BigDecimal, BigInteger}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.{ByteBuffer, ByteOrder}
import java.util.Base64

import scala.jdk.CollectionConverters._

import org.apache.avro.generic.{GenericData, GenericDatumWriter, GenericRecord}
import org.apache.avro.io.EncoderFactory
import org.apache.avro.{Schema, SchemaBuilder}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite
import org.sparkproject.spark_core.protobuf.DescriptorProtos.FieldDescriptorProto.{Label, Type}
import org.sparkproject.spark_core.protobuf.DescriptorProtos._

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Encoders, Row}

import org.apache.spark.sql.changelog.testing._

/** Avro and Protobuf of a schema registry, in bytes that their own encoders write behind Confluent's header. */
class SchemaRegistrySuite
    extends AnyFunSuite
    with ChangelogSession
    with ErrorChecks
    with BeforeAndAfterAll {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Quick)

  private val password = "spark.sql.changelog.schemaRegistry.password"
  private val registry = new RegistryStub

  override protected def afterAll(): Unit = {
    registry.stop()
    super.afterAll()
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

  /**
   * Written by `io.apicurio.registry.utils.converter.AvroConverter` 2.6.13 with `apicurio.registry.as-confluent`,
   * `apicurio.registry.use-id = contentId` and without headers, where the registry gave the id 7.
   */
  private val ofApicurio = Seq(
    "0000000007000202020404e202808981828389850602b6b30202066e65770c6f7264657273020263",
    "00000000070002040202ff0000000c6f7264657273040263",
    "000000000702040202ff000000000c6f7264657273060264")
  private val schemaOfApicurio =
    """{"type":"record","name":"Envelope","namespace":"shop.orders","fields":[
      |{"name":"before","type":["null",{"type":"record","name":"Value","fields":[{"name":"id","type":"long"},
      |{"name":"amount","type":["null",{"type":"bytes","scale":2,"precision":10,"connect.version":1,
      |"connect.parameters":{"scale":"2","connect.decimal.precision":"10"},
      |"connect.name":"org.apache.kafka.connect.data.Decimal","logicalType":"decimal"}],"default":null},
      |{"name":"at","type":["null",{"type":"long","connect.version":1,"connect.name":"io.debezium.time.MicroTimestamp"}],"default":null},
      |{"name":"day","type":["null",{"type":"int","connect.version":1,"connect.name":"io.debezium.time.Date"}],"default":null},
      |{"name":"note","type":["null","string"],"default":null}],"connect.name":"shop.orders.Value"}],"default":null},
      |{"name":"after","type":["null","Value"],"default":null},
      |{"name":"source","type":{"type":"record","name":"Source","namespace":"shop",
      |"fields":[{"name":"table","type":"string"},{"name":"lsn","type":"long"}],"connect.name":"shop.Source"}},
      |{"name":"op","type":"string"}],"connect.name":"shop.orders.Envelope"}""".stripMargin

  test("events in the bytes of Apicurio's converter") {
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    val other = new RegistryStub
    try {
      other.schemas = Map(7 -> ("AVRO" -> schemaOfApicurio))
      val events = ofApicurio.map(java.util.HexFormat.of().parseHex(_))
      val columns = "id BIGINT, amount DECIMAL(10,2), at TIMESTAMP, day DATE, note STRING"
      val call = debezium(", key => 'id'", columns).replace(registry.url, other.url)
      val show = "SELECT id, amount, cast(at AS TIMESTAMP_NTZ) AS at, day, note FROM feed"
      val first = "1 12.50 2023-11-14T22:13:20.123456 2023-11-14 new"
      assert(batch(events.take(2), call, show) == Seq(first, "2 -0.01 NULL NULL NULL"))
      assert(batch(events, call, show) == Seq(first))
    } finally other.stop()
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

  private def field(name: String, number: Int, kind: Type): FieldDescriptorProto.Builder =
    FieldDescriptorProto.newBuilder().setName(name).setNumber(number).setType(kind)

  private def field(name: String, number: Int, of: String): FieldDescriptorProto.Builder =
    field(name, number, Type.TYPE_MESSAGE).setTypeName(s".$of")

  private def message(
      name: String,
      fields: FieldDescriptorProto.Builder*): DescriptorProto.Builder = {
    val declared = DescriptorProto.newBuilder().setName(name)
    fields.foreach(declared.addField)
    declared
  }

  private val imported = Seq(
    "google/protobuf/timestamp.proto",
    "google/protobuf/wrappers.proto",
    "google/type/date.proto",
    "google/type/timeofday.proto",
    "confluent/type/decimal.proto",
    "confluent/meta.proto",
    "row.proto")

  private def rowsFile(messages: DescriptorProto.Builder*): FileDescriptorProto = {
    val file = FileDescriptorProto.newBuilder().setSyntax("proto3").setPackage("shop")
    imported.foreach(file.addDependency)
    messages.foreach(file.addMessageType)
    file.build()
  }

  /** The fields of an envelope around a row. */
  private def envelopeOf(row: String): DescriptorProto.Builder = message(
    "Envelope",
    field("before", 1, row),
    field("after", 2, row),
    field("source", 3, "shop.Source"),
    field("op", 4, Type.TYPE_STRING))

  private val sourceMessage =
    message("Source", field("table", 1, Type.TYPE_STRING), field("lsn", 2, Type.TYPE_INT64))

  /** A field of a message: a number and its bytes, as Protobuf writes them. */
  private def part(number: Int)(bytes: Array[Byte]*): Array[Byte] = {
    val all = bytes.flatten.toArray
    assert(all.length < 128)
    Array((number << 3 | 2).toByte, all.length.toByte) ++ all
  }
  private def part(number: Int, text: String): Array[Byte] = part(number)(text.getBytes(UTF_8))
  private def part(number: Int, value: Long): Array[Byte] = {
    val out = new ByteArrayOutputStream
    out.write(number << 3)
    var rest = value
    while ((rest & ~0x7fL) != 0) {
      out.write((rest & 0x7f | 0x80).toInt)
      rest >>>= 7
    }
    out.write(rest.toInt)
    out.toByteArray
  }

  /** Confluent's header, with the path of the message as it is written. */
  private def headed(id: Int, path: Int*)(parts: Array[Byte]*): Array[Byte] =
    ByteBuffer.allocate(5).put(0.toByte).putInt(id).array ++ path.map(_.toByte) ++ parts.flatten

  test("Debezium's events in Protobuf, of two writer schemas in one batch") {
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    val row = Seq(
      field("id", 1, Type.TYPE_INT64),
      field("amount", 2, "confluent.type.Decimal"),
      field("at", 3, "google.protobuf.Timestamp"),
      field("day", 4, "google.type.Date"))
    val note = FieldDescriptorProto.newBuilder(field("note", 5, Type.TYPE_STRING).build())
    note.setProto3Optional(true).setOneofIndex(0)
    val more = row ++ Seq(
      note,
      field("tags", 6, Type.TYPE_STRING).setLabel(Label.LABEL_REPEATED),
      field("picture", 7, Type.TYPE_BYTES))
    // rows in the same file, and rows of an imported file, whose envelope is nested and not the first
    val one =
      registry.add(rowsFile(envelopeOf("shop.Value"), message("Value", row: _*), sourceMessage))
    val imports = registry.add(
      rowsFile(
        message("Row", more: _*).addOneofDecl(OneofDescriptorProto.newBuilder().setName("_note")),
        sourceMessage))
    val two = registry.add(
      rowsFile(message("First"), message("Outer").addNestedType(envelopeOf("shop.Row"))),
      "row.proto" -> imports)
    def after(op: String, lsn: Long, values: Array[Byte]*): Seq[Array[Byte]] = Seq(
      part(if (op == "d") 1 else 2)(values: _*),
      part(3)(part(1, "orders"), part(2, lsn)),
      part(4, op))
    def amount(unscaled: Int, scale: Long) =
      part(2)(
        part(1)(BigInteger.valueOf(unscaled.toLong).toByteArray),
        part(2, 10L),
        part(3, scale))
    val at = part(3)(part(1, 1700000000L), part(2, 123456789L))
    val events = Seq(
      headed(one, 0)(
        after(
          "c",
          1,
          part(1, 1L),
          amount(1250, 2),
          at,
          part(4)(part(1, 2023L), part(2, 11L), part(3, 14L))): _*),
      headed(one, 0)(after("c", 2, part(1, 2L), amount(-1, 2)): _*),
      // a length of 2 in place of the 0, and the numbers of both messages
      headed(two, 4, 2, 0)(
        after(
          "u",
          3,
          part(1, 1L),
          amount(7, 0),
          at,
          part(5, "new"),
          part(6, "a"),
          part(6, "b"),
          part(7)(Array[Byte](1, -1))): _*),
      headed(one, 2, 0)(after("c", 4): _*), // id 0 is not written
      headed(two, 4, 2, 0)(after("d", 5, part(1, 2L)): _*),
      null)
    val expected = Seq(
      "0 NULL NULL NULL NULL NULL NULL",
      "1 7.00 2023-11-14T22:13:20.123456 NULL new [a,b] 01FF")
    val before = registry.requests.get
    assert(batch(events, debezium(", key => 'id'"), shown) == expected)
    assert(registry.requests.get - before <= 5, "a schema is read once")
    assert(
      batch(events.take(1), debezium(), "SELECT amount, at, day FROM feed") ==
        Seq("12.50 2023-11-14T22:13:20.123456 2023-11-14"))
    val cut = checkError("CHANGELOG_RECORD_MALFORMED", "fault" -> "it is not a JSON object") {
      batch(Seq(events.head.dropRight(1)), debezium(", key => 'id'"))
    }
    assert(cut.getMessageParameters.get("record").startsWith(s"unreadable by schema $one "))
    // an exponent whose zeros would fill the memory
    checkError("CHANGELOG_RECORD_MALFORMED") {
      val huge = headed(one, 0)(after("c", 1, part(1, 1L), amount(1, Int.MinValue.toLong)): _*)
      batch(Seq(huge), debezium(", key => 'id'"))
    }
    checkError("CHANGELOG_RECORD_MALFORMED") {
      batch(Seq(headed(two, 4, 2, 2)()), debezium(", key => 'id'"))
    }
  }

  test("a compacted topic in Protobuf: unsigned numbers, maps, messages, enums and wrappers") {
    assume(!ChangelogSession.isSpark41, "Spark 4.1 has no type TIME")
    val entry = message(
      "NumbersEntry",
      field("key", 1, Type.TYPE_STRING),
      field("value", 2, Type.TYPE_INT32))
      .setOptions(MessageOptions.newBuilder().setMapEntry(true))
    val value = message(
      "Value",
      field("id", 1, Type.TYPE_UINT32),
      field("big", 2, Type.TYPE_UINT64),
      field("numbers", 3, "shop.Value.NumbersEntry").setLabel(Label.LABEL_REPEATED),
      field("kind", 4, Type.TYPE_ENUM).setTypeName(".shop.Value.Kind"),
      field("some", 5, "google.protobuf.Int32Value"),
      field("none", 6, "google.protobuf.Int32Value"),
      field("clock", 7, "google.type.TimeOfDay"),
      field("part", 8, "shop.Value"),
      field("ratio", 9, Type.TYPE_DOUBLE),
      field("is", 10, Type.TYPE_BOOL))
      .addNestedType(entry)
      .addEnumType(
        EnumDescriptorProto
          .newBuilder()
          .setName("Kind")
          .addValue(EnumValueDescriptorProto.newBuilder().setName("NONE").setNumber(0))
          .addValue(EnumValueDescriptorProto.newBuilder().setName("SOLD").setNumber(1)))
    val key = registry.add(rowsFile(message("Key", field("id", 1, Type.TYPE_UINT32))))
    val row = registry.add(rowsFile(value))
    val written = headed(row, 0)(
      part(1, 4294967295L),
      part(2, -1L),
      part(3)(part(1, "a"), part(2, 1L)),
      part(4, 1L),
      part(5)(),
      part(7)(part(1, 1L), part(4, 1000L)),
      part(8)(part(1, 5L)),
      Array((9 << 3 | 1).toByte) ++
        ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putDouble(Double.NaN).array,
      part(10, 1L))
    val columns =
      "id BIGINT, big DECIMAL(20,0), numbers MAP<STRING, INT>, kind STRING, some INT, none INT, clock TIME(6), part STRUCT<id: BIGINT, big: INT>, ratio DOUBLE, is BOOLEAN"
    val call =
      s"from_upsert_kafka(TABLE(records), schema => '$columns', key => 'id', schema_registry => '${registry.url}')"
    assert(
      batch(
        Seq(written),
        call,
        "SELECT id, big, numbers['a'], kind, some, none, clock, part.id, part.big, ratio, is FROM feed",
        keys = Seq(headed(key, 0)(part(1, 4294967295L)))) ==
        Seq("4294967295 18446744073709551615 1 SOLD 0 NULL 01:00:00.000001 5 0 NaN true"))
  }

  test("bytes that the schema can't read are a fault of the record") {
    val cut = events.head.dropRight(3)
    val error =
      checkError("CHANGELOG_RECORD_MALFORMED", "fault" -> "it is not a JSON object") {
        batch(Seq(cut), debezium(", key => 'id'"))
      }
    assert(error.getMessageParameters.get("record").startsWith("unreadable by schema "))
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
    failed(registry.add("THRIFT", ""), "its type is THRIFT, not AVRO, PROTOBUF or JSON")
    failed(
      registry.add("PROTOBUF", "syntax = \"proto3\";"),
      "java.lang.IllegalArgumentException: Illegal base64 character")
    failed(
      registry.add(rowsFile(message("Value", field("at", 1, "shop.Gone")))),
      "org.sparkproject.spark_core.protobuf.Descriptors$DescriptorValidationException: ")
    failed(
      registry.add(
        rowsFile(message("Value", field("at", 1, Type.TYPE_INT64))),
        "row.proto" -> 4711),
      "the registry answers 404")
    failed(registry.add("AVRO", "{"), "org.apache.avro.SchemaParseException")
    val gone = new RegistryStub
    gone.stop()
    checkError("CHANGELOG_SCHEMA_NOT_READ", "registry" -> gone.url) {
      batch(events, debezium(", key => 'id'").replace(registry.url, gone.url))
    }
  }

  test("a registry with a password, which is in no plan") {
    val guarded = new RegistryStub
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
