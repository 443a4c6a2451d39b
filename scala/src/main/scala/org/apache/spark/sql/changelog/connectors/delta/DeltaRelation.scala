// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.delta

import scala.util.Try

import org.apache.hadoop.fs.Path
import org.json4s._
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/** A relation of a plan that reads a Delta table. */
private[changelog] final class DeltaRelation(
    private[delta] val relation: LogicalRelation,
    private[delta] val location: FileIndex) {

  /** Returns whether the query names the version to read. */
  def isTimeTravel: Boolean = withDelta(DeltaSnapshots.isTimeTravel(location))

  /** Returns the version read by the relation. */
  def snapshot: DeltaSnapshot = snapshotSince(None)

  /** Returns the version read, and does not list the log again if the log was listed after `time`, in ms. */
  def snapshotSince(time: Option[Long]): DeltaSnapshot =
    withDelta(DeltaSnapshots.of(location, relation.catalogTable, time))

  /** Returns a relation that reads a version also later, or None if the version is not the current one. */
  def pinnedAt(version: Long): Option[LogicalPlan] = withDelta {
    DeltaSnapshots.pinned(location, version).map { pinned =>
      val files = relation.relation.asInstanceOf[HadoopFsRelation]
      relation.copy(relation = files.copy(location = pinned)(files.sparkSession)).newInstance()
    }
  }

  /** Reports the cause if this jar's class loader doesn't find Delta's classes, although Spark's class loader does. */
  private[delta] def withDelta[T](body: => T): T =
    try body
    catch {
      case error: LinkageError =>
        val table = relation.catalogTable.map(_.qualifiedName)
        throw analysis(
          "CHANGELOG_DELTA_NOT_LINKED",
          error,
          "table" -> table.getOrElse(location.rootPaths.mkString),
          "cause" -> error)
    }
}

private[changelog] object DeltaRelation {

  /** The class by name, because Delta may not be installed. */
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

  /** Returns the relation of a table, or None if the table is no Delta table. Fails for a missing table. */
  def find(session: SparkSession, table: String): Option[DeltaRelation] =
    session.table(table).queryExecution.analyzed.collectFirst { case DeltaRelation(relation) =>
      relation
    }
}

/** One version of a Delta table. */
private[changelog] trait DeltaSnapshot {
  def version: Long

  /** The identity of the table. A replacement of the table has a new identity. */
  def id: String

  /** The size of the table's files, if a checksum file gives the size without reading the whole log. */
  def bytes: Option[Long]

  def columns: DeltaColumns

  def hasChangeFeed: Boolean

  /** The files with the table's rows: data files and deletion vectors. */
  def files: Seq[Path]

  /** Returns the log from one version to another, both included, as far as the log still exists. */
  def log(first: Long, last: Long): Seq[DeltaLogEntry]

  /** Returns the last batch of each application that has written the table. */
  def batches: Map[String, Long]

  /**
   * Returns the changes of a part of the log.
   *
   * @param byFiles
   *   whether to return the rows of added and removed files instead of the change data feed. Files rewritten with equal
   *   rows are left out.
   */
  def changes(session: SparkSession, log: Seq[DeltaLogEntry], byFiles: Boolean): DataFrame
}

/** One commit in the log of a table. */
private[changelog] trait DeltaLogEntry {
  def version: Long

  /** The columns of the table from this version on, if changed by the commit. */
  def columns: Seq[DeltaColumns]

  /** The batches written by the commit, by application. */
  def batches: Map[String, Long]

  /** The value of [[Delta.CommitNote]] at the commit. */
  def note: Option[String]

  def files: DeltaFileChanges
}

/**
 * The columns of a table.
 *
 * @param inFiles
 *   distinguishes columns with equal names: names in files, and partitioning
 * @param first
 *   returns the first columns, by their number
 */
private[changelog] final case class DeltaColumns(schema: StructType, inFiles: Seq[String])(
    val first: Int => DeltaColumns)

/**
 * DeltaStreamOffset: the position up to which Delta's own stream has read a table.
 *
 * @param table
 *   the table's identity in the log
 * @param version
 *   the last version read. A batch ends within a version only if a limit on files per batch applies.
 */
case class DeltaStreamOffset(table: String, version: Long)

object DeltaStreamOffset {

  /**
   * Returns the offset in a JSON text, if written by Delta. The JSON names a version and the index of the last file
   * read, negative if the stream has read no file of the version.
   */
  def find(json: String): Option[DeltaStreamOffset] =
    Try(JsonMethods.parse(json)).toOption.flatMap { read =>
      (read \ "reservoirId", read \ "reservoirVersion", read \ "index") match {
        case (JString(table), JInt(version), JInt(file)) =>
          Some(DeltaStreamOffset(table, version.toLong - (if (file < 0) 1 else 0)))
        case _ => None
      }
    }
}

/** DeltaWriter: writes batches of changes into a Delta table without `MERGE`. */
private[changelog] trait DeltaWriter {

  /**
   * Writes a batch in one commit, unless the table already has the batch. Writes nothing and returns false if the batch
   * affects too many rows.
   *
   * @param changes
   *   the table's columns, and a count in the last column. With a key, a positive count sets the key's row, and a
   *   negative count deletes the row. Without a key, the count is the number of equal rows to insert, or to delete if
   *   negative.
   */
  def write(changes: DataFrame, batch: Long): Boolean
}

private[changelog] object DeltaWriter {

  /**
   * Returns a writer for a table, or None if the table requires `MERGE`.
   *
   * @param application
   *   the writer's name in the log
   */
  def find(
      session: SparkSession,
      table: String,
      identity: RowIdentity,
      application: String): Option[DeltaWriter] =
    DeltaRelation.find(session, table).flatMap { found =>
      found.withDelta(DeltaWrites.find(session, table, found, identity, application))
    }
}
