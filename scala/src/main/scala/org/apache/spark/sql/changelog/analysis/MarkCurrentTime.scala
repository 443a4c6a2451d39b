// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import java.util.Locale

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.plans.{FromChangelog, ToChangelog}

/**
 * Lets what time it is count as chance where a query is checked: the next batch has another time.
 *
 * {{{
 *   Filter at < now()     =>   Filter at < CurrentTimeMark
 *   +- FromChangelog           +- FromChangelog
 * }}}
 *
 * Spark's optimizer puts a constant in its place, in each batch anew, and nobody would notice. The
 * plan is good for checking only. Leaves alone what is below `from_changelog`: it is computed once
 * for each change.
 */
private[changelog] object MarkCurrentTime {

  def apply(plan: LogicalPlan): LogicalPlan = plan.transformDown { case root: ToChangelog =>
    root.copy(child = mark(root.child))
  }

  private def mark(plan: LogicalPlan): LogicalPlan = plan match {
    case source: FromChangelog => source
    case _ =>
      plan.mapChildren(mark).transformExpressions {
        case time @ (_: CurrentTimestampLike | _: LocalTimestamp | _: CurrentDate |
            _: CurrentTime) =>
          CurrentTimeMark(time)
        case cast: Cast if isOfToday(cast) => CurrentTimeMark(cast)
        case subquery: SubqueryExpression => subquery.withNewPlan(mark(subquery.plan))
      }
  }

  /** Such as `CAST('yesterday' AS DATE)`. */
  private def isOfToday(cast: Cast): Boolean = cast.dataType match {
    case DateType | TimestampType | TimestampNTZType
        if cast.child.foldable && cast.child.dataType.isInstanceOf[StringType] =>
      Option(cast.child.eval()).exists { text =>
        Words.contains(text.toString.trim.toLowerCase(Locale.ROOT))
      }
    case _ => false
  }

  private val Words = Set("now", "today", "tomorrow", "yesterday")
}

/** Stands for an expression whose value depends on when it is computed. */
private[changelog] case class CurrentTimeMark(time: Expression)
    extends LeafExpression
    with Nondeterministic
    with CodegenFallback {

  override def dataType: DataType = time.dataType
  override def nullable: Boolean = time.nullable
  override def sql: String = time.sql

  override protected def initializeInternal(partitionIndex: Int): Unit = ()
  override protected def evalInternal(input: InternalRow): Any = time.eval(input)
}
