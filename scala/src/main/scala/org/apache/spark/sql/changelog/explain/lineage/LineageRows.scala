// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain.lineage

import scala.collection.mutable

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.LeftSemi
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.types.{DataType, DoubleType, FloatType}
import org.apache.spark.sql.{Row, SparkSession => AnySession}

import org.apache.spark.sql.changelog.compat.SparkRules

/**
 * Computes the rows of a plan once, and finds the input rows behind them.
 *
 * Found rows stay cached until `close`, for use by lower nodes.
 */
private[lineage] class LineageRows(session: SparkSession) extends AutoCloseable {
  private val kept = mutable.ArrayBuffer.empty[RDD[_]]

  /** Computes and caches the rows of a plan, in the plan's columns. */
  def keep(plan: LogicalPlan): LogicalPlan = {
    val rows = Dataset.ofRows(session, plan).localCheckpoint(eager = true)
    kept ++= rows.queryExecution.analyzed.collect { case rows: LogicalRDD => rows.rdd }
    rows.queryExecution.analyzed
  }

  override def close(): Unit = kept.foreach(_.unpersist(blocking = false))

  /**
   * Returns the rows of `plan` with a matching row in `wanted`.
   *
   * @param equal
   *   pairs of an expression over `plan` and a column of `wanted` that must be equal
   * @param condition
   *   a further condition over columns of both
   */
  def behind(
      plan: LogicalPlan,
      wanted: LogicalPlan,
      equal: Seq[(Expression, Attribute)],
      condition: Option[Expression] = None): LogicalPlan = {
    // With new column ids, because both plans may have the same columns.
    val renamed = wanted.output.map(column => Alias(column, column.name)())
    val known = AttributeMap(wanted.output.zip(renamed.map(_.toAttribute)))
    val values = equal.map { case (value, _) => Alias(value, "value")() }
    val own = plan.outputSet
    val equalities = values.zip(equal).collect {
      case (value, (_, column)) if LineageRows.areComparable(column, plan) =>
        EqualNullSafe(value.toAttribute, known(column))
    }
    val conditions = equalities ++ condition.map(_.transform {
      case column: Attribute if !own.contains(column) => known.getOrElse(column, column)
    })
    val found = Join(
      Project(plan.output ++ values, plan),
      Project(renamed, wanted),
      LeftSemi,
      conditions.reduceOption(And(_, _)),
      JoinHint.NONE)
    keep(Project(plan.output, found))
  }

  def isEmpty(rows: LogicalPlan): Boolean = Dataset.ofRows(session, rows).isEmpty

  /** Returns the number of rows, and the first `most` rows as text. */
  def show(rows: LogicalPlan, most: Int): (Long, Seq[Seq[(String, Option[String])]]) = {
    val frame = Dataset.ofRows(session, rows)
    val timeZone = Some(session.sessionState.conf.sessionLocalTimeZone)
    val texts = rows.output.map { column =>
      val text = ToPrettyString(column, timeZone)
      Alias(If(IsNull(column), Literal(null, text.dataType), text), column.name)()
    }
    val shown = Dataset.ofRows(session, Limit(Literal(most), Project(texts, rows))).collect()
    val names = LineageRows.uniqueNames(rows.output)
    val some = shown.toSeq.map { row =>
      names.zip(row.toSeq.map(text => Option(text).map(_.toString)))
    }
    (frame.count(), some)
  }
}

private[lineage] object LineageRows {

  /**
   * Whether values of a column identify rows when the plan is computed again. Sums of `DOUBLE`s
   * depend on the order of rows in the last digits.
   */
  def areComparable(column: Attribute, plan: LogicalPlan): Boolean =
    RowOrdering.isOrderable(column.dataType) && !(hasFractions(column.dataType) && plan.exists {
      case _: Aggregate | _: Window => true
      case _ => false
    })

  private def hasFractions(dataType: DataType): Boolean = dataType.existsRecursively {
    case _: FloatType | _: DoubleType => true
    case _ => false
  }

  /**
   * Returns distinct names of columns. Repeated names get their qualifier, if known, or a number.
   */
  def uniqueNames(columns: Seq[Attribute]): Seq[String] = {
    def isRepeated(name: String, names: Seq[String]) = names.count(_ == name) > 1
    val plain = columns.map(_.name)
    val qualified = columns.map { column =>
      if (!isRepeated(column.name, plain)) column.name
      else (column.qualifier.takeRight(1) :+ column.name).mkString(".")
    }
    qualified.zipWithIndex.map { case (name, place) =>
      val earlier = qualified.take(place).count(_ == name)
      if (earlier == 0) name else s"$name#${earlier + 1}"
    }
  }
}

/**
 * Shows the source rows behind a query's result, as of now: `WHY SELECT …`.
 *
 * @param query
 *   the query as parsed
 */
case class WhyCommand(query: LogicalPlan) extends LeafRunnableCommand {

  override val output: Seq[Attribute] = TracedNode.output.map(_.newInstance())

  override def run(sparkSession: AnySession): Seq[Row] = {
    val session = castToImpl(sparkSession)
    val analyzed = session.sessionState.executePlan(query)
    analyzed.assertAnalyzed()
    val plan = SparkRules.inlineCommonTables(analyzed.analyzed)
    new TraceRows(session)(plan).flatMap(_.toRows)
  }
}
