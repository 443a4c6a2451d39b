// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.io.File

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.types.StringType
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.plans.ChangelogOutput

/**
 * The tables of a program, as they change, and what batch Spark makes of them. A table of which a step
 * says nothing has no news at all then.
 *
 * @param sessions
 *   the sessions it needs
 * @param kinds
 *   what the tables are read from, one after the other and again from the first
 * @param tellsChanges
 *   whether that is changes; else it is files of all rows, which are written anew
 */
class KeptProgram private[changelog] (
    sessions: OracleSessions,
    program: Program,
    kinds: Seq[SourceKind],
    val tellsChanges: Boolean = true) {
  private val arrived = program.feeds.map { feed =>
    feed.name -> (if (feed.upsert) new UpsertTable(feed) else new RetractTable(feed.insertOnly))
  }.toMap
  private val sources =
    if (!tellsChanges) Map.empty[String, FeedSource]
    else
      program.feeds.zipWithIndex.map { case (feed, index) =>
        val schema = feed.schema.add("op", StringType)
        feed.name -> kinds(index % kinds.size).open(sessions.batch, schema, partitions = 1)
      }.toMap
  private val folders =
    if (tellsChanges) Map.empty[String, File]
    else program.feeds.map(_.name -> QuickFileSystem.temporaryDirectory()).toMap
  if (!tellsChanges) program.feeds.foreach(writeRows)

  def sql: String = program.sql

  /** A session that no query has run in, whose queries can name the tables: of a process begun anew. */
  def session(): SparkSession = {
    val session = sessions.next()
    nameTables(session)
    session
  }

  /** Lets queries of a session name the tables. */
  def nameTables(session: SparkSession): Unit =
    program.feeds.foreach { feed =>
      if (tellsChanges) {
        sources(feed.name).stream(session).createOrReplaceTempView(s"raw_${feed.name}")
        session.sql(feed.read(s"raw_${feed.name}", "op")).createOrReplaceTempView(feed.name)
      } else session.read.parquet(folders(feed.name).getPath).createOrReplaceTempView(feed.name)
    }

  /** The changes of the query as `session` reads it, with further arguments of `to_changelog`. */
  def changes(session: SparkSession, arguments: String): DataFrame =
    session.sql(text(arguments))

  private def text(arguments: String): String =
    s"SELECT * FROM to_changelog(TABLE($sql)$arguments)"

  /** The keys that the query is known to have. */
  def keys: Seq[Seq[String]] =
    output.upsertKeys.map(_.map(_.name))

  /** Whether its rows only ever come. */
  def isInsertOnly: Boolean = PlannedChanges.isInsertOnly(output)

  private lazy val output: ChangelogOutput =
    PlannedChanges(session(), text(", change_type => 'changed'"))

  /** Lets a step's changes arrive in one batch of the query, if it runs. */
  def arrive(step: Step, running: Option[StreamingQuery]): Unit = {
    def add(): Unit = program.feeds.foreach { feed =>
      step.changes.get(feed.name).foreach { changes =>
        changes.foreach(arrived(feed.name).add)
        val rows = changes.map(change => Row.fromSeq(change.row.toSeq :+ change.kind))
        if (tellsChanges) sources(feed.name).add(rows) else writeRows(feed)
      }
    }
    running match {
      case Some(query) => RunningChanges.atOnce(query)(add())
      case None => add()
    }
  }

  /** What the query gives as a batch, over all that has arrived. */
  def expected: DataFrame = {
    program.feeds.foreach(feed => rowsOf(feed).createOrReplaceTempView(feed.name))
    sessions.batch.sql(sql)
  }

  private def rowsOf(feed: Feed): DataFrame =
    sessions.batch.createDataFrame(arrived(feed.name).rows.asJava, feed.schema)

  private def writeRows(feed: Feed): Unit =
    rowsOf(feed).coalesce(1).write.mode("overwrite").parquet(folders(feed.name).getPath)

  def close(): Unit = {
    sources.values.foreach(_.close())
    folders.values.foreach(Utils.deleteRecursively)
  }
}

object KeptProgram {

  /** Makes a checkpoint forget that its last batch was written; false if there is none. */
  def forgetLastBatch(checkpoint: File): Boolean = {
    val commits = Option(new File(checkpoint, "commits").listFiles()).toSeq.flatten
    val last = commits.filter(_.getName.forall(_.isDigit)).maxByOption(_.getName.toLong)
    last.foreach(file => assert(file.delete()))
    last.isDefined
  }
}
