// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.kafka.clients.admin.{Admin, NewTopic}
import org.scalatest.Suite

import org.apache.spark.sql.DataFrame

/** Topics of a real broker. */
trait KafkaTopics extends ChangelogSession { self: Suite =>
  private lazy val broker = Map("kafka.bootstrap.servers" -> Services.kafka()("bootstrap"))

  /** A query waits only for seconds until what it subscribes to is there. */
  protected def createTopic(topic: String, partitions: Int = 1): Unit = {
    val settings =
      Map[String, AnyRef]("bootstrap.servers" -> Services.kafka()("bootstrap")).asJava
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
}
