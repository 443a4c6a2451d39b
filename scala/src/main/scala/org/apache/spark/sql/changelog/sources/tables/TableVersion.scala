// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import java.nio.charset.StandardCharsets.UTF_8
import java.util.zip.CRC32

import scala.util.Try

import org.json4s._
import org.json4s.jackson.Serialization

import org.apache.spark.sql.execution.streaming.Offset
import org.apache.spark.sql.types.{DataType, StructField, StructType}

/**
 * A table at one moment, as an offset of a stream.
 *
 * @param table
 *   its name, as one would write it in SQL
 * @param id
 *   what tells it from another table of the same name; empty if nothing does
 * @param columns
 *   what tells its columns from others
 * @param version
 *   what tells its rows at that moment. Where it isn't a catalog's own, it is a number that grows
 */
case class TableVersion(table: String, id: String, columns: String, version: String)
    extends Offset {
  override val json: String = Serialization.write(
    Map("table" -> table, "id" -> id, "columns" -> columns, "version" -> version))(
    TableVersion.formats)

  /** The version, where it is a number. */
  private[tables] def number: Long = version.toLong

  private[tables] def at(number: Long): TableVersion = copy(version = number.toString)
}

object TableVersion {
  private val formats: Formats = Serialization.formats(NoTypeHints)

  /** What an offset says. */
  def parse(json: String): TableVersion = {
    implicit val used: Formats = formats
    val read = Serialization.read[Map[String, String]](json)
    TableVersion(read("table"), read("id"), read("columns"), read("version"))
  }

  /** The version of an offset's JSON, if it is an offset of this kind. */
  def find(json: String): Option[TableVersion] = Try(parse(json)).toOption

  /** What is needed to tell what comes after an offset, if the names are of what a source has kept. */
  def keptFor(offset: String, names: Set[String]): Option[String] = for {
    at <- find(offset)
    prefix <- Seq(FileListings.Prefix, TableCopies.Version)
      .find(prefix => names.exists(_.startsWith(prefix)))
  } yield prefix + at.version

  /**
   * A text that two schemas have in common if their columns have the same names and types, in order.
   *
   * @param more
   *   what else tells columns apart
   */
  def fingerprint(schema: StructType, more: String*): String = {
    val columns = schema.map(field => s"${field.name} ${ofRows(field.dataType).json}")
    val sum = new CRC32
    sum.update((columns ++ more).mkString(",").getBytes(UTF_8))
    f"${schema.size}-${sum.getValue}%08x"
  }

  /** A type without what may be said of nested fields beside it, such as comments: no row tells of it. */
  def ofRows(dataType: DataType): DataType = dataType.asNullable.transformRecursively {
    case struct: StructType =>
      StructType(struct.map(field => StructField(field.name, ofRows(field.dataType))))
  }
}
