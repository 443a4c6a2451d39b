// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{DataFrame, Encoders, Row}

/** A source of a feed's changes. The source outlives the queries over it. */
trait FeedSource {

  /** Returns a new stream of everything that arrives, in `session`. */
  def stream(session: SparkSession): DataFrame

  /** Adds rows, possibly none, in a single batch if no batch starts meanwhile. */
  def add(rows: Seq[Row]): Unit

  def close(): Unit = ()
}

/** A kind of [[FeedSource]]. */
abstract class SourceKind(override val toString: String) {

  /**
   * Creates an empty source.
   *
   * @param session
   *   a session for work outside the query
   * @param partitions
   *   the number of tasks that read rows added together, if the source has no fixed number
   */
  def open(session: SparkSession, schema: StructType, partitions: Int): FeedSource
}

/** Rows in the memory of this process. Without new data, Spark replaces the source by an empty relation. */
object InMemory extends SourceKind("memory") {

  override def open(session: SparkSession, schema: StructType, partitions: Int): FeedSource =
    new FeedSource {
      private val rows = MemoryStream[Row](partitions)(Encoders.row(schema), session.sqlContext)

      override def stream(session: SparkSession): DataFrame = {
        val relation = rows.toDF().queryExecution.logical.asInstanceOf[StreamingRelationV2]
        Dataset.ofRows(session, relation.newInstance())
      }

      override def add(added: Seq[Row]): Unit = rows.addData(added)
    }
}
