// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.kafka

import java.nio.charset.StandardCharsets.UTF_8

import scala.util.control.NonFatal

import org.apache.spark.sql.Column
import org.apache.spark.sql.catalyst.expressions.Alias
import org.apache.spark.sql.catalyst.plans.logical.Project
import org.apache.spark.sql.classic.{DataFrame, Dataset, SparkSession}
import org.apache.spark.sql.functions._

import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.sinks.ChangelogBatch._
import org.apache.spark.sql.changelog.sinks.{
  ChangelogBatch, ChangelogSink, ChangelogSinkProvider, SinkInput, SinkOptions
}
import org.apache.spark.sql.changelog.sources.KafkaBrokers
import org.apache.spark.sql.changelog.sources.records.RegistryClient

/**
 * Writes the changes of a query to a topic as JSON or Avro, by Spark's own Kafka sink.
 *
 * {{{
 *   value.format       key   value
 *   json               key   the row of the key; null (a tombstone) after a delete
 *   debezium-json      key   {"before": row, "after": row, "op": "c" | "u" | "d"}
 *   avro, debezium-avro      the same, with the schemas in a registry
 * }}}
 *
 * A batch has at most one record per key, and the records of a key are in order. By default,
 * delivery is at-least-once: Spark's Kafka sink cannot write a batch exactly once. After a failure, a
 * repeated batch repeats its records, before any later batch. The newest record of each key is
 * therefore still correct. Consumers that count records can deduplicate by the header
 * [[KafkaSink.BatchHeader]]. With `delivery` `exactly-once`, [[KafkaTransactions]] write each batch.
 */
class KafkaSink(session: SparkSession, options: SinkOptions)
    extends ChangelogSink(options.format) {
  import KafkaSink._

  options.refuseMistyped(Seq("topic", ValueFormat, Registry, "numPartitions", Delivery))
  private val topic = options.required("topic", "the name of the topic is needed")
  private val valueFormat = options.get(ValueFormat).getOrElse(Json)
  if (!Formats.contains(valueFormat)) {
    throw options.invalid(ValueFormat, s"one of ${Formats.mkString(", ")} is expected")
  }
  private val isEvent = valueFormat.startsWith("debezium-")

  /** The address of the schema registry, for records in Avro. */
  private val registry = Option.when(valueFormat.endsWith(Avro)) {
    val expected =
      s"with $ValueFormat $valueFormat the address of a schema registry is expected, as in http://registry:8081; " +
        s"the password is the setting ${ChangelogConf.SCHEMA_REGISTRY_PASSWORD.key}"
    val url = options.required(Registry, expected)
    RegistryClient.mistakeIn(url).foreach { shown =>
      throw new SinkOptions(options.format, Map(Registry -> shown)).invalid(Registry, expected)
    }
    url
  }
  private val partitions =
    options.get("numPartitions").map(_ => options.count("numPartitions", 1))
  private val isExactlyOnce = options.get(Delivery).getOrElse(AtLeastOnce) match {
    case AtLeastOnce => false
    case ExactlyOnce if partitions.isEmpty => true
    case ExactlyOnce =>
      throw options.invalid("numPartitions", s"no number is expected with $Delivery $ExactlyOnce")
    case _ => throw options.invalid(Delivery, s"$AtLeastOnce or $ExactlyOnce is expected")
  }
  private val ofClient = options.all.collect {
    case (name, value) if name.toLowerCase.startsWith("kafka.") => name.drop(6) -> value
  }
  private val forKafka =
    ofClient.map { case (name, value) => s"kafka.$name" -> value } + ("topic" -> topic)

  private val servers = forKafka.collectFirst {
    case (name, value) if name.equalsIgnoreCase(KafkaBrokers.ServersOption) => value
  }

  override protected def check(input: SinkInput): Unit = {
    input.key(options.key)
    if (isEvent && input.lacksBeforeImages) {
      throw options.invalid(
        ValueFormat,
        "the format needs before images: use mode => 'retract' of to_changelog")
    }
  }

  private lazy val transactions = new KafkaTransactions(topic, ofClient)

  override protected def targetName: String = topic

  override protected def lastBatchOf(session: SparkSession, queryId: String): Option[Long] =
    if (isExactlyOnce) reached(transactions.lastBatchOf(queryId)) else None

  override def write(batch: ChangelogBatch): Unit = {
    val count = if (isExactlyOnce) Some(1) else partitions
    val records = batch.input.key(options.key) match {
      case Some(key) =>
        val row = coalesce(col(After), col(Before))
        val keyOf = struct(key.map(name => row.getField(name).as(name)): _*)
        batch.byKey(key, count).select(keyOf.as("key"), value.as("value"))
      case None =>
        batch
          .inserted(count)
          .select(struct(batch.input.columnNames.map(quoted): _*).as(After))
          .withColumn(Before, lit(null).cast(batch.schema))
          .select(value.as("value"))
    }
    val mark = s"${batch.queryId}/${batch.batchId}".getBytes(UTF_8)
    if (isExactlyOnce) {
      val made = encoded(records)
      val columns = Seq("key", "value").map { name =>
        (if (made.columns.contains(name)) col(name) else lit(null)).cast("binary").as(name)
      }
      reached {
        transactions.write(
          made.select(columns: _*),
          Map(BatchHeader -> mark),
          batch.queryId,
          batch.batchId)
      }
    } else {
      val writer = encoded(records)
        .withColumn("headers", array(struct(lit(BatchHeader).as("key"), lit(mark).as("value"))))
        .write
        .format("kafka")
        .options(forKafka)
      reached(writer.save())
    }
  }

  /** Explains a failure by brokers that can't be reached. */
  private def reached[T](body: => T): T =
    try body
    catch {
      case NonFatal(error) =>
        servers.foreach(KafkaBrokers.check(_, error))
        throw error
    }

  private def value: Column =
    if (!isEvent) col(After)
    else {
      val op = when(col(Before).isNull, "c").when(col(After).isNull, "d").otherwise("u")
      struct(col(Before).as("before"), col(After).as("after"), op.as("op"))
    }

  /** Writes the structs of `records` as text, or as bytes. NULL stays NULL. */
  private def encoded(records: DataFrame): DataFrame = registry match {
    case None =>
      records.select(records.columns.toSeq.map(name => json(col(name)).as(name)): _*)
    case Some(url) =>
      val password = session.sessionState.conf.getConf(ChangelogConf.SCHEMA_REGISTRY_PASSWORD)
      val avro = new AvroRecords(url, password, topic)
      val rows = records.queryExecution.analyzed
      val columns = rows.output.map { column =>
        val isRow = column.name == "key" || !isEvent
        val bytes = if (isRow) avro.ofRows(column, column.name) else avro.ofEvents(column)
        Alias(bytes, column.name)()
      }
      Dataset.ofRows(session, Project(columns, rows))
  }

  private def json(row: Column): Column = to_json(row, JsonOptions)
}

object KafkaSink {

  /** The header with the query and the batch of a record: `<query id>/<batch id>`. */
  val BatchHeader = "spark-changelog-batch"

  /**
   * Writes NULLs, because every record must have every column. Times are in UTC with microseconds. Spark's default
   * truncates fractions and offsets of time zones, so different keys would become equal.
   */
  private val JsonOptions = java.util.Map.of(
    "ignoreNullFields",
    "false",
    "timeZone",
    "UTC",
    "timestampFormat",
    "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat",
    "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")

  private val Delivery = "delivery"
  private val AtLeastOnce = "at-least-once"
  private val ExactlyOnce = "exactly-once"
  private val ValueFormat = "value.format"
  private val Json = "json"
  private val Avro = "avro"
  private val Formats = Seq(Json, "debezium-json", Avro, "debezium-avro")
  private val Registry = "schemaRegistry"
}

/**
 * `writeStream.format("changelog-kafka")`: writes the newest row of each key, or the changes of rows, to a topic.
 */
class KafkaSinkProvider extends ChangelogSinkProvider("changelog-kafka") {
  override protected def sink(session: SparkSession, options: SinkOptions): ChangelogSink =
    new KafkaSink(session, options)
}
