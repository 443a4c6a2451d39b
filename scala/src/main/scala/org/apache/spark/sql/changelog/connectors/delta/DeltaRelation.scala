// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.delta

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.errors.TableErrors

/** A relation of a plan that reads a Delta table. */
private[changelog] final class DeltaRelation(
    private[delta] val relation: LogicalRelation,
    private[delta] val location: FileIndex) {

  /** Whether the query names the version to read. */
  def isTimeTravel: Boolean = withDelta(DeltaSnapshots.isTimeTravel(location))

  /** The version that the relation reads. */
  def snapshot: DeltaSnapshot = withDelta(DeltaSnapshots.of(location, relation.catalogTable))

  /** Names the cause if the class loader of this jar doesn't find Delta's classes, though Spark's does. */
  private[delta] def withDelta[T](body: => T): T =
    try body
    catch {
      case error: LinkageError =>
        val table = relation.catalogTable.map(_.qualifiedName)
        throw TableErrors.deltaNotLinked(table.getOrElse(location.rootPaths.mkString), error)
    }
}

private[changelog] object DeltaRelation {

  /** Delta's class is known by its name, so that this works where Delta is not installed. */
  private val FileIndexClass = "org.apache.spark.sql.delta.files.TahoeLogFileIndex"

  def unapply(plan: LogicalPlan): Option[DeltaRelation] = plan match {
    case logical: LogicalRelation =>
      logical.relation match {
        case files: HadoopFsRelation if files.location.getClass.getName == FileIndexClass =>
          Some(new DeltaRelation(logical, files.location))
        case _ => None
      }
    case _ => None
  }

  /** The relation that reads a table; none if it is no Delta table. Fails if there is no table. */
  def find(session: SparkSession, table: String): Option[DeltaRelation] =
    session.table(table).queryExecution.analyzed.collectFirst { case DeltaRelation(relation) =>
      relation
    }
}

/** One version of a Delta table. */
private[changelog] trait DeltaSnapshot {
  def version: Long

  /** The identity of the table: a table that replaces another one has another identity. */
  def id: String

  /** The size of its files, if a checksum file tells it without reading the whole log. */
  def bytes: Option[Long]

  def columns: DeltaColumns

  def hasChangeFeed: Boolean

  /** The files from which its rows are read: of data, and of deletion vectors. */
  def files: Seq[Path]

  /** The log from one version to another, both included, as far as it is still there. */
  def log(first: Long, last: Long): Seq[DeltaLogEntry]

  /** The last batch of each application that has written the table. */
  def batches: Map[String, Long]

  /**
   * The changes of a part of the log.
   *
   * @param byFiles
   *   whether to give the rows of added and removed files instead of those of the change data feed.
   *   Files that hold the same rows as those they replace are left out
   */
  def changes(session: SparkSession, log: Seq[DeltaLogEntry], byFiles: Boolean): DataFrame
}

/** One commit in the log of a table. */
private[changelog] trait DeltaLogEntry {
  def version: Long

  /** The columns of the table from this version on, if the commit has changed them. */
  def columns: Seq[DeltaColumns]

  /** The batches that the commit writes, by application. */
  def batches: Map[String, Long]

  /** The value of [[Delta.CommitNote]] when the commit was made. */
  def note: Option[String]

  def files: DeltaFileChanges
}

/**
 * The columns of a table.
 *
 * @param inFiles
 *   what tells them from columns of the same names: names in files, and partitioning
 */
private[changelog] final case class DeltaColumns(schema: StructType, inFiles: Seq[String])
