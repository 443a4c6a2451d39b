// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.iceberg

import org.apache.spark.sql.catalyst.analysis.{AsOfVersion, UnresolvedRelation}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, MergeIntoTable}
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.connector.catalog.{Table, TableChange}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.checkpoint.Fence
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/**
 * IcebergTable: an Iceberg table as loaded by a query, or one of the table's branches or tags.
 *
 * A snapshot is None before the first commit.
 */
private[changelog] trait IcebergTable {

  /** The identity of the table. A table of the same name, created later, has another identity. */
  def id: String

  def columns: StructType

  /** Whether the table's metadata was copied from the folder of another table. */
  def isCopied: Boolean

  /** Whether snapshots have sequence numbers. */
  def hasNumbers: Boolean

  /** Distinguishes the first columns from others with equal names, by the ids that Iceberg gives to columns. */
  def columnIds(count: Int): Seq[String]

  /** The snapshot read by the query. */
  def snapshot: Option[Long]

  /** Makes the catalog's cache know commits by other processes. Tables loaded later have their snapshots. */
  def refresh(): Unit

  /** Returns whether the table still has the snapshot. */
  def has(snapshot: Option[Long]): Boolean

  /** Returns the rows of a snapshot, with the table's current columns. */
  def rows(session: SparkSession, snapshot: Option[Long]): LogicalPlan

  /** Compares the files of two snapshots. */
  def difference(from: Option[Long], until: Option[Long]): IcebergDifference

  /** The bytes of the files of a snapshot. */
  def bytes(snapshot: Option[Long]): Long

  /** The snapshot that was read, and its ancestors. */
  def history: Iterator[IcebergSnapshot]

  /** Returns the table for a statement whose commit checks the fences of the thread. */
  def fenced: Table

  /**
   * Changes columns, properties and rows in one commit, which checks the fences of the thread. The commit adds a
   * snapshot, so that unfinished commits of others to the rows fail.
   *
   * @param write
   *   writes rows into the table with the changed columns, if rows change
   */
  def commit(changes: Seq[TableChange], write: Option[Table => Unit]): Unit
}

/**
 * IcebergSnapshot: a commit to an Iceberg table.
 *
 * @param number
 *   the sequence number; later commits have higher numbers
 * @param at
 *   the time of the commit, in ms
 * @param changesRows
 *   whether the commit is more than compaction
 * @param summary
 *   the notes of the writer
 */
private[changelog] case class IcebergSnapshot(
    id: Long,
    number: Long,
    at: Long,
    changesRows: Boolean,
    summary: Map[String, String])

/** IcebergDifference: the files that have different rows in two snapshots, or different deletes. */
private[changelog] trait IcebergDifference {

  /** The bytes of the files, in both snapshots. */
  def bytes: Long

  /** Returns the rows of the files before, as deletes, and after, as inserts. Equal rows do not cancel out. */
  def rows(session: SparkSession): DataFrame
}

private[changelog] object IcebergRelation {

  /** The class by name, because Iceberg may not be installed. */
  private val TableClass = "org.apache.iceberg.spark.source.SparkTable"

  /** Returns the Iceberg table read by a relation, if this version of Spark has a release of Iceberg. */
  def unapply(plan: LogicalPlan): Option[IcebergTable] = plan match {
    case relation: DataSourceV2Relation => ofIceberg(relation)(IcebergTables.find(relation.table))
    case _ => None
  }

  /** Returns the branch or tag named by `VERSION AS OF`, as a part of the table's name. References can move. */
  def reference(plan: LogicalPlan): Option[String] = plan match {
    case relation: DataSourceV2Relation =>
      relation.timeTravelSpec.collect { case AsOfVersion(version) => version }.flatMap {
        version => ofIceberg(relation)(IcebergTables.reference(relation.table, version))
      }
    case _ => None
  }

  /** Returns whether a table is an Iceberg table with metadata copied from the folder of another table. */
  def isCopied(table: Table): Boolean =
    table.getClass.getName == TableClass && IcebergTables.find(table).exists(_.isCopied)

  /** Returns the reason why a table cannot store a view, if the table is an Iceberg table. */
  def whyNoView(table: Table): Option[String] =
    if (table.getClass.getName != TableClass) None
    else {
      val found = IcebergTables.find(table)
      if (found.isEmpty) Some("Iceberg has no release for this version of Spark; use Spark 4.1")
      else if (found.exists(_.hasNumbers)) None
      else
        Some(
          "snapshots of the table have no numbers in version 1 of Iceberg's format; set the " +
            "table property 'format-version' = '2'")
    }

  /** Loads a table with its newest snapshot, or returns None if the table is no Iceberg table. */
  def newest(session: SparkSession, name: String): Option[IcebergTable] =
    find(session, name).flatMap { known =>
      known.refresh()
      find(session, name)
    }

  /** Returns the table of this name, or None if the table is no Iceberg table. Fails for a missing table. */
  def find(session: SparkSession, name: String): Option[IcebergTable] =
    session.table(name).queryExecution.analyzed.collectFirst { case IcebergRelation(table) =>
      table
    }

  /**
   * Returns a `MERGE` into an Iceberg table with a target whose commit checks the fences of the thread. Returns other
   * statements as they are.
   */
  def fenced(session: SparkSession, statement: LogicalPlan): LogicalPlan = statement match {
    case merge: MergeIntoTable if Fence.isSet =>
      merge.copy(targetTable = merge.targetTable.transform { case named: UnresolvedRelation =>
        session
          .table(named.name)
          .queryExecution
          .analyzed
          .collectFirst {
            case relation: DataSourceV2Relation if unapply(relation).nonEmpty =>
              relation.copy(table = unapply(relation).get.fenced)
          }
          .getOrElse(named)
      })
    case other => other
  }

  private def ofIceberg[T](relation: DataSourceV2Relation)(find: => Option[T]): Option[T] =
    if (relation.table.getClass.getName != TableClass) None
    else {
      // This jar's class loader may not find Iceberg's classes, although Spark's class loader does.
      try find
      catch {
        case error: LinkageError =>
          throw analysis(
            "CHANGELOG_ICEBERG_NOT_LINKED",
            error,
            "table" -> relation.name,
            "cause" -> error)
      }
    }

  /** Returns the cause if Iceberg's own stream of a table has met changed or deleted rows. */
  def changedInStream(error: Throwable): Option[String] = error match {
    case error: IllegalStateException =>
      // The message goes on with settings that would skip changes.
      Option(error.getMessage)
        .filter(_.matches("Cannot process (overwrite|delete) snapshot.*"))
        .map(_.takeWhile(_ != ','))
    case _ => None
  }
}
