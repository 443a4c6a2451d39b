// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.nio.file.{Files, Path}

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.streaming.{StreamingQuery, StreamingQueryProgress}
import org.apache.spark.sql.{DataFrame, Row}

import org.apache.spark.sql.changelog.identity.QueryRecord

/**
 * The life of a query over files of changes: each of its runs is begun anew from its text, in a
 * session of its own, and all go on from one checkpoint.
 *
 * @param feeds
 *   the tables it reads
 */
class QueryLife(spark: SparkSession, feeds: Feed*) {
  private val home = QuickFileSystem.temporaryDirectory().toPath
  private val tables = feeds.map(feed => feed.name -> new RetractTable(feed.insertOnly)).toMap
  private var numFiles = 0
  private var numCheckpoints = 0

  /** The one that its runs go on from. */
  var checkpoint: Path = home.resolve("checkpoint")

  /** The rows of each of the statement's `to_changelog`, told apart by their first column. */
  var result = new RowMultiset

  /** What the checkpoint says that the query is. */
  def record: QueryRecord = QueryRecord.fromJson(Files.readString(recordFile))

  private def recordFile: Path = checkpoint.resolve("changelog/plan.json")

  /** Where a changed query may have a checkpoint of its own. */
  def anotherCheckpoint(): Path = {
    numCheckpoints += 1
    home.resolve(s"checkpoint-$numCheckpoints")
  }

  def folder(feed: Feed): Path = Files.createDirectories(home.resolve(feed.name))

  /** Changes of a table, as one file. */
  def add(feed: Feed, changes: String*): Unit = {
    val parsed = changes.map(TextChangelog.parse(_, feed.schema))
    parsed.foreach(tables(feed.name).add)
    numFiles += 1
    ArrivingFile.writeCsv(folder(feed), numFiles, parsed)
  }

  /** A session that knows the tables as changelogs, under their names. */
  def session(conf: Map[String, String] = Map.empty): SparkSession = {
    val session = spark.newSession()
    conf.foreach { case (key, value) => session.conf.set(key, value) }
    feeds.foreach { feed =>
      session.readStream
        .schema(s"_op STRING, ${feed.columns}")
        .csv(folder(feed).toString)
        .createOrReplaceTempView(s"${feed.name}_changes")
      session.sql(feed.read(s"${feed.name}_changes", "_op")).createOrReplaceTempView(feed.name)
    }
    session
  }

  /** The changes of a query over the tables. */
  def changes(sql: String, conf: Map[String, String] = Map.empty): DataFrame =
    session(conf).sql(s"SELECT * FROM to_changelog(TABLE($sql))")

  /** Runs a query until it has read all files. */
  def run(changes: DataFrame): Unit = {
    val query = start(changes)
    try query.processAllAvailable()
    finally query.stop()
    progress = query.recentProgress.toSeq
  }

  /** What the batches of the last run have told. */
  var progress: Seq[StreamingQueryProgress] = Nil

  def start(changes: DataFrame): StreamingQuery = changes.writeStream
    .option("checkpointLocation", checkpoint.toString)
    .foreachBatch { (batch: DataFrame, _: Long) =>
      val kinds = Map("insert" -> 1, "update_postimage" -> 1)
      batch.collect().foreach { row =>
        val values = Row.fromSeq(row.toSeq.init)
        result.add(values, kinds.getOrElse(row.getString(row.size - 1), -1))
      }
    }
    .start()

  /** What batch Spark gives for a query over the tables now. */
  def expected(sql: String): RowMultiset = RowMultiset.of(batch(sql).collect())

  /** What its columns are called. */
  def expectedColumns(sql: String): Seq[String] = batch(sql).columns.toSeq

  private def batch(sql: String): DataFrame = {
    val session = spark.newSession()
    feeds.foreach { feed =>
      session
        .createDataFrame(java.util.List.of(tables(feed.name).rows: _*), feed.schema)
        .createOrReplaceTempView(feed.name)
    }
    session.sql(sql)
  }
}
