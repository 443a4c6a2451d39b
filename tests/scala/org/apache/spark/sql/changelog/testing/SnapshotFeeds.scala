// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.nio.file.{Files, Path}

import org.scalatest.Assertions

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.streaming.Trigger
import org.apache.spark.sql.{DataFrame, Row}

/**
 * The life of a query over two feeds of files, `a` and `b`, whose text says which snapshots they begin with. It may
 * be another one each time it is started.
 */
class SnapshotFeeds(spark: SparkSession) extends Assertions {
  private val home = QuickFileSystem.temporaryDirectory().toPath
  private val columns = SnapshotLife.Rides.toDDL
  private var batches = Seq.empty[String]
  private var numFiles = 0
  private var numCheckpoints = 0

  /** The one that its runs go on from. */
  var checkpoint: Path = home.resolve("checkpoint")

  /** A table of files with these rows, and the query that reads it. */
  def write(format: String, name: String, rows: String*): String = {
    val path = home.resolve(name).toString
    spark
      .sql(s"SELECT * FROM VALUES ${rows.mkString(", ")} AS t(id, city, fare, ts)")
      .write
      .format(format)
      .mode("overwrite")
      .save(path)
    s"SELECT * FROM $format.`$path`"
  }

  /** What reads a feed, with the snapshot that it begins with. */
  def rows(feed: String, snapshot: String = ""): String = {
    val begins = if (snapshot.isEmpty) "" else s", snapshot => TABLE($snapshot)"
    s"from_changelog(TABLE($feed), 'op', key => 'id', input => 'upsert', sequence_by => 'ts'$begins)"
  }

  def arrive(feed: String, changes: String*): Unit = {
    numFiles += 1
    val parsed = changes.map(TextChangelog.parse(_, SnapshotLife.Rides))
    ArrivingFile.writeCsv(folder(feed), numFiles, parsed)
  }

  private def folder(feed: String): Path = Files.createDirectories(home.resolve(s"feed-$feed"))

  /** A session that knows the feeds as streams. */
  def session(): SparkSession = {
    val session = spark.newSession()
    Seq("a", "b").foreach { feed =>
      val files = session.readStream.schema(s"op STRING, $columns").csv(folder(feed).toString)
      files.createOrReplaceTempView(feed)
    }
    session
  }

  private def changes(sql: String): String = s"SELECT * FROM to_changelog(TABLE($sql))"

  /** Runs the query until it has read all files; `fails` is asked when a batch has been computed. */
  def run(sql: String, fails: Long => Boolean = _ => false): Unit = {
    val query = session()
      .sql(changes(sql))
      .writeStream
      .option("checkpointLocation", checkpoint.toString)
      .trigger(Trigger.AvailableNow())
      .foreachBatch { (batch: DataFrame, id: Long) =>
        val rows = batch.collect().map(TextChangelog.format).toSeq
        if (fails(id)) throw new IllegalStateException("this batch was to fail")
        batches ++= rows
      }
      .start()
    try query.awaitTermination()
    finally query.stop()
  }

  /** Runs the query, and compares its table with what batch Spark makes of the feeds and the snapshots. */
  def check(sql: String): Unit = {
    run(sql)
    val session = spark.newSession()
    Seq("a", "b").foreach { feed =>
      val files = session.read.schema(s"op STRING, $columns").csv(folder(feed).toString)
      files.createOrReplaceTempView(feed)
    }
    val expected = session.sql(sql).collect().map(TextChangelog.format).sorted.toSeq
    assert(table == expected)
  }

  /** The table that the changes keep. */
  def table: Seq[String] = FoldedChanges(batches)

  /** What would become of the operators if the query were another one. */
  def explain(sql: String): Seq[Row] =
    session().sql(s"EXPLAIN EVOLVE CHECKPOINT '$checkpoint' AS ${changes(sql)}").collect().toSeq

  /** Lets another query go on with what is kept; what becomes of the operators. */
  def evolve(sql: String): Seq[String] = {
    val into = another()
    val fates =
      session().sql(s"EVOLVE CHECKPOINT '$checkpoint' INTO '$into' AS ${changes(sql)}").collect()
    checkpoint = into
    batches = Nil
    fates.map(_.getString(1)).toSeq
  }

  /** Lets the next run begin from nothing. */
  def beginAnew(): Unit = {
    checkpoint = another()
    batches = Nil
  }

  private def another(): Path = {
    numCheckpoints += 1
    home.resolve(s"checkpoint-$numCheckpoints")
  }
}
