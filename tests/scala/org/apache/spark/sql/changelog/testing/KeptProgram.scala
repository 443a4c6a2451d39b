// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.io.File

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime._
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.types.StringType
import org.apache.spark.sql.{DataFrame, Encoders, Row}

import org.apache.spark.sql.changelog.plans.ChangelogOutput

/**
 * The tables of a program, as they change, and what batch Spark makes of them.
 *
 * Queries over the tables are made in `spark`. A table that has no changes in a step has no news at
 * all then.
 */
class KeptProgram(spark: SparkSession, program: Program) {
  private val batch = spark.newSession()
  private val arrived = program.feeds.map { feed =>
    feed.name -> (if (feed.upsert) new UpsertTable(feed) else new RetractTable)
  }.toMap
  private val streams = program.feeds.map { feed =>
    val encoder = Encoders.row(feed.schema.add("op", StringType))
    val stream = MemoryStream[Row](1)(encoder, spark.sqlContext)
    stream.toDF().createOrReplaceTempView(s"raw_${feed.name}")
    spark.sql(feed.read(s"raw_${feed.name}", "op")).createOrReplaceTempView(feed.name)
    feed.name -> stream
  }.toMap

  /** Does something, such as registering a function, where the query is computed as a batch. */
  def inBatch(body: SparkSession => Unit): this.type = {
    body(batch)
    this
  }

  def sql: String = program.sql

  /** The changes of the query, with further arguments of `to_changelog`. */
  def changes(arguments: String): DataFrame =
    spark.sql(s"SELECT * FROM to_changelog(TABLE($sql)$arguments)")

  /** The keys that the query is known to have. */
  def keys: Seq[Seq[String]] =
    output.upsertKeys.map(_.map(_.name))

  /** Whether its rows only ever come. */
  def isInsertOnly: Boolean = output.explained.symbols == Seq("I")

  private lazy val output: ChangelogOutput = spark.sessionState.optimizer
    .execute(changes(", change_type => 'changed'").queryExecution.analyzed)
    .collectFirst { case output: ChangelogOutput => output }
    .get

  /** Lets a step's changes arrive in one batch of the query, if it runs. */
  def arrive(step: Step, running: Option[StreamingQuery]): Unit = {
    def add(): Unit = program.feeds.foreach { feed =>
      val changes = step.changes.getOrElse(feed.name, Nil)
      changes.foreach(arrived(feed.name).add)
      if (changes.nonEmpty) {
        val rows = changes.map(change => Row.fromSeq(change.row.toSeq :+ change.kind))
        streams(feed.name).addData(rows)
      }
    }
    running match {
      case Some(query) =>
        query
          .asInstanceOf[StreamingQueryWrapper]
          .streamingQuery
          .asInstanceOf[MicroBatchExecution]
          .withProgressLocked(add())
      case None => add()
    }
  }

  /** What the query gives as a batch, over all that has arrived. */
  def expected: DataFrame = {
    program.feeds.foreach { feed =>
      batch
        .createDataFrame(arrived(feed.name).rows.asJava, feed.schema)
        .createOrReplaceTempView(feed.name)
    }
    batch.sql(sql)
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
