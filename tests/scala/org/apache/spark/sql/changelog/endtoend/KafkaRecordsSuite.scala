// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.endtoend

import java.io.File

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Row

import org.apache.spark.sql.changelog.testing._

/** Debezium's events in topics of a real broker: those that can't be read, come twice, or late. */
class KafkaRecordsSuite extends AnyFunSuite with KafkaTopics with ErrorChecks {
  private val view = "SELECT city, count(*) AS n, sum(fare) AS total FROM rides GROUP BY city"

  private def event(lsn: Int, id: Any, city: String, fare: Int, op: String = "u"): String =
    s"""{"op":"$op","before":null,"after":{"id":$id,"city":"$city","fare":$fare},""" +
      s""""source":{"lsn":$lsn}}"""

  private def deleted(lsn: Int, id: Int): String =
    s"""{"op":"d","before":{"id":$id},"after":null,"source":{"lsn":$lsn}}"""

  private def sendEvents(topic: String, partition: Int, events: String*): Unit =
    send(topic, events.map(event => ("", event)), Some(partition))

  private def read(topic: String, arguments: String = ""): Unit = {
    stream(topic).createOrReplaceTempView("records")
    spark
      .sql(
        "SELECT * FROM from_debezium(TABLE(records), 'id INT, city STRING, fare INT', " +
          s"key => 'id'$arguments)")
      .createOrReplaceTempView("rides")
  }

  test("what can't be read is kept with its topic, partition and offset, and counted") {
    createTopic("unread", partitions = 2)
    val letters = new File(QuickFileSystem.temporaryDirectory(), "letters")
    read("unread", s", dead_letter => '$letters'")
    val checkpoint = QuickFileSystem.temporaryDirectory()
    def next(): (Seq[String], Long) = {
      val running =
        new RunningChanges(spark.sql(s"SELECT * FROM to_changelog(TABLE($view))"), checkpoint)
      try {
        val changes = running.next()
        val observed = running.progress.observedMetrics.get("from_changelog")
        (changes, observed.getAs[Long]("numDroppedRows"))
      } finally running.stop()
    }
    sendEvents("unread", 0, event(1, 1, "Oslo", 5), "hello")
    assert(next() == ((Seq("Oslo 1 5 insert"), 1L)))
    val unread = event(3, "\"x\"", "Oslo", 1)
    sendEvents("unread", 1, event(2, 2, "Oslo", 1), unread, event(4, 2, "Rome", 7))
    assert(next() == ((Seq("Rome 1 7 insert"), 1L)))
    assert(
      spark.read
        .json(letters.getPath)
        .selectExpr("source.topic", "source.partition", "source.offset", "error")
        .orderBy("partition")
        .collect()
        .toSeq == Seq(
        Row("unread", 0L, 1L, "it is not a JSON object"),
        Row("unread", 1L, 1L, "column id has the value 'x', which is not of its type INT")))
  }

  test("elsewhere it fails the query, with its topic, partition and offset") {
    createTopic("failing", partitions = 2)
    read("failing")
    sendEvents("failing", 1, event(1, 1, "Oslo", 5), "hello")
    val error = changelogError(new KeptTable(spark, view).catchUp())
    assert(error.getCondition == "CHANGELOG_RECORD_MALFORMED")
    val place = error.getMessageParameters.get("place")
    assert(place.contains("topic=failing, partition=1, offset=1,"), place)
    assert(error.getMessageParameters.get("fault") == "it is not a JSON object")
  }

  test("events that come twice, or late in another partition, change nothing") {
    createTopic("again", partitions = 2)
    read("again")
    val kept = new KeptTable(spark, view)
    sendEvents("again", 0, event(1, 1, "Oslo", 5), event(4, 1, "Rome", 6), event(3, 2, "Rome", 1))
    kept.catchUp()
    assert(kept.table == Seq("Rome 2 7"))
    // older ones of both rows, and all that were there
    sendEvents("again", 1, event(2, 1, "Bern", 9), deleted(2, 2), deleted(5, 2))
    sendEvents("again", 0, event(1, 1, "Oslo", 5), event(4, 1, "Rome", 6), event(3, 2, "Rome", 1))
    kept.catchUp()
    assert(kept.table == Seq("Rome 1 6"))
    sendEvents("again", 1, event(6, 2, "Nice", 2), deleted(3, 1))
    kept.catchUp()
    assert(kept.table == Seq("Nice 1 2", "Rome 1 6"))
  }
}
