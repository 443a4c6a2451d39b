// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import java.io.{Closeable, FileNotFoundException}
import java.time.Duration
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}

import org.apache.spark.sql.catalyst.expressions.RowOrdering
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.types.DataTypeUtils.fromAttributes
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils.isBinaryStable
import org.apache.spark.sql.classic.{DataFrame, Dataset, SparkSession}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{
  CalendarIntervalType, NullType, StringType, StructType, VariantType
}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.checkpoint.TextFile
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

/**
 * TableCopies: copies of a table's rows, beside a checkpoint.
 *
 * {{{
 *   <folder>/version-7           names the copy of version 7
 *   <folder>/copy-<id>/rows      all rows
 *   <folder>/copy-<id>/changes   the differences from the previous version
 *   <folder>/lent-<id>           names a copy with a second reader
 * }}}
 * Copies have generated column names. The names of a database's columns may differ only in case, or contain characters
 * not permitted in files.
 */
private[tables] class TableCopies(session: SparkSession, folder: Path, table: StructType) {
  import TableCopies._

  private val hadoopConf = session.sessionState.newHadoopConf()
  private val files: FileSystem = folder.getFileSystem(hadoopConf)

  /** The column names in a copy. */
  val columns: Seq[String] = table.indices.map(place => s"c$place")

  private val schema: StructType = {
    val fields =
      table.asNullable.zip(columns).map { case (field, name) => field.copy(name = name) }
    StructType(fields.toSeq)
  }

  /** Writes a copy, and returns the copy's name. */
  def write(rows: DataFrame): String = {
    val copy = s"$Copy${UUID.randomUUID}"
    rows.toDF(columns: _*).write.parquet(rowsOf(copy))
    copy
  }

  def rows(copy: String): DataFrame = session.read.schema(schema).parquet(rowsOf(copy))

  def writeChanges(copy: String, changes: DataFrame): Unit =
    changes.write.mode("overwrite").parquet(changesOf(copy))

  def changes(copy: String): DataFrame =
    session.read
      .schema(schema.add(RowKind.ChangeTypeColumnName, StringType))
      .parquet(changesOf(copy))

  /** Makes a copy the content of a version. */
  def name(version: Long, copy: String): Unit = file(version).write(copy)

  /** Returns the copy of a version. */
  def named(version: Long): String = file(version).read()

  def delete(copy: String): Unit = {
    files.delete(new Path(folder, copy), true)
    ()
  }

  /** Deletes the remains of a refresh that ended before its version was recorded. */
  def deleteUnnamed(): Unit = {
    val named = versions.map(this.named).toSet
    deleteWithoutLoans(listed(Copy).filterNot(named))
  }

  def deleteBefore(version: Long): Unit = {
    val (old, kept) = versions.partition(_ < version)
    val named = kept.map(this.named).toSet
    val copies = old.map(this.named).filterNot(named)
    // Version files are deleted before the search for loans, because a new reader creates a loan before checking the
    // version file.
    old.foreach(version => files.delete(path(version), false))
    deleteWithoutLoans(copies)
  }

  /** Deletes copies without loans. A lent copy is deleted later, as a copy without a name. */
  private def deleteWithoutLoans(copies: Seq[String]): Unit =
    if (copies.nonEmpty) {
      val oldest = System.currentTimeMillis() - LongestLoan.toMillis
      val (old, recent) = statuses(Lent).partition(_.getModificationTime < oldest)
      old.foreach(status => files.delete(status.getPath, false))
      val lent = recent.flatMap(status => new TextFile(status.getPath, hadoopConf).find())
      copies.filterNot(lent.toSet).foreach(delete)
    }

  private def versions: Seq[Long] =
    listed(Version).flatMap(_.drop(Version.length).toLongOption)

  private def listed(prefix: String): Seq[String] = statuses(prefix).map(_.getPath.getName)

  private def statuses(prefix: String): Seq[FileStatus] =
    if (!files.exists(folder)) Nil
    else files.listStatus(folder).toSeq.filter(_.getPath.getName.startsWith(prefix))

  private def file(version: Long) = new TextFile(path(version), hadoopConf)

  private def path(version: Long) = new Path(folder, s"$Version$version")

  private def rowsOf(copy: String): String = new Path(folder, s"$copy/rows").toString

  private def changesOf(copy: String): String = new Path(folder, s"$copy/changes").toString
}

private[sources] object TableCopies {
  private val Copy = "copy-"
  private[tables] val Version = "version-"
  private val Lent = "lent-"

  /** Returns whether a file names the copy of a version. */
  def isNamedBy(name: String): Boolean = name.startsWith(Version)

  /** Older loans count as abandoned, because the reader's process may have ended. */
  private val LongestLoan = Duration.ofDays(1)

  /**
   * Gives a second folder access to the copy of a version. The copy stays in place, and is not deleted before the loan
   * is closed. Fails if the version's file no longer exists.
   *
   * @param version
   *   the name of the version's file
   */
  def lend(folder: Path, version: String, into: Path, hadoopConf: Configuration): Closeable = {
    val files = folder.getFileSystem(hadoopConf)
    val named = new TextFile(new Path(folder, version), hadoopConf)
    val copy = named.read()
    val loan = new Path(folder, s"$Lent${UUID.randomUUID}")
    def end(): Unit = {
      files.delete(loan, false)
      ()
    }
    new TextFile(loan, hadoopConf).write(copy)
    try {
      // The deletion of a version searches for loans after deleting this file.
      if (!named.exists) throw new FileNotFoundException(s"${new Path(folder, version)}")
      val place = files.makeQualified(new Path(folder, copy))
      new TextFile(new Path(into, version), hadoopConf).write(place.toString)
      () => end()
    } catch {
      case error: Throwable =>
        end()
        throw error
    }
  }
}
