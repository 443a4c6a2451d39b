// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.io.File

import scala.collection.mutable

import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.Sink
import org.apache.spark.sql.execution.streaming.runtime.{
  MemoryStream, MicroBatchExecution, StreamingQueryWrapper
}
import org.apache.spark.sql.streaming.{
  OutputMode, StreamingQuery, StreamingQueryProgress, Trigger
}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{DataFrame, Encoders, Row}
import org.apache.spark.util.{Clock, SystemClock}

/** A stream fed by hand, readable in SQL under its name. */
class RawStream(spark: SparkSession, name: String, columns: String) {
  private val schema = StructType.fromDDL(columns)
  private val stream = MemoryStream[Row](1)(Encoders.row(schema), spark.sqlContext)

  val toDF: DataFrame = stream.toDF()
  toDF.createOrReplaceTempView(name)

  /** Adds rows written as `a 1 NULL`. */
  def add(rows: String*): Unit = stream.addData(rows.map { text =>
    val words = text.split("\\s+").toSeq
    require(words.size == schema.size, s"'$text' has not the columns of $columns")
    Row.fromSeq(words.zip(schema).map { case (word, field) =>
      TextChangelog.value(word, field.dataType)
    })
  })

  /** Forgets all rows, so that another query begins with an empty stream. */
  def reset(): Unit = stream.reset()
}

/**
 * A running query that keeps what it emits, and whose clock can be set on.
 *
 * @param changes
 *   makes the query, anew for each start
 */
class RunningChanges(changes: => DataFrame, val checkpoint: File) {
  private val emitted = mutable.ArrayBuffer.empty[Row]
  private val batches = mutable.SortedMap.empty[Long, Seq[String]]
  // the batches of the running query whose reports have been asked for
  private var reported = Set.empty[Long]
  @volatile private var passed = 0L
  private val clock = new SystemClock {
    override def getTimeMillis(): Long = super.getTimeMillis() + passed
  }
  private val sink: Sink = new Sink {
    override def addBatch(id: Long, data: DataFrame): Unit = {
      val rows = data.collect()
      batches(id) = rows.map(TextChangelog.format).toSeq
      emitted ++= rows
    }
  }
  private var running = start()

  def query: StreamingQuery = running

  /** Sets the query's clock on. */
  def pass(millis: Long): Unit = passed += millis

  private def start(): StreamingQuery = RunningChanges.start(changes, checkpoint, sink, clock)

  /**
   * Starts the query anew from its checkpoint.
   *
   * @param repeats
   *   whether it was not noted that the last batch is done, so that it is run again
   */
  def restart(repeats: Boolean = false): Unit = {
    stop()
    reported = Set.empty
    if (repeats) {
      val commits =
        new File(checkpoint, "commits").listFiles().filter(_.getName.forall(_.isDigit))
      assert(commits.maxBy(_.getName.toLong).delete())
    }
    running = start()
  }

  /** All rows emitted so far, those of a batch that was run again once. */
  def all: Seq[String] = batches.values.flatten.toSeq

  /** Lets rows of several streams arrive in one batch. */
  def atOnce(add: => Unit): Unit = RunningChanges.atOnce(query)(add)

  /** Processes what has arrived. Gives the rows emitted since the last call, as sorted text. */
  def next(): Seq[String] = {
    query.processAllAvailable()
    // a batch is done before it is reported
    while (query.status.isTriggerActive) Thread.sleep(1)
    reports = query.recentProgress.filterNot(report => reported.contains(report.batchId)).toSeq
    reported ++= reports.map(_.batchId)
    val rows = emitted.map(TextChangelog.format).sorted.toSeq
    emitted.clear()
    rows
  }

  /** What the batches since the last call say: more than one, if rows came while one ran. */
  var reports: Seq[StreamingQueryProgress] = Nil

  def progress: StreamingQueryProgress = query.recentProgress.filter(_.numInputRows > 0).last

  def stop(): Unit = query.stop()
}

private[testing] object RunningChanges {

  /** Lets rows of several streams arrive in one batch of a query. */
  def atOnce(query: StreamingQuery)(add: => Unit): Unit = query
    .asInstanceOf[StreamingQueryWrapper]
    .streamingQuery
    .asInstanceOf[MicroBatchExecution]
    .withProgressLocked(add)

  /** Starts a query that runs whenever something has arrived, by a clock of the test. */
  def start(changes: DataFrame, checkpoint: File, sink: Sink, clock: Clock): StreamingQuery = {
    val made = castToImpl(changes)
    made.sparkSession.sessionState.streamingQueryManager.startQuery(
      userSpecifiedName = None,
      userSpecifiedCheckpointLocation = Some(checkpoint.getPath),
      df = made,
      extraOptions = Map.empty,
      sink = sink,
      outputMode = OutputMode.Append(),
      trigger = Trigger.ProcessingTime(0),
      triggerClock = clock)
  }
}
