// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.util.UUID

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.kafka.clients.admin.{Admin, NewTopic}

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.functions.{col, from_json, struct, to_json}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{DataFrame, Row}

/** A topic of a real broker, with a change as JSON in each record. No records are no news. */
object FeedTopics extends SourceKind("Kafka") {

  override def open(session: SparkSession, schema: StructType, partitions: Int): FeedSource =
    new FeedSource {
      private val bootstrap = Services.kafka()("bootstrap")
      private val topic = s"feed-${UUID.randomUUID()}"
      Using.resource(Admin.create(Map[String, AnyRef]("bootstrap.servers" -> bootstrap).asJava)) {
        _.createTopics(java.util.List.of(new NewTopic(topic, 1, 1.toShort))).all().get()
      }

      override def stream(session: SparkSession): DataFrame = session.readStream
        .format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("startingOffsets", "earliest")
        .option("subscribe", topic)
        .load()
        .select(from_json(col("value").cast("string"), schema, FeedFiles.Exactly).as("change"))
        .select("change.*")

      override def add(rows: Seq[Row]): Unit = session
        .createDataFrame(rows.asJava, schema)
        .coalesce(1) // the order of changes may count
        .select(to_json(struct(col("*")), FeedFiles.Exactly).as("value"))
        .write
        .format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", topic)
        .save()
    }
}
