// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import scala.collection.BufferedIterator

import org.apache.spark.sql.Column
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, RowOrdering}
import org.apache.spark.sql.catalyst.plans.logical.Statistics
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.classic.{DataFrame, Dataset}
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.functions._
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.RowKind.ChangeTypes
import org.apache.spark.sql.changelog.errors.ChangelogErrors
import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime
import org.apache.spark.sql.changelog.sources.tables.RowDelta

/**
 * A batch of changes for a sink.
 *
 * @param queryId
 *   id of the query, constant over the life of its checkpoint
 * @param input
 *   the properties of the changes
 * @param changes
 *   rows with their change type
 * @param nettedBy
 *   columns with at most one change per value in the batch. The rows of a value are neighbors in one task.
 */
case class ChangelogBatch(
    queryId: String,
    batchId: Long,
    input: SinkInput,
    changes: DataFrame,
    nettedBy: Option[Seq[String]]) {
  import ChangelogBatch._

  /** Returns the batch for another sink. */
  def of(sink: String): ChangelogBatch = copy(input = input.copy(sink = sink))

  /**
   * Returns one row per key. [[Before]] has the retracted row, if known. [[After]] has the row
   * after the batch, if the key still exists.
   *
   * The changes of a batch are netted, so an inserted row still exists at the end of the batch.
   * The inserted row is therefore the key's row, whatever else the batch retracts under the key.
   *
   * @param partitions
   *   the number of partitions for keys, equal in every run of the batch; None for the cheapest distribution
   */
  def byKey(key: Seq[String], partitions: Option[Int]): DataFrame =
    oneOf(key, partitions, Seq(col(Before), col(After)), coalesce(col(After), col(Before)))

  /**
   * Returns one row per key, in the column [[Newest]]: the current row, or the deleted row if [[Gone]] is true.
   */
  def newestByKey(key: Seq[String], partitions: Option[Int]): DataFrame = {
    val newest = coalesce(col(After), col(Before)).as(Newest)
    oneOf(key, partitions, Seq(col(After).isNull.as(Gone), newest), col(Newest))
  }

  /**
   * @param current
   *   the row of the key, in terms of the `wanted` columns
   */
  private def oneOf(
      key: Seq[String],
      partitions: Option[Int],
      wanted: Seq[Column],
      current: Column): DataFrame = {
    val sink = input.sink
    val refuse =
      udf[Boolean, Long, String]((rows, key) =>
        throw runtime(
          "CHANGELOG_SINK_ROWS_OF_ONE_KEY",
          "sink" -> sink,
          "key" -> key,
          "rows" -> rows))
    val row = coalesce(col(After), col(Before))
    val keyOfRow = struct(key.map(name => row.getField(name).as(name)): _*)
    val isAlone = col(Rows) <= 1 || refuse(col(Rows), to_json(keyOfRow))
    def checked(rows: DataFrame) =
      rows.where(isAlone).where(col(Before).isNotNull || col(After).isNotNull).select(wanted: _*)
    if (isNettedBy(key)) {
      val rows = checked(neighbours(key))
      partitions.fold(rows)(spread(rows, _, key.map(current.getField(_))))
    } else checked(grouped(key, partitions))
  }

  /** Whether the rows of each key are neighbors in one task. */
  def isNettedBy(key: Seq[String]): Boolean =
    nettedBy.exists(_.forall(key.contains)) && key.forall { name =>
      hasEqualBytes(changes.schema(name).dataType)
    }

  /** Combines the rows of each key in place, without a shuffle. */
  private def neighbours(key: Seq[String]): DataFrame = {
    val session = changes.sparkSession
    val rows = changes.select(row, isRetraction, struct(columns(key): _*))
    val (numColumns, numKeyColumns) = (input.columns.size, key.size)
    val ofKeys = rows.queryExecution.toRdd.mapPartitionsInternal { rows =>
      new NeighboursOfKey(rows.buffered, numColumns, numKeyColumns)
    }
    val rowType = rows.schema.head.dataType
    val schema = new StructType().add(Before, rowType).add(After, rowType).add(Rows, LongType)
    // A join with the result needs the size.
    val size = rows.queryExecution.optimizedPlan.stats.sizeInBytes
    Dataset.ofRows(
      session,
      LogicalRDD(toAttributes(schema), ofKeys)(session, Some(Statistics(sizeInBytes = size))))
  }

  /** Combines the rows of each key, with a shuffle. */
  private def grouped(key: Seq[String], partitions: Option[Int]): DataFrame = {
    val count = partitions.getOrElse(changes.sparkSession.sessionState.conf.numShufflePartitions)
    spread(changes, count, columns(key))
      .withColumn(Taken, isRetraction)
      .groupBy(columns(key): _*)
      .agg(
        first(when(col(Taken), row), ignoreNulls = true).as(Before),
        first(when(!col(Taken), row), ignoreNulls = true).as(After),
        count_if(!col(Taken)).as(Rows))
  }

  /**
   * Returns the rows of an insert-only batch. With a number of partitions, the distribution is equal in every run.
   */
  def inserted(partitions: Option[Int]): DataFrame = {
    val names = input.columnNames
    val ordered = changes.schema.filter { field =>
      names.contains(field.name) && RowOrdering.isOrderable(field.dataType)
    }
    partitions
      .fold(changes)(spread(changes, _, columns(ordered.map(_.name))))
      .select(columns(names): _*)
  }

  private def spread(rows: DataFrame, partitions: Int, by: Seq[Column]): DataFrame =
    if (partitions == 1 || by.isEmpty) rows.repartition(1)
    else rows.repartition(partitions, by: _*)

  /**
   * Returns the net count of each row in the batch, in the column [[Net]], without zeros.
   * Requires complete before images.
   */
  def netRows: DataFrame = RowDelta.counted(changes, input.columnNames, isRetraction)

  /** The columns of the query, without the change type. */
  def schema: StructType =
    StructType(changes.schema.filterNot(_.name == input.changeType.name))

  private def row: Column = struct(columns(input.columnNames): _*)

  /** Whether a change retracts its row. */
  def isRetraction: Column = {
    val expected = ChangeTypes
    val name = input.changeType.name
    val refuse = udf[Boolean, String](changeType =>
      throw ChangelogErrors.changeTypeUnknown(name, Option(changeType), expected))
    def isOf(kinds: Byte*) = quoted(name).isin(kinds.map(kind => expected(kind)): _*)
    when(isOf(RowKind.UpdateBefore, RowKind.Delete), true)
      .when(isOf(RowKind.Insert, RowKind.UpdateAfter), false)
      .otherwise(refuse(quoted(name)))
  }
}

object ChangelogBatch {

  /** The row of a key before the batch. NULL without a row, or if unknown. */
  val Before = "_changelog_before"

  /** The row of a key after the batch. NULL without a row. */
  val After = "_changelog_after"

  /** The row of a key after the batch, or before the batch if deleted. */
  val Newest = "_changelog_newest"

  /** Whether the row of a key is deleted. */
  val Gone = "_changelog_gone"

  /** The net count of a row, negative for deleted rows. */
  val Net: String = RowDelta.Net

  private val Taken = "_changelog_taken"
  private val Rows = "_changelog_rows"

  def quoted(name: String): Column = RowDelta.quoted(name)

  def columns(names: Seq[String]): Seq[Column] = names.map(quoted)

  /**
   * Whether equal values of a type have equal bytes. Texts with a collation may differ, and so do
   * -0.0 and 0.0.
   */
  private def hasEqualBytes(dataType: DataType): Boolean = !dataType.existsRecursively {
    case text: StringType => !text.supportsBinaryEquality
    case FloatType | DoubleType => true
    case _ => false
  }
}

/**
 * Combines neighboring changes of a key to one row.
 *
 * {{{
 *   in    row, whether the change retracts the row, key
 *   out   the first retracted row, the first inserted row, the number of inserted rows; NULL for none
 * }}}
 */
private class NeighboursOfKey(
    changes: BufferedIterator[InternalRow],
    numColumns: Int,
    numKeyColumns: Int)
    extends Iterator[InternalRow] {
  private val result = new GenericInternalRow(3)

  override def hasNext: Boolean = changes.hasNext

  override def next(): InternalRow = {
    val key = keyOf(changes.head).copy()
    var come = 0L
    result.setNullAt(0)
    result.setNullAt(1)
    while (changes.hasNext && keyOf(changes.head) == key) {
      val change = changes.next()
      val isRetraction = change.getBoolean(1)
      val place = if (isRetraction) 0 else 1
      if (!isRetraction) come += 1
      if (result.isNullAt(place)) result.update(place, change.getStruct(0, numColumns).copy())
    }
    result.setLong(2, come)
    result
  }

  private def keyOf(change: InternalRow): InternalRow = change.getStruct(2, numKeyColumns)
}
