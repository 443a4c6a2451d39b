// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{DataFrame, Encoders, Row}

/** What a feed's changes arrive in. It stays when a query over it ends and is begun anew. */
trait FeedSource {

  /** All that arrives, as a stream of `session` that no other query has seen. */
  def stream(session: SparkSession): DataFrame

  /** Lets rows arrive together: in one batch, if none begins meanwhile. They may be none. */
  def add(rows: Seq[Row]): Unit

  def close(): Unit = ()
}

/** A kind of [[FeedSource]]. */
abstract class SourceKind(override val toString: String) {

  /**
   * Makes an empty source.
   *
   * @param session
   *   a session for work beside the query
   * @param partitions
   *   by how many tasks rows are read that arrive together, if the source leaves that open
   */
  def open(session: SparkSession, schema: StructType, partitions: Int): FeedSource
}

/** Rows in the memory of this process. A source without news is a relation without rows. */
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
