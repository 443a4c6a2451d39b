// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.spark.sql.Column
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.quoteIdentifier
import org.apache.spark.sql.classic.DataFrame
import org.apache.spark.sql.functions._
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.compat.SparkRules

/**
 * RowDelta: the difference between two sets of rows, where a row may occur several times.
 *
 * {{{
 *   before   a 1, b 2, c 3, c 3        insert  b 4
 *   after    a 1, b 4, c 3         =>  delete  b 2
 *                                      delete  c 3
 * }}}
 * Rows are compared by their exact values if possible, not by Spark's equality, which may equate 'a' with 'A' in a
 * collation, and 0.0 with -0.0.
 */
private[changelog] object RowDelta {

  /** The number of additional copies of a row, negative for missing copies. */
  val Net = "_changelog_net"

  /** The same, where rows are compared by the columns that a query reads ([[PruneComparedColumns]]). */
  val NetOfRead = "_changelog_net_of_read"

  /**
   * Returns the inserts and deletes that turn the rows `before` into the rows `after`, one for each copy.
   *
   * @param net
   *   the column of the numbers of copies: [[NetOfRead]] for a query of changes
   */
  def apply(before: DataFrame, after: DataFrame, net: String = Net): DataFrame = {
    val names = after.columns.toSeq
    if (!isCountable(after.schema.map(_.dataType))) changes(counted(after, before), names)
    else {
      def signed(rows: DataFrame, kind: String) =
        rows.withColumn(RowKind.ChangeTypeColumnName, lit(kind))
      netted(signed(after, "insert").union(signed(before, "delete")), names, net)
    }
  }

  /**
   * Cancels inserts and deletes of equal rows. Rows that Spark can't group stay as they are.
   *
   * @param net
   *   the same as for [[apply]]
   */
  def net(rows: DataFrame, names: Seq[String], net: String = Net): DataFrame =
    if (isCountable(names.map(rows.schema(_).dataType))) netted(rows, names, net) else rows

  private def netted(rows: DataFrame, names: Seq[String], net: String): DataFrame =
    changes(
      counted(rows, names, quoted(RowKind.ChangeTypeColumnName) === "delete", net),
      names,
      net)

  private def changes(counted: DataFrame, names: Seq[String], net: String = Net): DataFrame =
    copies(counted, names, RowKind.ChangeTypeColumnName, "insert", "delete", net)

  /** Returns a row for each copy that `net` counts, with the text `more` or `fewer` in a last column `name`. */
  def copies(
      counted: DataFrame,
      names: Seq[String],
      name: String,
      more: String,
      fewer: String,
      net: String = Net): DataFrame = {
    val text = when(col(net) > 0, more).otherwise(fewer)
    val repeated = explode(array_repeat(text, abs(col(net)).cast(IntegerType)))
    counted.select(names.map(quoted) :+ repeated.as(name): _*)
  }

  /** Returns the distinct rows of the columns `names` with their number `net`, without zeros. */
  def counted(
      rows: DataFrame,
      names: Seq[String],
      isGone: Column,
      net: String = Net): DataFrame = {
    val signed = rows.withColumn(net, when(isGone, lit(-1L)).otherwise(lit(1L)))
    summed(signed, names, net).where(col(net) =!= 0)
  }

  /** Returns the distinct rows of the columns `names`, with the sums of the columns `counts`. */
  def summed(rows: DataFrame, names: Seq[String], counts: String*): DataFrame = {
    val types = names.map(rows.schema(_).dataType)
    val exact = names.zip(types).map { case (name, dataType) => as(name, identityType(dataType)) }
    // Outside ANSI mode, the cast of a text can fail, and Spark makes the type nullable.
    val columns = names.zip(types).map {
      case (name, dataType) if identityType(dataType) == dataType => quoted(name)
      case (name, dataType) => as(name, dataType.asNullable)
    }
    val sums = counts.map(count => sum(quoted(count)).as(count))
    rows
      .groupBy(exact: _*)
      .agg(sums.head, sums.tail: _*)
      .select(columns ++ counts.map(quoted): _*)
  }

  /**
   * Returns the rows with different numbers of copies in two tables, compared by Spark's equality. [[Net]] has the
   * number of additional copies in the first table.
   */
  def counted(rows: DataFrame, others: DataFrame): DataFrame = {
    val names = rows.columns.toSeq
    val forms = names.indices.map(index => s"c$index")
    def signed(frame: DataFrame, sign: Long) = {
      val compared = names.zip(forms).map { case (name, form) =>
        comparable(quoted(name), frame.schema(name).dataType).as(form)
      }
      frame.select(compared :+ struct(names.map(quoted): _*).as(Row) :+ lit(sign).as(Net): _*)
    }
    val groups = signed(rows, 1).union(signed(others, -1)).groupBy(forms.map(col): _*)
    def rowOf(condition: Column) = first(when(condition, col(Row)), ignoreNulls = true)
    val counted =
      if (rows.schema.forall(field => isComparable(field.dataType)))
        groups.agg(sum(Net).as(Net)).toDF(names :+ Net: _*)
      else {
        val row = coalesce(rowOf(col(Net) > 0), rowOf(col(Net) < 0)).as(Row)
        val values = names.map(name => col(Row).getField(name).as(name))
        groups.agg(sum(Net).as(Net), row).select(values :+ col(Net): _*)
      }
    counted.where(col(Net) =!= 0)
  }

  /** Returns the column in a form with an order, equal for equal values. */
  def comparable(column: Column, dataType: DataType): Column = dataType match {
    case _ if isComparable(dataType) => column
    case _: VariantType => to_json(column)
    case MapType(_, valueType, _) =>
      transform(
        array_sort(map_keys(column)),
        key => struct(key.as("key"), comparable(column(key), valueType).as("value")))
    case ArrayType(elementType, _) => transform(column, comparable(_, elementType))
    case StructType(fields) =>
      val compared = fields.toSeq.map { field =>
        comparable(column.getField(field.name), field.dataType).as(field.name)
      }
      when(column.isNotNull, struct(compared: _*))
    case _ => column
  }

  /** Returns whether Spark can compare values of a type. Spark compares neither maps nor variants. */
  private def isComparable(dataType: DataType): Boolean =
    !dataType.existsRecursively {
      case _: MapType | _: VariantType => true
      case _ => false
    }

  /** Returns whether Spark can group rows with columns of these types. */
  def isCountable(types: Seq[DataType]): Boolean =
    !types.exists(_.existsRecursively(_.isInstanceOf[VariantType]))

  /** Returns a type in which only identical values are equal. */
  def identityType(dataType: DataType): DataType = dataType match {
    case _: FloatType | _: DoubleType => StringType
    case text: StringType if !text.isUTF8BinaryCollation => StringType
    case array: ArrayType => array.copy(elementType = identityType(array.elementType))
    case struct: StructType =>
      StructType(struct.map(field => field.copy(dataType = identityType(field.dataType))))
    case map: MapType =>
      map.copy(keyType = identityType(map.keyType), valueType = identityType(map.valueType))
    case other => other
  }

  private def as(name: String, dataType: DataType): Column = quoted(name).cast(dataType).as(name)

  def quoted(name: String): Column = col(quoteIdentifier(name))

  private val Row = "_changelog_row"
}

/**
 * Compares rows only by the columns that a query of changes reads, so that no other columns are scanned. Changes of the
 * other columns then cancel out.
 */
private[changelog] object PruneComparedColumns extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(isComparison)) plan
    else SparkRules.pruneColumns(pruned(SparkRules.pruneColumns(plan)))

  /** Spark's rule has removed the columns from the result of a comparison that nothing reads. */
  private def pruned(plan: LogicalPlan): LogicalPlan = plan.transform {
    case rows: Aggregate if isComparison(rows) =>
      val read = AttributeSet(rows.aggregateExpressions.flatMap(_.references))
      rows.copy(groupingExpressions = rows.groupingExpressions.filter {
        case column: Attribute => read.contains(column)
        case _ => true
      })
  }

  private def isComparison(plan: LogicalPlan): Boolean = plan match {
    case rows: Aggregate => rows.aggregateExpressions.exists(_.name == RowDelta.NetOfRead)
    case _ => false
  }
}
