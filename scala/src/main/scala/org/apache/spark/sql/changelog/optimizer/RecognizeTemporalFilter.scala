// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.{ExistenceJoin, InnerLike, LeftAnti}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.types.BooleanType

import org.apache.spark.sql.changelog.inference.times.TemporalCondition
import org.apache.spark.sql.changelog.plans.{FromChangelog, PassingTime, TemporalFilter}

/**
 * Makes a [[TemporalFilter]] of conditions on the time.
 * {{{
 *   Filter v > 1 AND at > now() - 1h          TemporalFilter at > now() - 1h
 *   +- events                           =>    +- Filter v > 1
 *                                                +- events
 * }}}
 * Those in the condition of an inner join that read both sides stand above the join then; Spark has
 * pushed the others down. So do those in an anti join's that read the left side: a left row is there
 * while they are not met, and where it has no match. It keeps no columns that nobody reads. Leaves
 * other uses of the time where they are, for
 * [[org.apache.spark.sql.changelog.inference.CheckDeterminism]] to refuse.
 */
object RecognizeTemporalFilter extends Rule[LogicalPlan] with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(_.expressions.exists(PassingTime.isIn))) plan
    else prune(recognize(plan))

  private def recognize(plan: LogicalPlan): LogicalPlan = plan match {
    // what lies below a source is Spark's own
    case source: FromChangelog => source
    case _ =>
      plan.mapChildren(recognize) match {
        case Filter(condition, child) =>
          val (timed, others) = split(condition)
          val filtered = others.reduceOption(And(_, _)).map(Filter(_, child)).getOrElse(child)
          above(timed, filtered)
        case join @ Join(_, _, _: InnerLike, Some(condition), _) =>
          val (timed, others) = split(condition)
          if (timed.isEmpty) join
          else {
            val joined = join.copy(condition = others.reduceOption(And(_, _)))
            joined.copyTagsFrom(join)
            above(timed, joined)
          }
        case join @ Join(_, _, LeftAnti, Some(condition), _) =>
          antiJoin(join, condition).getOrElse(join)
        case other => other
      }
  }

  private def antiJoin(join: Join, condition: Expression): Option[LogicalPlan] = {
    val (timed, others) = splitConjunctivePredicates(condition).partition(PassingTime.isIn)
    val ofLeft = timed.filter(_.references.subsetOf(join.left.outputSet))
    val untrue =
      if (ofLeft.size < timed.size) None
      else timed.reduceOption(And(_, _)).flatMap(TemporalCondition.untrue)
    untrue.map { notMet =>
      val hasMatch = AttributeReference("exists", BooleanType, nullable = false)()
      val marked =
        join.copy(joinType = ExistenceJoin(hasMatch), condition = others.reduceOption(And(_, _)))
      marked.copyTagsFrom(join)
      Project(join.left.output, above(Seq(Or(Not(hasMatch), notMet)), marked))
    }
  }

  /** The conditions on the time of a conjunction, and the others. */
  private def split(condition: Expression): (Seq[Expression], Seq[Expression]) = {
    val parts = splitConjunctivePredicates(condition).map { part =>
      part -> (if (PassingTime.isIn(part)) TemporalCondition.split(part) else None)
    }
    (parts.flatMap(_._2).flatten, parts.collect { case (part, None) => part })
  }

  private def above(conditions: Seq[Expression], plan: LogicalPlan): LogicalPlan = plan match {
    case _ if conditions.isEmpty => plan
    case TemporalFilter(others, child) => TemporalFilter(others ++ conditions, child)
    case _ => TemporalFilter(conditions, plan)
  }

  private def prune(plan: LogicalPlan): LogicalPlan = plan.transformDown {
    case project @ Project(_, filter @ TemporalFilter(_, child)) =>
      val read = child.output.filter((project.references ++ filter.references).contains)
      if (read.size == child.output.size) project
      else project.copy(child = filter.copy(child = Project(read, child)))
  }
}
