// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.collection.mutable

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.streaming.{StreamingQuery, Trigger}
import org.apache.spark.sql.{DataFrame, Row}

/**
 * The table that a query's changes keep, in memory. Taking back what isn't there fails the query.
 *
 * @param sql
 *   the query
 */
class KeptTable(spark: SparkSession, sql: String) {
  private val rows = mutable.ArrayBuffer.empty[Seq[Any]]
  private val checkpoint = QuickFileSystem.temporaryDirectory()
  private var query: Option[StreamingQuery] = None

  /** Runs until `stop`. */
  def start(): Unit = query = Some(start(Trigger.ProcessingTime(0)))

  /** Processes what there is, as one run that starts from the checkpoint. */
  def catchUp(): Unit = start(Trigger.AvailableNow()).awaitTermination()

  /**
   * Processes what there is, and compares the table with the query in batch Spark.
   *
   * @param now
   *   the rows that the query's table `rides` has now
   */
  def check(now: DataFrame, clue: => String = ""): Unit = {
    catchUp()
    now.createOrReplaceTempView("now")
    val expected = spark.sql(sql.replace("FROM rides", "FROM now")).collect()
    assert(table == expected.map(TextChangelog.format).toSeq.sorted, clue)
  }

  /** Processes what there is, while it runs. */
  def processAll(): Unit = query.foreach(_.processAllAvailable())

  def restart(): Unit = {
    stop()
    start()
  }

  def stop(): Unit = query.foreach(_.stop())

  /** The rows as text. */
  def table: Seq[String] = {
    query.flatMap(_.exception).foreach(error => throw error)
    rows.synchronized(rows.map(row => TextChangelog.format(Row.fromSeq(row))).sorted.toSeq)
  }

  private def start(trigger: Trigger): StreamingQuery = spark
    .sql(s"SELECT * FROM to_changelog(TABLE($sql))")
    .writeStream
    .option("checkpointLocation", checkpoint.getPath)
    .trigger(trigger)
    .foreachBatch { (batch: DataFrame, _: Long) =>
      apply(batch.collect().toSeq)
    }
    .start()

  private def apply(changes: Seq[Row]): Unit = rows.synchronized {
    val (taken, added) = changes
      .map(change => (change.getString(change.size - 1), change.toSeq.init))
      .partition { case (kind, _) => kind == "delete" || kind == "update_preimage" }
    taken.foreach { case (_, row) =>
      val index = rows.indexOf(row)
      assert(index >= 0, s"$row is taken back, but is not there")
      rows.remove(index)
    }
    rows ++= added.map(_._2)
  }
}
