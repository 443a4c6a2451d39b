// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.endtoend

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/** A topic in a real broker, whose newest record of each key is a row. */
class UpsertKafkaSuite extends AnyFunSuite with KafkaTopics {
  private val view = "SELECT city, count(*) AS n, sum(fare) AS total FROM rides GROUP BY city"

  private def row(city: String, fare: Int): String = s"""{"city":"$city","fare":$fare}"""

  test("a view over a topic follows new values, and ends with them") {
    createTopic("newest", partitions = 2)
    send("newest", Seq("1" -> row("Oslo", 5), "2" -> row("Rome", 7), "1" -> row("Oslo", 6)))
    val from = "from_upsert_kafka(TABLE(rides_topic), 'id INT, city STRING, fare INT', 'id')"
    stream("newest").createOrReplaceTempView("rides_topic")
    spark.sql(s"SELECT * FROM $from").createOrReplaceTempView("rides")
    val kept = new KeptTable(spark, view)
    kept.catchUp()
    assert(kept.table == Seq("Oslo 1 6", "Rome 1 7"))
    send("newest", Seq("2" -> row("Oslo", 1), "3" -> row("Bern", 2), "1" -> null))
    kept.catchUp()
    assert(kept.table == Seq("Bern 1 2", "Oslo 1 1"))
    send("newest", Seq("3" -> null, "2" -> null, "2" -> row("Nice", 4), "9" -> null))
    kept.catchUp()
    assert(kept.table == Seq("Nice 1 4"))
    batch("newest").createOrReplaceTempView("rides_topic")
    spark.sql(s"SELECT * FROM $from").createOrReplaceTempView("rides")
    assert(spark.sql(view).collect().map(TextChangelog.format).toSeq == kept.table)
  }
}
