// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.jdbc

import java.sql.{Connection, ResultSetMetaData, Types}
import java.time.{Instant, LocalDateTime, ZoneOffset}
import java.util.Locale

import scala.collection.mutable
import scala.util.Using

import org.apache.spark.sql.classic.DataFrame
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{ArrayType, DataType, StringType, StructType}
import org.apache.spark.sql.{Column, Row}

import org.apache.spark.sql.changelog.compat.JdbcTable
import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime
import org.apache.spark.sql.changelog.sinks.ChangelogBatch
import org.apache.spark.sql.changelog.sinks.ChangelogBatch._

/**
 * The target table: the actions on its rows, and their SQL statements.
 *
 * A row is replaced in one statement if the database has such a statement, and the key has the only unique index. With
 * another unique index, a statement could replace a row of another key, or conflict with a row that is deleted later.
 * Then, or without an index on the key, the sink deletes every changed row before the inserts.
 *
 * @param columns
 *   the columns of the query, with their names in the table
 * @param key
 *   the columns by which rows are replaced; None for inserts only
 * @param onConflict
 *   the clause for an INSERT that replaces a row; None for delete and insert
 * @param zoned
 *   positions in `columns` of times with a time zone
 * @param nullCharacter
 *   the replacement for the character U+0000 in texts, if any
 */
case class TargetTable(
    name: String,
    database: DatabaseSyntax,
    columns: StructType,
    key: Option[Seq[Int]],
    onConflict: Option[String],
    zoned: Set[Int],
    nullCharacter: Option[String]) {
  import TargetTable._

  /** Returns the actions on the table, in order within each partition: deletes come first. */
  def actions(batch: ChangelogBatch, partitions: Int): DataFrame = key match {
    case None =>
      val row = struct(batch.input.columnNames.map(quoted): _*)
      batch.inserted(Some(partitions)).select(lit(Insert), lit(""), row)
    case Some(ordinals) =>
      val names = ordinals.map(batch.input.columnNames)
      val rowKey = names.map(name => col(Newest).getField(name))
      def mark(column: Column) = when(column.isNull, lit(Null)).otherwise(lit(Present))
      val isWhole = !col(Nulls).contains(Null)
      val steps = when(col(Gone), array(lit(Delete)))
        .when(isWhole && lit(onConflict.nonEmpty && names.nonEmpty), array(lit(Replace)))
        .otherwise(array(lit(Delete), lit(Insert)))
      batch
        .newestByKey(names, Some(partitions))
        .withColumn(Nulls, concat(rowKey.map(mark): _*))
        .select(explode(steps).as(Step), col(Nulls), col(Newest))
        .sortWithinPartitions(Seq(col(Step), col(Nulls)) ++ rowKey: _*)
  }

  /**
   * Returns the statement for rows with an equal step, and with NULLs at equal positions of the key.
   */
  def statement(step: String, nulls: String): String = step match {
    case Delete =>
      val conditions = key.get.map(ordinal => quote(columns(ordinal).name)).zip(nulls).map {
        case (column, mark) => if (mark.toString == Null) s"$column IS NULL" else s"$column = ?"
      }
      s"DELETE FROM $name" + (if (conditions.isEmpty) ""
                              else conditions.mkString(" WHERE ", " AND ", ""))
    case _ =>
      val insert = database.dialect.insertIntoTable(name, columns.fields)
      if (step == Replace) s"$insert ${onConflict.get}" else insert
  }

  /** Returns the JDBC types of the NULLs among the parameters of a statement. */
  def nullTypes(table: JdbcTable, step: String, nulls: String): Seq[Int] =
    ordinals(step, nulls).map { at =>
      columns(at).dataType match {
        case _: StringType => database.textType
        case other => table.typeOf(database.dialect, other).jdbcNullType
      }
    }

  /** Replaces U+0000, except in keys: two keys could become one. */
  private def withoutNullCharacter(value: Any, at: Int): Any = (value, nullCharacter) match {
    case (text: String, Some(other)) if !key.exists(_.contains(at)) =>
      text.replace("\u0000", other)
    case (elements: collection.Seq[_], Some(_)) => elements.map(withoutNullCharacter(_, at))
    case _ => value
  }

  /**
   * Returns the parameter values in the driver's classes, independent of the time zones of JVM
   * and database. A column without a time zone receives the time in UTC.
   */
  def values(
      table: JdbcTable,
      connection: Connection,
      step: String,
      nulls: String): Row => Seq[AnyRef] = {
    val taken = ordinals(step, nulls)
    def bound(value: Any, at: Int): AnyRef = value match {
      case instant: Instant if zoned.contains(at) => instant.atOffset(ZoneOffset.UTC)
      case instant: Instant => LocalDateTime.ofInstant(instant, ZoneOffset.UTC)
      case number: Byte => Int.box(number.toInt)
      case number: Short => Int.box(number.toInt)
      case elements: collection.Seq[_] => elements.map(bound(_, at)).toArray
      case other => other.asInstanceOf[AnyRef]
    }
    row =>
      taken.map { at =>
        val value = withoutNullCharacter(row.get(at), at)
        database.limitOf(value).foreach { held =>
          throw runtime(
            "CHANGELOG_SINK_VALUE_NOT_HELD",
            "sink" -> "changelog-jdbc",
            "table" -> name,
            "column" -> columns(at).name,
            "value" -> value.toString.replace("\u0000", "\\u0000").take(MaxShown),
            "held" -> held)
        }
        bound(value, at) match {
          case elements: Array[AnyRef] =>
            connection.createArrayOf(elementType(table, columns(at).dataType), elements)
          case other => other
        }
      }
  }

  /** Returns the type name of an array's elements, without its length. */
  private def elementType(table: JdbcTable, dataType: DataType): String = dataType match {
    case ArrayType(element, _) => elementType(table, element)
    case other => table.typeOf(database.dialect, other).databaseTypeDefinition.split('(').head
  }

  private def ordinals(step: String, nulls: String): Seq[Int] =
    if (step == Delete)
      key.get.zip(nulls).collect { case (at, mark) if mark.toString == Present => at }
    else columns.indices

  private def quote(column: String): String = database.quote(column)
}

object TargetTable {
  // In the order of execution.
  val Delete = "delete"
  val Insert = "insert"
  val Replace = "replace"

  /** The maximum number of characters of a value in an error. */
  private val MaxShown = 100

  private val Null = "0"
  private val Present = "1"
  private val Step = "step"
  private val Nulls = "nulls"

  /** Reads the metadata of the existing table. */
  def apply(
      connection: Connection,
      table: JdbcTable,
      database: DatabaseSyntax,
      schema: StructType,
      key: Option[Seq[String]],
      nullCharacter: Option[String]): TargetTable = {
    val existing = table.columns(connection)
    val resolver = SQLConf.get.resolver
    val columns = StructType(schema.map { field =>
      val found = existing.flatMap(_.find(column => resolver(column.name, field.name)))
      field.copy(name = found.map(_.name).getOrElse(field.name))
    })
    val ordinals = key.map(_.map(name => schema.fieldIndex(name)))
    val onConflict = ordinals.filter(_.nonEmpty).map(_.map(columns(_).name)).flatMap { names =>
      val indexes = uniqueIndexes(connection, table.name, database)
      val others = columns.fieldNames.filterNot(names.contains).toSeq
      if (indexes == Set(names.toSet)) database.onConflict(names, others) else None
    }
    val withZone = described(connection, table.name, database) { metadata =>
      (1 to metadata.getColumnCount)
        .filter(hasZone(metadata, _))
        .map(metadata.getColumnName)
        .toSet
    }
    val zoned = columns.indices.filter(at => withZone.contains(columns(at).name)).toSet
    TargetTable(table.name, database, columns, ordinals, onConflict, zoned, nullCharacter)
  }

  private def hasZone(metadata: ResultSetMetaData, column: Int): Boolean =
    metadata.getColumnType(column) == Types.TIMESTAMP_WITH_TIMEZONE ||
      Seq("timestamptz", "time zone", "datetimeoffset").exists(
        metadata.getColumnTypeName(column).toLowerCase(Locale.ROOT).contains)

  private def described[T](connection: Connection, table: String, database: DatabaseSyntax)(
      body: ResultSetMetaData => T): T = {
    val select = database.dialect.getSchemaQuery(table)
    Using.resource(connection.prepareStatement(select)) { statement =>
      Using.resource(statement.executeQuery())(rows => body(rows.getMetaData))
    }
  }

  /** Returns the columns of each unique index. The database resolves the name of the table. */
  private def uniqueIndexes(
      connection: Connection,
      table: String,
      database: DatabaseSyntax): Set[Set[String]] = {
    def known(text: String) = Option(text).filter(_.nonEmpty).orNull
    val (catalog, schema, plainName) = described(connection, table, database) { metadata =>
      (
        known(metadata.getCatalogName(1)),
        known(metadata.getSchemaName(1)),
        metadata.getTableName(1))
    }
    val indexes = mutable.Map.empty[String, Set[String]].withDefaultValue(Set.empty)
    val found = connection.getMetaData.getIndexInfo(catalog, schema, plainName, true, false)
    Using.resource(found) { rows =>
      while (rows.next()) {
        // The first row may be statistics, without an index.
        Option(rows.getString("INDEX_NAME")).foreach { index =>
          // A partial index, or an index on an expression, may conflict with any row.
          val partial = Option(rows.getString("FILTER_CONDITION")).exists(_.nonEmpty)
          val column = Option(rows.getString("COLUMN_NAME")).filterNot(_ => partial)
          indexes(index) += column.getOrElse("")
        }
      }
    }
    indexes.values.toSet
  }
}
