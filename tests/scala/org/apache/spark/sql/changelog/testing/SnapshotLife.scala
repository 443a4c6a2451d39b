// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.io.File
import java.nio.file.{Files, Path}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.scalatest.Assertions

import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.streaming.{StreamingQueryProgress, Trigger}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{DataFrame => AnyDataFrame, Row}

/**
 * The life of a query over a feed of files that begins with a snapshot: each of its runs is begun anew from its
 * text, in a session of its own, and all go on from one checkpoint.
 *
 * @param snapshot
 *   a query that gives the snapshot, in any session
 * @param arguments
 *   further arguments of `from_changelog`
 * @param sql
 *   the query over the table `rides`
 */
class SnapshotLife(
    spark: SparkSession,
    snapshot: String,
    arguments: String = "",
    var sql: String = "SELECT * FROM rides")
    extends Assertions {
  private val home = QuickFileSystem.temporaryDirectory().toPath
  private val feed = Files.createDirectories(home.resolve("feed"))
  private val arrived = mutable.ArrayBuffer.empty[Row]
  private val batches = mutable.Map.empty[Long, Seq[String]]
  private var numFiles = 0

  /** The one that its runs go on from. */
  var checkpoint: Path = home.resolve("checkpoint")

  /** Goes on from another checkpoint, which `prepare` makes of this one, as the same query or another. */
  def goOn(
      changed: String = sql,
      asOther: Boolean = false)(prepare: (Path, Path) => Unit): Unit = {
    val before = checkpoint
    sql = changed
    checkpoint = home.resolve(s"${before.getFileName}-on")
    prepare(before, checkpoint)
    // another query without a target begins with all rows of its result
    if (asOther) batches.clear()
  }

  /** The snapshot as it was when the query was thought of: the first batch is to have just these rows. */
  private val delivered = spark.sql(snapshot)
  private val deliveredRows = delivered.collect().toSeq

  /** What the batches of the last run have told. */
  var progress: Seq[StreamingQueryProgress] = Nil

  /** Lets changes arrive, written as `+I 1 Oslo 5 10`, as one file. */
  def arrive(changes: String*): Unit = {
    val parsed = changes.map(TextChangelog.parse(_, SnapshotLife.Rides))
    arrived ++= parsed.map(change => Row.fromSeq(change.kind +: change.row.toSeq))
    numFiles += 1
    ArrivingFile.writeCsv(feed, numFiles, parsed)
  }

  /** The changes of the query, in a session of their own. */
  def changes(): DataFrame = session().sql(statement)

  def statement: String = s"SELECT * FROM to_changelog(TABLE($sql))"

  /** A session that knows the table. */
  def session(): SparkSession = {
    val session = spark.newSession()
    session.readStream
      .schema(s"op STRING, ${SnapshotLife.Rides.toDDL}")
      .option("maxFilesPerTrigger", 1)
      .csv(feed.toString)
      .createOrReplaceTempView("feed")
    readRides(session, snapshot)
    session
  }

  private def readRides(session: SparkSession, snapshot: String): Unit =
    session
      .sql(
        "SELECT * FROM from_changelog(TABLE(feed), 'op', key => 'id', " +
          s"snapshot => TABLE($snapshot)$arguments)")
      .createOrReplaceTempView("rides")

  /** Runs the query until it has read all files; `fails` is asked when a batch has been computed. */
  def run(fails: Long => Boolean = _ => false): Unit = {
    val query = changes().writeStream
      .option("checkpointLocation", checkpoint.toString)
      .trigger(Trigger.AvailableNow())
      .foreachBatch { (batch: AnyDataFrame, id: Long) =>
        batches(id) = batch.collect().map(TextChangelog.format).toSeq
        if (fails(id)) throw new IllegalStateException("this batch was to fail")
      }
      .start()
    try query.awaitTermination()
    finally query.stop()
    progress = query.recentProgress.toSeq
  }

  /** Runs the query, and compares its table with what batch Spark makes of all that was delivered. */
  def check(): Unit = {
    run()
    assert(table == expected)
  }

  /** The table that the changes keep. */
  def table: Seq[String] = FoldedChanges(batches.toSeq.sortBy(_._1).flatMap(_._2))

  /** What batch Spark makes of the snapshot and the feed. */
  def expected: Seq[String] = {
    val session = spark.newSession()
    session
      .createDataFrame(
        arrived.asJava,
        StructType.fromDDL(s"op STRING, ${SnapshotLife.Rides.toDDL}"))
      .createOrReplaceTempView("feed")
    session
      .createDataFrame(deliveredRows.asJava, delivered.schema)
      .createOrReplaceTempView("delivered")
    readRides(session, "delivered")
    session.sql(sql).collect().map(TextChangelog.format).sorted.toSeq
  }

  /** How many changes were told to be older than the row of their key, in the last run. */
  def outdated: Long = progress
    .flatMap(_.stateOperators)
    .flatMap(operator => Option(operator.customMetrics.get("numOutdatedChanges")))
    .map(_.longValue)
    .sum

  /** What is kept of the snapshot beside the checkpoint. */
  def copies: Seq[File] = {
    val sources = Option(checkpoint.resolve("sources").toFile.listFiles()).toSeq.flatten
    sources
      .flatMap(folder => Option(folder.listFiles()).toSeq.flatten)
      .filter(_.getName.startsWith("rows-"))
  }
}

object SnapshotLife {
  val Rides: StructType = StructType.fromDDL("id INT, city STRING, fare INT, ts INT")
}
