// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.spark.sql.Column
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.expressions.Window
import org.apache.spark.sql.functions._
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.connectors.delta.DeltaWriter
import org.apache.spark.sql.changelog.sinks.ChangelogBatch.{Before, Gone, Net, columns, quoted}
import org.apache.spark.sql.changelog.sinks.table.RowMerge
import org.apache.spark.sql.changelog.sources.tables.RowDelta

/**
 * DeltaDifference: replaces the rows of a Delta table by new rows, and writes only the differences, in a single commit.
 *
 * {{{
 *   there    a 1, b 2, c 3, c 3        _gone  _before
 *   rows     a 1, b 4, c 3         =>  false  b 2      b 4    the only rows of their key
 *                                      true   c 3      c 3    deletes equal rows
 *                                      false  NULL     c 3    inserts each remaining copy
 * }}}
 * Rows are compared by their exact values, not by Spark's equality.
 *
 * @param table
 *   the table's name in statements
 * @param rows
 *   the new rows, in the columns of the table and the added columns
 * @param key
 *   key columns of `rows`, if known
 * @param within
 *   the rows of the table to compare. The table keeps the remaining rows.
 */
private class DeltaDifference(
    session: SparkSession,
    table: String,
    rows: DataFrame,
    key: Option[Seq[String]],
    within: Column = lit(true)) {
  private val OldSide = "_changelog_were"
  private val NewSide = "_changelog_are"
  private val Replaced = "_changelog_replaced"
  private val Step = "_changelog_step"
  private val names = rows.columns.toSeq
  private val ofKey = Window.partitionBy(columns(key.getOrElse(Nil)): _*)
  private val there = session.table(table)

  /** The columns added to the table. */
  val added: StructType =
    StructType(rows.schema.filterNot(field => there.columns.contains(field.name)))

  /** Each row with a changed number of copies, with the old and the new number. Computed before the table changes. */
  private val counted: DataFrame = {
    val known = names.map { name =>
      if (added.fieldNames.contains(name)) lit(null).cast(rows.schema(name).dataType).as(name)
      else quoted(name)
    }
    val before =
      there.where(within).select(known :+ lit(1L).as(OldSide) :+ lit(0L).as(NewSide): _*)
    val after = rows.select(columns(names) :+ lit(0L).as(OldSide) :+ lit(1L).as(NewSide): _*)
    RowDelta
      .summed(before.union(after), names, OldSide, NewSide)
      .where(col(OldSide) =!= col(NewSide))
      .localCheckpoint()
  }

  def isEmpty: Boolean = counted.isEmpty

  /** Writes the changes as the first batch of `application`, without `MERGE` if the table allows. */
  def write(application: String): Unit = {
    val isReplaced = if (key.isEmpty) lit(false) else max(NewSide).over(ofKey) > 0
    val net = counted
      .withColumn(Replaced, isReplaced)
      .where(col(NewSide) > 0 || !col(Replaced))
      .select(columns(names) :+ (col(NewSide) - col(OldSide)).as(Net): _*)
    val identity = RowMerge.identity(rows.schema, key.getOrElse(names), key.nonEmpty)
    val writer = DeltaWriter.find(session, table, identity, application)
    if (!writer.exists(_.write(net, 0))) merge()
  }

  /** Adds the columns and merges the changes. */
  def merge(): Unit = {
    val met =
      Seq(RowMerge.equal(there.schema, s"c.$Before"), RowMerge.same(there.schema, s"c.$Before"))
    val condition = (met :+ s"c.$Before IS NOT NULL").mkString(" AND ")
    val clause = if (added.isEmpty) "" else "WITH SCHEMA EVOLUTION"
    val changes = asSteps(paired(counted)).localCheckpoint()
    new RowMerge(session, table, names)(changes, condition, clause)
  }

  /** Pairs each counted row with the replaced row, and omits the replaced rows. */
  private def paired(counted: DataFrame): DataFrame = {
    val isPair = sum(OldSide).over(ofKey) === 1 && sum(NewSide).over(ofKey) === 1
    val replaced = first(when(col(OldSide) > 0, row), ignoreNulls = true).over(ofKey)
    counted
      .withColumn(Replaced, when(if (key.isEmpty) lit(false) else isPair, replaced))
      .where(col(Replaced).isNull || col(NewSide) > 0)
  }

  private def asSteps(paired: DataFrame): DataFrame = {
    def step(isGone: Boolean, before: Column) = struct(lit(isGone).as(Gone), before.as(Before))
    val go = array_repeat(step(isGone = true, row), least(col(OldSide), lit(1L)).cast("INT"))
    val come = array_repeat(step(isGone = false, col(Replaced)), col(NewSide).cast("INT"))
    // An added column takes its comment from this metadata.
    val values = names.map(name => quoted(name).as(name, rows.schema(name).metadata))
    paired
      .select(explode(concat(go, come)).as(Step) +: values: _*)
      .select(col(s"$Step.$Gone") +: col(s"$Step.$Before") +: columns(names): _*)
  }

  private def row: Column = struct(columns(names): _*)
}
