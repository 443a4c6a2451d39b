// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.snapshots

import java.util.concurrent.atomic.AtomicLong

import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.connector.read.streaming.{Offset => AnyOffset, ReadLimit}
import org.apache.spark.sql.execution.streaming.runtime.LongOffset
import org.apache.spark.sql.execution.streaming.{Offset, Source}
import org.apache.spark.sql.types.{StringType, StructType}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.errors.ChangelogErrors
import org.apache.spark.sql.changelog.sources.tables.RowDelta
import org.apache.spark.sql.changelog.sources.{LatestOffsetProvider, LatestOffsetSource}

/**
 * SnapshotSource: the changes of a batch query's result, by comparing each snapshot with the
 * previous one.
 *
 * Each trigger takes a snapshot. A snapshot stays beside the checkpoint until the next snapshot
 * is processed, so a repeated batch has equal changes. An offset is the number of a snapshot. A
 * snapshot equal to the previous one creates no offset.
 *
 * @param query
 *   the query, as SQL
 * @param folder
 *   the folder of snapshots
 */
class SnapshotSource(session: SparkSession, query: String, folder: Path, columns: StructType)
    extends LatestOffsetSource {
  import SnapshotSource._

  private val files: FileSystem = folder.getFileSystem(session.sessionState.newHadoopConf())

  /** The last processed snapshot before the previous commit. */
  private val processed = new AtomicLong(0)

  /**
   * Returns the last snapshot to read: a new snapshot, or the snapshot from the start of the
   * query.
   */
  private var latest: () => Option[LongOffset] = () => take()

  override def schema: StructType = withChangeType(columns)

  override def prepareForTriggerAvailableNow(): Unit = {
    val decided = take()
    latest = () => decided
  }

  override def latestOffset(start: AnyOffset, limit: ReadLimit): AnyOffset = latest().orNull

  override def deserializeOffset(json: String): AnyOffset = LongOffset(json.toLong)

  /**
   * Takes a snapshot, and keeps it unless it equals the previous snapshot. Returns the number of
   * the last kept snapshot.
   */
  private def take(): Option[LongOffset] = {
    val last = snapshots.maxOption.getOrElse(0L)
    val next = last + 1
    session.sql(query).write.mode("overwrite").parquet(path(next).toString)
    if (!changes(last, next).isEmpty) Some(LongOffset(next))
    else {
      files.delete(path(next), true)
      if (last == 0) None else Some(LongOffset(last))
    }
  }

  override def getBatch(start: Option[Offset], end: Offset): DataFrame = {
    val from = start.map(numberOf).getOrElse(0L)
    val until = numberOf(end)
    val rows = changes(from, until).queryExecution.toRdd
    session.internalCreateDataFrame(rows, schema, isStreaming = true)
  }

  override def toString: String = s"snapshots of $query"

  /**
   * Deletes old snapshots. The last processed snapshot stays for the next comparison, and so does
   * its predecessor.
   */
  override def commit(end: Offset): Unit = {
    val before = processed.getAndSet(numberOf(end))
    if (before != numberOf(end)) {
      snapshots.filter(_ < before).foreach(number => files.delete(path(number), true))
    }
  }

  override def stop(): Unit = ()

  private def numberOf(offset: Offset): Long = offset.json.toLong

  /** Returns the net changes between both snapshots, each row repeated by its count. */
  private def changes(from: Long, until: Long): DataFrame = RowDelta(read(from), read(until))

  private def read(number: Long): DataFrame =
    if (number > 0 && files.exists(path(number))) {
      session.read.schema(columns).parquet(path(number).toString)
    } else session.createDataFrame(java.util.List.of[Row](), columns)

  /** Returns the numbers of the complete snapshots. */
  private def snapshots: Seq[Long] =
    if (!files.exists(folder)) Nil
    else {
      files.listStatus(folder).toSeq.map(_.getPath).collect {
        case path @ Numbered(number) if files.exists(new Path(path, "_SUCCESS")) => number
      }
    }

  private def path(number: Long): Path = new Path(folder, s"$Prefix$number")
}

object SnapshotSource {
  private val Prefix = "snapshot-"

  /**
   * Returns the file needed for changes after an offset, if the names are snapshots of this
   * source.
   */
  def keptFor(offset: String, names: Set[String]): Option[String] =
    if (names.exists(_.startsWith(Prefix))) offset.toLongOption.map(Prefix + _) else None

  def withChangeType(columns: StructType): StructType =
    columns.add(RowKind.ChangeTypeColumnName, StringType, nullable = false)

  private object Numbered {
    def unapply(path: Path): Option[Long] =
      if (path.getName.startsWith(Prefix)) path.getName.drop(Prefix.length).toLongOption else None
  }
}

/**
 * The streaming source `changelog-snapshots`: the changes of a batch query that runs once per
 * trigger.
 *
 * Option `query`: the query, as SQL; or `table`: a table or view.
 */
class SnapshotSourceProvider extends LatestOffsetProvider("changelog-snapshots") {

  override protected def schemaOf(
      session: SparkSession,
      options: Map[String, String]): StructType = {
    val columns = columnsOf(session, queryOf(options))
    columns.fieldNames.find(_.equalsIgnoreCase(RowKind.ChangeTypeColumnName)).foreach { name =>
      throw ChangelogErrors.argumentInvalid(
        shortName(),
        "query",
        s"'${queryOf(options)}'",
        s"the column $name has the reserved name of the change type column")
    }
    SnapshotSource.withChangeType(columns)
  }

  override protected def source(
      session: SparkSession,
      options: Map[String, String],
      folder: Path): Source = {
    val query = queryOf(options)
    new SnapshotSource(session, query, folder, columnsOf(session, query))
  }

  private def columnsOf(session: SparkSession, query: String): StructType =
    session.sql(query).schema.asNullable

  private def queryOf(parameters: Map[String, String]): String =
    (parameters.get("query"), parameters.get("table")) match {
      case (Some(query), None) => query
      case (None, Some(table)) => s"SELECT * FROM $table"
      case (query, table) =>
        throw ChangelogErrors.argumentInvalid(
          shortName(),
          "query",
          (query ++ table).map(text => s"'$text'").mkString(" and ") match {
            case "" => "NULL"
            case text => text
          },
          "either a query or a table is expected")
    }
}
