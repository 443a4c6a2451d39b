// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.endtoend

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/** A topic in a real broker, whose newest record of each key is a row. */
class UpsertKafkaSuite extends AnyFunSuite with ChangelogSession {
  private lazy val broker = Services.kafka()("bootstrap")
  private val view = "SELECT city, count(*) AS n, sum(fare) AS total FROM rides GROUP BY city"

  private def send(records: (String, String)*): Unit = spark
    .createDataFrame(records)
    .coalesce(1) // the order of a key's records counts
    .toDF("key", "value")
    .write
    .format("kafka")
    .option("kafka.bootstrap.servers", broker)
    .option("topic", "rides")
    .save()

  private def row(city: String, fare: Int): String = s"""{"city":"$city","fare":$fare}"""

  test("a view over a topic follows new values, and ends with them") {
    send("1" -> row("Oslo", 5), "2" -> row("Rome", 7), "1" -> row("Oslo", 6))
    val options = Map("kafka.bootstrap.servers" -> broker, "subscribe" -> "rides")
    val from = "from_upsert_kafka(TABLE(rides_topic), 'id INT, city STRING, fare INT', 'id')"
    spark.readStream
      .format("kafka")
      .options(options + ("startingOffsets" -> "earliest"))
      .load()
      .createOrReplaceTempView("rides_topic")
    spark.sql(s"SELECT * FROM $from").createOrReplaceTempView("rides")
    val kept = new KeptTable(spark, view)
    kept.catchUp()
    assert(kept.table == Seq("Oslo 1 6", "Rome 1 7"))
    send("2" -> row("Oslo", 1), "3" -> row("Bern", 2), "1" -> null)
    kept.catchUp()
    assert(kept.table == Seq("Bern 1 2", "Oslo 1 1"))
    send("3" -> null, "2" -> null, "2" -> row("Nice", 4), "9" -> null)
    kept.catchUp()
    assert(kept.table == Seq("Nice 1 4"))
    spark.read.format("kafka").options(options).load().createOrReplaceTempView("rides_topic")
    spark.sql(s"SELECT * FROM $from").createOrReplaceTempView("rides")
    assert(spark.sql(view).collect().map(TextChangelog.format).toSeq == kept.table)
  }
}
