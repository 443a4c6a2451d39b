// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.kafka

import java.util.{Map => JMap}

import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

import org.apache.kafka.clients.admin.{Admin, ListConsumerGroupOffsetsOptions}
import org.apache.kafka.clients.consumer.{ConsumerGroupMetadata, OffsetAndMetadata}
import org.apache.kafka.clients.producer.{KafkaProducer, ProducerRecord}
import org.apache.kafka.common.TopicPartition
import org.apache.kafka.common.header.Header
import org.apache.kafka.common.header.internals.RecordHeader
import org.apache.kafka.common.serialization.ByteArraySerializer

import org.apache.spark.sql.classic.DataFrame
import org.apache.spark.sql.{Encoders, Row}

import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime

/**
 * Writes each batch to a topic once, in one transaction.
 *
 * {{{
 *   fence other writers of the query, and end their transaction
 *   group's offset = batch?   yes: the batch is written already
 *                             no:  records, offset = batch, commit
 * }}}
 *
 * The offset belongs to a consumer group without members, named after the query and the topic.
 *
 * @param settings
 *   the settings of Kafka's clients
 */
private[kafka] class KafkaTransactions(topic: String, settings: Map[String, String])
    extends Serializable {

  /** The name of the transactions, and of the group. */
  private def name(queryId: String): String = s"spark-changelog-$queryId-$topic"

  private def place: TopicPartition = new TopicPartition(topic, 0)

  def lastBatchOf(queryId: String): Option[Long] =
    Using.resource(Admin.create(clientSettings)) { admin =>
      // The offset of a transaction about to be committed counts.
      val options = new ListConsumerGroupOffsetsOptions().requireStable(true)
      val offsets = admin.listConsumerGroupOffsets(name(queryId), options)
      val committed = offsets.partitionsToOffsetAndMetadata().get()
      Option(committed.get(place)).map(_.offset())
    }

  /**
   * @param records
   *   `key` and `value` as bytes, in one partition
   * @param headers
   *   the headers of every record
   */
  def write(
      records: DataFrame,
      headers: Map[String, Array[Byte]],
      queryId: String,
      batchId: Long): Unit =
    records.as(Encoders.row(records.schema)).foreachPartition { (rows: Iterator[Row]) =>
      val made = headers.map { case (key, value) => new RecordHeader(key, value): Header }.asJava
      val sent = rows.map { row =>
        def bytes(column: String) = row.getAs[Array[Byte]](column)
        new ProducerRecord(topic, null, bytes("key"), bytes("value"), made)
      }
      write(sent, queryId, batchId)
    }

  private def write(
      records: Iterator[ProducerRecord[Array[Byte], Array[Byte]]],
      queryId: String,
      batchId: Long): Unit = {
    val bytes = new ByteArraySerializer
    val own = Map[String, AnyRef](
      "transactional.id" -> name(queryId),
      "transaction.timeout.ms" -> KafkaTransactions.Timeout) ++ clientSettings.asScala
    Using.resource(new KafkaProducer(own.asJava, bytes, bytes)) { producer =>
      producer.initTransactions()
      lastBatchOf(queryId) match {
        case Some(`batchId`) =>
        case Some(later) if later > batchId =>
          throw runtime(
            "CHANGELOG_SINK_BATCH_SUPERSEDED",
            "sink" -> "changelog-kafka",
            "table" -> topic,
            "query" -> queryId,
            "batch" -> batchId,
            "stored" -> later)
        case _ =>
          producer.beginTransaction()
          try {
            records.foreach(producer.send)
            producer.sendOffsetsToTransaction(
              JMap.of(place, new OffsetAndMetadata(batchId)),
              new ConsumerGroupMetadata(name(queryId)))
            producer.commitTransaction()
          } catch {
            case error: Throwable =>
              // Readers of committed records wait for open transactions.
              Try(producer.abortTransaction())
              throw error
          }
      }
    }
  }

  private def clientSettings: JMap[String, AnyRef] =
    settings.asInstanceOf[Map[String, AnyRef]].asJava
}

private object KafkaTransactions {

  /** The longest duration of a batch's transaction in ms. Kafka's brokers permit 15 minutes by default. */
  val Timeout = "600000"
}
