// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import java.nio.charset.StandardCharsets.UTF_8
import java.util.zip.CRC32

import scala.util.Try

import org.json4s._
import org.json4s.jackson.Serialization

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.streaming.Offset
import org.apache.spark.sql.types.{DataType, StructField, StructType}

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/**
 * FollowedTable: a table with known changes between any two versions. Each tracking method has one implementation.
 *
 * Plans return the columns of the table. Plans of changes add the change type, unless only inserts are tracked.
 */
private[tables] trait FollowedTable {

  /** The state of the table at one time, before the comparison with the last version. */
  type TableSnapshot

  /** The table's name in SQL. */
  def name: String

  /** Whether only inserts are tracked, as for append-only tables. */
  def tracksOnlyInserts: Boolean

  def now(): TableSnapshot

  /** Returns the version of a snapshot. Fails if the changes since `start` are unknown. */
  def version(start: Option[TableVersion], snapshot: TableSnapshot): TableVersion

  /** Returns all rows of a version. */
  def rows(at: TableVersion): LogicalPlan

  /** Returns the changes after one version, up to another. */
  def changes(from: TableVersion, until: TableVersion): LogicalPlan

  /**
   * Returns the current size and the amount changed, or None if the amount is expensive to find. Fails as `version`
   * does.
   */
  def size(since: TableVersion): Option[TableSize]

  /** Deletes data stored for earlier versions. */
  def forget(before: TableVersion): Unit = ()

  /** Rejects another table of the same name, and other columns. */
  protected def checkSame(start: TableVersion, now: TableVersion): Unit = {
    if (start.id != now.id)
      throw analysis("CHANGELOG_TABLE_REPLACED", "table" -> name, "version" -> start.version)
    if (start.columns != now.columns)
      throw analysis(
        "CHANGELOG_TABLE_COLUMNS_CHANGED",
        "table" -> name,
        "version" -> start.version)
  }
}

/**
 * TableSize: the size of a table, and of its changes, in bytes of its files.
 *
 * @param changed
 *   the bytes to read for finding the changes. Unchanged rows of rewritten files count less, because they only cancel
 *   out.
 */
case class TableSize(inAll: Long, changed: Long)

/**
 * TableVersion: a table at one time, as an offset of a stream.
 *
 * @param table
 *   the table's name in SQL
 * @param id
 *   distinguishes the table from another table of the same name, as far as possible; otherwise empty
 * @param columns
 *   a fingerprint of the table's columns
 * @param version
 *   identifies the table's rows at this time: a catalog's version, otherwise an increasing number
 */
case class TableVersion(table: String, id: String, columns: String, version: String)
    extends Offset {
  override val json: String = Serialization.write(
    Map("table" -> table, "id" -> id, "columns" -> columns, "version" -> version))(
    TableVersion.formats)

  /** The version as a number, if numeric. */
  private[tables] def number: Long = version.toLong

  private[tables] def at(number: Long): TableVersion = copy(version = number.toString)
}

object TableVersion {
  private[tables] val Listing = "listing-"
  private val formats: Formats = Serialization.formats(NoTypeHints)

  /** Returns the version in an offset's JSON. */
  def parse(json: String): TableVersion = {
    implicit val used: Formats = formats
    val read = Serialization.read[Map[String, String]](json)
    TableVersion(read("table"), read("id"), read("columns"), read("version"))
  }

  /** Returns the version in an offset's JSON, if the source is of this kind. */
  def find(json: String): Option[TableVersion] = Try(parse(json)).toOption

  /** Returns the source file needed to continue after an offset, given the names of the source's files. */
  def keptFor(offset: String, names: Set[String]): Option[String] = for {
    at <- find(offset)
    prefix <- Seq(Listing, TableCopies.Version)
      .find(prefix => names.exists(_.startsWith(prefix)))
  } yield prefix + at.version

  /**
   * Returns a text that is equal for schemas with equal column names and types, in order.
   *
   * @param more
   *   further distinctions between columns
   */
  def fingerprint(schema: StructType, more: String*): String = {
    val columns = schema.map(field => s"${field.name} ${ofRows(field.dataType).json}")
    val sum = new CRC32
    sum.update((columns ++ more).mkString(",").getBytes(UTF_8))
    f"${schema.size}-${sum.getValue}%08x"
  }

  /** Returns a type without metadata of nested fields, such as comments, because rows contain no metadata. */
  def ofRows(dataType: DataType): DataType = dataType.asNullable.transformRecursively {
    case struct: StructType =>
      StructType(struct.map(field => StructField(field.name, ofRows(field.dataType))))
  }
}
