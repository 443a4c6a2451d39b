// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.io.File

import org.scalatest.Assertions._

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.types.{StringType, StructType}
import org.apache.spark.sql.{DataFrame, Encoders, Row}

/**
 * A query over one changing table, whose result a sink keeps.
 *
 * @param sql
 *   the query, over the feed's name
 * @param target
 *   reads what the sink has kept
 */
class KeptQuery(spark: SparkSession, feed: Feed, sql: String, target: => DataFrame) {
  private val raw = s"raw_${feed.name}"
  private val arrived: FeedTable =
    if (feed.upsert) new UpsertTable(feed) else new RetractTable(feed.insertOnly)
  private val rawSchema = StructType(feed.schema.fields).add("op", StringType)
  private val stream = MemoryStream[Row](1)(Encoders.row(rawSchema), spark.sqlContext)
  private val session = spark.newSession()
  stream.toDF().createOrReplaceTempView(raw)
  spark.sql(feed.read(raw, "op")).createOrReplaceTempView(feed.name)

  val checkpoint: File = QuickFileSystem.temporaryDirectory()
  private var query: StreamingQuery = _

  /** The changes of the query. */
  def changes(arguments: String = ""): DataFrame =
    spark.sql(s"SELECT * FROM to_changelog(TABLE($sql)$arguments)")

  def start(
      format: String,
      options: Map[String, String],
      arguments: String = "",
      prepare: DataFrame => DataFrame = identity): StreamingQuery = {
    query = prepare(changes(arguments)).writeStream
      .format(format)
      .options(options)
      .option("checkpointLocation", checkpoint.getPath)
      .start()
    query
  }

  def stop(): Unit = if (query != null) query.stop()

  def processAll(): Unit = query.processAllAvailable()

  /** Stops the query, and makes its checkpoint forget that its last batch was written. */
  def forgetLastBatch(): Unit = {
    stop()
    val commits = new File(checkpoint, "commits").listFiles().filter(_.getName.forall(_.isDigit))
    assert(commits.maxBy(_.getName.toLong).delete())
  }

  /** Lets changes arrive in one batch, and compares what is kept with batch Spark. */
  def check(changes: String*): Unit = {
    add(changes: _*)
    query.processAllAvailable()
    compare()
  }

  def add(changes: String*): Unit = {
    val parsed = changes.map(TextChangelog.parse(_, feed.schema))
    parsed.foreach(arrived.add)
    stream.addData(parsed.map(change => Row.fromSeq(change.row.toSeq :+ change.kind)))
  }

  def compare(): Unit = {
    session
      .createDataFrame(java.util.List.of(arrived.rows: _*), feed.schema)
      .createOrReplaceTempView(feed.name)
    val expected = RowMultiset.of(session.sql(sql).collect())
    val kept = RowMultiset.of(target.collect())
    assert(kept == expected, s"\nkept:\n$kept\nexpected:\n$expected")
  }
}
