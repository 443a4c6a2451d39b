// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{Attribute, Rank => RankWithGaps, _}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.{ExistenceJoin, InnerLike, LeftAnti}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.types.BooleanType

import org.apache.spark.sql.changelog.inference.InferenceErrors
import org.apache.spark.sql.changelog.inference.nodes.StaticInference
import org.apache.spark.sql.changelog.inference.times.TemporalCondition
import org.apache.spark.sql.changelog.plans.{
  FromChangelog, PassingTime, Rank, RankFunction, RecursionInput, RecursiveQuery, TemporalFilter
}

/**
 * Recognizes queries for the first rows of each partition.
 *
 * {{{
 *   Filter rn <= 3 AND x > 0                       Filter x > 0
 *   +- Window row_number() AS rn, [p], [o]   =>    +- Rank row_number [p] [o] 1..3
 *
 *   GlobalLimit 10                                 Rank row_number [] [o] 6..15
 *   +- LocalLimit 10                         =>    +- input
 *      +- Offset 5
 *         +- Sort [o]
 * }}}
 *
 * The rank number is kept only if a node above reads it and its value varies. Ranks without an
 * upper bound, and filters on expressions of the rank, stay unchanged.
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
    // A limit per partition only reduces the work of a batch query. A changelog needs all rows.
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

  /** Returns the lowest and the highest rank that pass a condition. */
  private def bound(
      condition: Expression,
      number: Attribute): Option[(Option[Long], Option[Long])] = {
    // By id: the qualifier of the column may differ from its definition.
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

  /**
   * If a projection stands between the sort and the limit, the sort uses the columns below the
   * projection.
   */
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

  /** Without an upper bound, each change numbers all rows again. */
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

/**
 * Turns conditions on the current time into a [[TemporalFilter]].
 *
 * {{{
 *   Filter v > 1 AND at > now() - 1h          TemporalFilter at > now() - 1h
 *   +- events                           =>    +- Filter v > 1
 *                                                +- events
 * }}}
 *
 * Spark has pushed down conditions on one side of an inner join. Conditions on both sides move
 * above the join. In an anti join, conditions on the left side move above too. A left row then
 * appears if its conditions are false or the row has no match. Unread columns are pruned. Other
 * uses of the current time stay in place, and
 * [[org.apache.spark.sql.changelog.inference.CheckDeterminism]] rejects them.
 */
object RecognizeTemporalFilter extends Rule[LogicalPlan] with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(_.expressions.exists(PassingTime.isIn))) plan
    else prune(recognize(plan))

  private def recognize(plan: LogicalPlan): LogicalPlan = plan match {
    // The plan below a source belongs to Spark.
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

  /** Splits a conjunction into conditions on the current time, and the rest. */
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

/**
 * Extracts the changing inputs of recursive queries, for an operator to store the rows.
 *
 * {{{
 *   UnionLoop                          RecursiveQuery
 *   :- Filter                          |  UnionLoop
 *   |  +- t                            |  :- input 0
 *   +- Join                     =>     |  +- Join
 *      :- UnionLoopRef                 |     :- UnionLoopRef
 *      +- Aggregate                    |     +- input 1
 *         +- t                         :- Filter
 *                                      |  +- t
 *                                      +- Aggregate
 *                                         +- t
 * }}}
 *
 * An input is a maximal subplan that does not read the recursion. Spark runs the remaining plan
 * over all rows of the inputs.
 */
private[optimizer] object ExtractRecursion extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformDownWithSubqueries {
    case loop: UnionLoop if !StaticInference.isStatic(loop) || readsStreams(loop) =>
      extract(loop)
  }

  private def extract(loop: UnionLoop): RecursiveQuery = {
    val inputs = mutable.ArrayBuffer.empty[LogicalPlan]
    def replace(plan: LogicalPlan): LogicalPlan =
      if (StaticInference.isStatic(plan)) plan
      else if (readsRecursion(plan)) plan.mapChildren(replace)
      else {
        inputs += plan
        RecursionInput(inputs.size - 1, plan.output)
      }
    val extracted = loop.mapChildren(replace).asInstanceOf[UnionLoop]
    refusal(extracted).foreach { reason =>
      throw InferenceErrors.nodeNotSupported(loop, reason, Advice)
    }
    RecursiveQuery(extracted, inputs.toSeq)
  }

  private def readsStreams(plan: LogicalPlan): Boolean =
    plan.collectWithSubqueries {
      case source: FromChangelog if source.streaming => source
    }.nonEmpty

  private def readsRecursion(plan: LogicalPlan): Boolean =
    plan.collectWithSubqueries { case reference: UnionLoopRef => reference }.nonEmpty

  private val Advice = "Store the input of the recursion as a table, such as a materialized " +
    "view, and run the recursive query over the table in batch."

  /** Returns the reason why equal rows might give another result in the next run. */
  private def refusal(loop: UnionLoop): Option[String] = {
    val reads = loop.collectWithSubqueries { case leaf: LeafNode => leaf }
    if (readsStreams(loop)) Some("a subquery within the recursion reads a changing table")
    else if (loop.limit.isDefined) Some("a LIMIT ends the recursion at rows without an order")
    else if (!loop.deterministic) Some("the recursion is not deterministic")
    else
      reads
        .collectFirst { case leaf if !isKnown(leaf) => leaf }
        .map(leaf =>
          s"changes of ${leaf.nodeName}${columns(leaf)} in the recursion are not known")
  }

  private def isKnown(leaf: LeafNode): Boolean = leaf match {
    case _: RecursionInput | _: UnionLoopRef | _: LocalRelation | _: OneRowRelation | _: Range =>
      true
    case _ => false
  }

  private def columns(leaf: LeafNode): String =
    leaf.output.map((_: Attribute).name).mkString(" [", ", ", "]")
}
