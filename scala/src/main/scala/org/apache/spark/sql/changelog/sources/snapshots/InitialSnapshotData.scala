// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.snapshots

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.types.DataTypeUtils.fromAttributes
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.DataSource
import org.apache.spark.sql.execution.streaming.Source
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelation
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.plans.SourceOfPlan

/**
 * What makes the source of a snapshot when a query is started.
 *
 * @param rows
 *   the snapshot, as a plan that is no stream
 */
private[changelog] class InitialSnapshotData(session: SparkSession, val rows: LogicalPlan)
    extends DataSource(session, InitialSnapshotProvider.Name)
    with SourceOfPlan {

  /** The columns of the stream. */
  val columns: StructType = fromAttributes(rows.output).asNullable

  override def createSource(metadataPath: String): Source =
    new InitialSnapshotSource(session, rows, columns, new Path(metadataPath))

  override def equals(other: Any): Boolean = other match {
    case data: InitialSnapshotData => rows.sameResult(data.rows)
    case _ => false
  }

  override def hashCode: Int = rows.semanticHash()
}

private[changelog] object InitialSnapshotData {

  /** What the format of such a stream is called. */
  val Name: String = InitialSnapshotProvider.Name

  /** The rows of the snapshot that a stream is of, if it is of one. */
  def rowsOf(stream: LogicalPlan): Option[LogicalPlan] = stream match {
    case relation: StreamingRelation =>
      relation.dataSource match {
        case data: InitialSnapshotData => Some(data.rows)
        case _ => None
      }
    case _ => None
  }

  /** Whether the rows of a snapshot's offset were copied, and so are there for the first batch only. */
  def isCopied(offset: String): Boolean = SnapshotMoment.parse(offset).copy.nonEmpty
}
