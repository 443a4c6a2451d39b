// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions.RowOrdering
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.types.DataTypeUtils.fromAttributes
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils.isBinaryStable
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{CalendarIntervalType, NullType, VariantType}

import org.apache.spark.sql.changelog.compat.JdbcReading
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/**
 * ComparedTable: a table without change tracking. Each refresh compares all rows with a copy of the previous rows.
 *
 * A new version begins with a complete read of the table into a new copy. The differences from the previous version are
 * stored beside the copy. A repeated batch therefore reads the same rows, whatever has happened to the table.
 *
 * @param folder
 *   the folder of the copies
 */
private[tables] class ComparedTable(
    session: SparkSession,
    override val name: String,
    folder: Path)
    extends FollowedTable {
  import ComparedTable._

  private lazy val relation = FollowedTables.lookUp(session, name)
  private lazy val copies = new TableCopies(session, folder, fromAttributes(relation.output))

  /** The last snapshot compared, with its version. */
  private var known: Option[(TableCopy, TableVersion)] = None

  override type TableSnapshot = TableCopy

  override def tracksOnlyInserts: Boolean = false

  override def now(): TableCopy = {
    copies.deleteUnnamed()
    val found = FollowedTables.current(session, name)
    val copy = copies.write(Dataset.ofRows(session, found))
    checkKey(found, copy)
    TableCopy(copy, idOf(found), TableVersion.fingerprint(fromAttributes(found.output)))
  }

  override def version(start: Option[TableVersion], snapshot: TableCopy): TableVersion = {
    val version = known
      .collect { case (`snapshot`, version) if start.contains(version) => version }
      .getOrElse(compare(start, snapshot))
    known = Some(snapshot -> version)
    version
  }

  private def compare(start: Option[TableVersion], snapshot: TableCopy): TableVersion = {
    val found =
      TableVersion(name, snapshot.table, snapshot.columns, start.fold("0")(_.version))
    start.foreach(checkSame(_, found))
    val hasChanges = start.forall { start =>
      val before = copies.named(start.number)
      before != snapshot.copy && differs(before, snapshot.copy)
    }
    if (hasChanges) {
      val next = found.at(found.number + 1)
      copies.name(next.number, snapshot.copy)
      next
    } else {
      copies.delete(snapshot.copy)
      found
    }
  }

  /** Stores the differences, and returns whether the rows differ. */
  private def differs(before: String, now: String): Boolean = {
    copies.writeChanges(now, RowDelta(copies.rows(before), copies.rows(now)))
    !copies.changes(now).isEmpty
  }

  override def rows(at: TableVersion): LogicalPlan =
    copies.rows(copies.named(at.number)).queryExecution.analyzed

  override def changes(from: TableVersion, until: TableVersion): LogicalPlan = {
    if (from.number + 1 != until.number) {
      throw new IllegalStateException(s"not known: what has changed from $from to $until")
    }
    copies.changes(copies.named(until.number)).queryExecution.analyzed
  }

  /** Returns None, because only a complete read finds the changes. */
  override def size(since: TableVersion): Option[TableSize] = None

  override def forget(before: TableVersion): Unit = copies.deleteBefore(before.number)

  /** Fails if a key occurs twice. Tasks read a table at different times, so a row moved meanwhile may be read twice. */
  private def checkKey(found: LogicalPlan, copy: String): Unit = {
    val key = keyOf(found)
    if (key.nonEmpty) {
      val columns = key.map(name => copies.columns(found.output.indexWhere(_.name == name)))
      val twice = copies.rows(copy).groupBy(columns.map(col): _*).count().where("count > 1")
      twice.take(1).foreach { row =>
        throw analysis(
          "CHANGELOG_TABLE_KEY_REPEATED",
          "table" -> name,
          "key" -> key,
          "row" -> row.toSeq.init)
      }
    }
  }

  private def idOf(found: LogicalPlan): String = found match {
    case table: DataSourceV2Relation => Option(table.table.id).getOrElse("")
    case _ => ""
  }
}

private[tables] object ComparedTable {

  /**
   * TableCopy: a table as read into a copy.
   *
   * @param table
   *   distinguishes the table from another table of the same name
   */
  case class TableCopy(copy: String, table: String, columns: String)

  /** Returns how to follow a table without any change tracking, or why comparing is impossible. */
  def trackingOf(name: String, relation: LogicalPlan): Either[String, TableTracking] = {
    val incomparable = relation.output.find(_.dataType.existsRecursively {
      case _: VariantType | _: CalendarIntervalType | _: NullType => true
      case _ => false
    })
    incomparable match {
      case Some(column) =>
        Left(
          s"values of the column ${column.name} of type ${column.dataType.sql} cannot be compared")
      case None => Right(TableTracking.copy(name, keyOf(relation), advice(relation)))
    }
  }

  /** Returns advice on better change tracking. */
  private def advice(relation: LogicalPlan): String =
    if (JdbcReading.of(relation).isEmpty) {
      "To read the changed rows only, use a Delta table, or a catalog with changes " +
        "(FROM t CHANGES)."
    } else if (keyOf(relation).nonEmpty) {
      "To read the changed rows only, read the database's change feed, such as Debezium's, with " +
        "from_debezium."
    } else {
      "To read the changed rows only, read the database's change feed, such as Debezium's, with " +
        "from_debezium. To identify rows by a key, add a primary key."
    }

  /** Returns the primary key reported by the database, if Spark compares its columns by bytes. */
  private def keyOf(relation: LogicalPlan): Seq[String] = {
    val names = JdbcReading.of(relation).fold(Seq.empty[String])(_.primaryKey)
    val columns = names.map { name =>
      relation.output.filter(column => SQLConf.get.resolver(column.name, name)).filter { column =>
        RowOrdering.isOrderable(column.dataType) && isBinaryStable(column.dataType)
      }
    }
    if (columns.forall(_.size == 1)) columns.flatten.map(_.name) else Nil
  }
}
