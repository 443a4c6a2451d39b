// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.kafka.clients.admin.{Admin, NewTopic}
import org.scalatest.Suite

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.functions._
import org.apache.spark.sql.types.StructType

/** Topics of a real broker. */
trait KafkaTopics extends ChangelogSession { self: Suite =>
  protected def bootstrap: String = Services.kafka()("bootstrap")

  /** The options of sources and sinks. */
  protected def broker: Map[String, String] = Map("kafka.bootstrap.servers" -> bootstrap)

  /** A query waits only for seconds until what it subscribes to is there. */
  protected def createTopic(topic: String, partitions: Int = 1): Unit = {
    val settings = Map[String, AnyRef]("bootstrap.servers" -> bootstrap).asJava
    Using.resource(Admin.create(settings)) { admin =>
      admin
        .createTopics(java.util.List.of(new NewTopic(topic, partitions, 1.toShort)))
        .all()
        .get()
    }
    ()
  }

  /** Sends keys and values in this order, to a partition or to that of each key. */
  protected def send(
      topic: String,
      records: Seq[(String, String)],
      partition: Option[Int] = None): Unit =
    spark
      .createDataFrame(records.map { case (key, value) =>
        (key, value, partition.map(Int.box).orNull)
      })
      .coalesce(1) // the order of a key's records counts
      .toDF("key", "value", "partition")
      .write
      .format("kafka")
      .options(broker)
      .option("topic", topic)
      .save()

  /** A stream of all records. */
  protected def stream(topic: String): DataFrame = spark.readStream
    .format("kafka")
    .options(broker + ("startingOffsets" -> "earliest"))
    .option("subscribe", topic)
    .load()

  /** All records there are now. */
  protected def batch(topic: String): DataFrame =
    spark.read.format("kafka").options(broker).option("subscribe", topic).load()

  /** The rows of a compacted topic: the newest record of each key, unless it is a tombstone. */
  protected def newest(topic: String, row: String): DataFrame = batch(topic)
    .groupBy("key")
    .agg(
      max_by(struct(col("value").cast("string").as("v")), struct("partition", "offset")).as("r"))
    .where("r.v IS NOT NULL")
    .select(from_json(col("r.v"), StructType.fromDDL(row)).as("r"))
    .select("r.*")
}
