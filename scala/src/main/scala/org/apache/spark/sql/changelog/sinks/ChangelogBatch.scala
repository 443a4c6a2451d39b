// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import org.apache.spark.sql.Column
import org.apache.spark.sql.catalyst.expressions.RowOrdering
import org.apache.spark.sql.classic.DataFrame
import org.apache.spark.sql.functions._
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.RowKind.ChangeTypes
import org.apache.spark.sql.changelog.errors.{ChangelogErrors, SinkErrors}

/**
 * One batch of changes on its way into a sink.
 *
 * @param queryId
 *   the query, for as long as its checkpoint lives
 * @param input
 *   what is known of the changes
 * @param changes
 *   rows with their change type
 */
case class ChangelogBatch(queryId: String, batchId: Long, input: SinkInput, changes: DataFrame) {
  import ChangelogBatch._

  /**
   * One row per key: the row it had `before`, if it is taken back and known, and the row it has
   * `after`, if any.
   *
   * The changes of a batch are netted: a row that comes is there when the batch ends, so it is
   * the row of its key, whatever else went under that key.
   *
   * @param partitions
   *   how many partitions the keys are spread over, equal ones in every run of the batch
   */
  def byKey(key: Seq[String], partitions: Int): DataFrame = {
    val row = struct(input.columnNames.map(quoted): _*)
    val spread =
      if (key.isEmpty) changes.repartition(1)
      else changes.repartition(partitions, columns(key): _*)
    val sink = input.sink
    val isAlone = udf((rows: Long, key: String) => {
      if (rows > 1) throw SinkErrors.rowsOfOneKey(sink, key, rows)
      true
    })
    spread
      .withColumn(Taken, kindIn(Seq(RowKind.UpdateBefore, RowKind.Delete)))
      .groupBy(columns(key): _*)
      .agg(
        first(when(col(Taken), row), ignoreNulls = true).as(Before),
        first(when(!col(Taken), row), ignoreNulls = true).as(After),
        count_if(!col(Taken)).as(Rows))
      .where(isAlone(col(Rows), to_json(struct(columns(key): _*))))
      .where(col(Before).isNotNull || col(After).isNotNull)
      .select(Before, After)
  }

  /** The rows of an insert-only batch, spread alike in every run of it. */
  def inserted(partitions: Int): DataFrame = {
    val names = input.columnNames
    val ordered = changes.schema.filter { field =>
      names.contains(field.name) && RowOrdering.isOrderable(field.dataType)
    }
    val spread =
      if (partitions == 1 || ordered.isEmpty) changes.repartition(1)
      else changes.repartition(partitions, columns(ordered.map(_.name)): _*)
    spread.select(columns(names): _*)
  }

  /**
   * How many more or fewer there are of each row when the batch ends, in the column [[Net]], never
   * zero. Needs rows that are taken back in full.
   */
  def netRows: DataFrame = {
    val sign =
      when(kindIn(Seq(RowKind.UpdateBefore, RowKind.Delete)), lit(-1L)).otherwise(lit(1L))
    changes
      .withColumn(Net, sign)
      .groupBy(columns(input.columnNames): _*)
      .agg(sum(Net).as(Net))
      .where(col(Net) =!= 0)
  }

  /** The columns of the query, without the change type. */
  def schema: StructType =
    StructType(changes.schema.filterNot(_.name == input.changeType.name))

  /** Whether the row of a change is there before the batch, or after it. */
  private def kindIn(kinds: Seq[Byte]): Column = {
    val expected = ChangeTypes
    val column = input.changeType.name
    val isKnown = udf((changeType: String) => {
      if (!expected.contains(changeType)) {
        val value = Option(changeType)
        throw ChangelogErrors.changeTypeUnknown(column, value, expected)
      }
      kinds.exists(kind => expected(kind) == changeType)
    })
    isKnown(quoted(column))
  }
}

object ChangelogBatch {

  /** The row of a key when the batch begins, NULL if there is none or it is not known. */
  val Before = "_before"

  /** The row of a key when the batch ends, NULL if there is none. */
  val After = "_after"

  /** How many more there are of a row, a negative number if there are fewer. */
  val Net = "_net"

  private val Taken = "_taken"
  private val Rows = "_rows"

  def quoted(name: String): Column = col("`" + name.replace("`", "``") + "`")

  def columns(names: Seq[String]): Seq[Column] = names.map(quoted)
}
