// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.expressions.{Rank => RankWithGaps, _}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.plans.{Rank, RankFunction}

/**
 * Recognizes the queries that keep the first rows of each partition.
 * {{{
 *   Filter rn <= 3 AND x > 0                       Filter x > 0
 *   +- Window row_number() AS rn, [p], [o]   =>    +- Rank row_number [p] [o] 1..3
 *
 *   GlobalLimit 10                                 Rank row_number [] [o] 6..15
 *   +- LocalLimit 10                         =>    +- input
 *      +- Offset 5
 *         +- Sort [o]
 * }}}
 * The rank number is kept only if something above reads it, and not if it can be only one. Leaves
 * alone ranks without an upper bound, and filters on expressions of the rank.
 */
object RecognizeRank extends Rule[LogicalPlan] with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan = {
    val ranked = plan.transformDown {
      case project @ Project(columns, filter: Filter) =>
        val read = AttributeSet(columns.flatMap(_.references))
        rank(filter, read).map(child => project.copy(child = child)).getOrElse(project)
      case filter: Filter => rank(filter, filter.outputSet).getOrElse(filter)
      case GlobalLimit(IntegerLiteral(count), child) => limit(count, child)
      case Offset(IntegerLiteral(count), child) => skip(count, child)
    }
    // a limit per partition only spares work where it is computed; a changelog needs all rows
    ranked.transformUp {
      case LocalLimit(_, child) => child
      case WindowGroupLimit(_, _, _, _, child) => child
    }
  }

  private def rank(filter: Filter, read: AttributeSet): Option[LogicalPlan] = filter.child match {
    case Window(
          Seq(alias @ Alias(WindowExpression(function, _), _)),
          partition,
          order,
          child,
          _) =>
      val number = alias.toAttribute
      val conditions = splitConjunctivePredicates(filter.condition)
      val (onNumber, others) = conditions.partition(_.references.contains(number))
      for {
        kind <- rankFunction(function)
        bounds <- sequence(onNumber.map(bound(_, number)))
        end <- bounds.flatMap(_._2).minOption
      } yield {
        val start = bounds.flatMap(_._1).maxOption.getOrElse(1L)
        val isConstant = kind == RankFunction.RowNumber && start == end
        val isRead = read.contains(number)
        val kept = if (isRead && !isConstant) Some(number) else None
        val ranked = Rank(kind, partition, order, math.max(start, 1L), end, kept, child)
        val numbered =
          if (!isRead || !isConstant) ranked
          else {
            val constant = Alias(Literal(end.toInt), number.name)(exprId = number.exprId)
            Project(child.output :+ constant, ranked)
          }
        others.reduceOption(And(_, _)).map(Filter(_, numbered)).getOrElse(numbered)
      }
    case _ => None
  }

  private def rankFunction(function: Expression): Option[RankFunction] = function match {
    case _: RowNumber => Some(RankFunction.RowNumber)
    case _: RankWithGaps => Some(RankFunction.RankWithGaps)
    case _: DenseRank => Some(RankFunction.DenseRank)
    case _ => None
  }

  /** The lowest and the highest rank a condition lets through. */
  private def bound(
      condition: Expression,
      number: Attribute): Option[(Option[Long], Option[Long])] = {
    // by id: the same column may carry another qualifier here than where it is made
    object Number {
      def unapply(e: Expression): Boolean = e.semanticEquals(number)
    }
    condition match {
      case LessThanOrEqual(Number(), IntegerLiteral(n)) => Some((None, Some(n)))
      case LessThan(Number(), IntegerLiteral(n)) => Some((None, Some(n - 1L)))
      case GreaterThanOrEqual(Number(), IntegerLiteral(n)) => Some((Some(n), None))
      case GreaterThan(Number(), IntegerLiteral(n)) => Some((Some(n + 1L), None))
      case EqualTo(Number(), IntegerLiteral(n)) => Some((Some(n), Some(n)))
      case _ => None
    }
  }

  private def sequence[T](options: Seq[Option[T]]): Option[Seq[T]] =
    if (options.forall(_.isDefined)) Some(options.flatten) else None

  /** Where columns are chosen between the sort and the limit, the sort is by columns below that. */
  private def limit(count: Int, input: LogicalPlan, offset: Int = 0): LogicalPlan = {
    def first(order: Seq[SortOrder], child: LogicalPlan) =
      Rank(RankFunction.RowNumber, Nil, order, offset + 1L, offset.toLong + count, None, child)
    input match {
      case LocalLimit(_, child) => limit(count, child, offset)
      case Offset(IntegerLiteral(more), child) => limit(count, child, offset + more)
      case GlobalLimit(IntegerLiteral(most), child) if most > offset =>
        limit(math.min(count, most - offset), child, offset)
      case Project(columns, child) if isSorted(child) =>
        Project(columns, limit(count, child, offset))
      case Sort(order, true, child, _) => first(order, child)
      case child => first(Nil, child)
    }
  }

  /** Without a last row all rows are ranked, each time anew. */
  private def skip(count: Int, input: LogicalPlan): LogicalPlan = input match {
    case GlobalLimit(IntegerLiteral(most), child) if most > count =>
      limit(most - count, child, count)
    case Project(columns, child) if isSorted(child) => Project(columns, skip(count, child))
    case Sort(order, true, child, _) => numbered(count, order, child)
    case child => numbered(count, Nil, child)
  }

  private def numbered(count: Int, order: Seq[SortOrder], child: LogicalPlan): LogicalPlan = {
    val frame = SpecifiedWindowFrame(RowFrame, UnboundedPreceding, CurrentRow)
    val number = WindowExpression(RowNumber(), WindowSpecDefinition(Nil, order, frame))
    val numbered = Alias(number, "_row_number")()
    val kept = GreaterThan(numbered.toAttribute, Literal(count))
    Project(child.output, Filter(kept, Window(Seq(numbered), Nil, order, child)))
  }

  private def isSorted(plan: LogicalPlan): Boolean = plan match {
    case Sort(_, isGlobal, _, _) => isGlobal
    case _: Project | _: LocalLimit | _: GlobalLimit | _: Offset => isSorted(plan.children.head)
    case _ => false
  }
}
