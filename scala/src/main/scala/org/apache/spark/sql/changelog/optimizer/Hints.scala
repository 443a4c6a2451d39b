// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import scala.util.control.NonFatal

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression.hasSubquery
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.types.DataType

import org.apache.spark.sql.changelog.analysis.SkewHint
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.inference.keys.ProjectKeys
import org.apache.spark.sql.changelog.inference.nodes.{JoinState, StaticInference, StaticSide}
import org.apache.spark.sql.changelog.inference.{DescribeNode, EquiJoin}
import org.apache.spark.sql.changelog.plans._

/**
 * Removes `ROW_TTL` and `SKEW` hints outside streams of changes. The hints have no effect there,
 * as in a session without this extension. Runs before Spark's optimizer.
 */
object DropHints extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (plan.collectWithSubqueries { case hint @ (_: RowTtl | _: Skew) =>
        hint
      }.isEmpty) plan
    else drop(plan)

  private def drop(plan: LogicalPlan): LogicalPlan = plan match {
    case root: ToChangelog if root.streaming => root
    case hint @ (_: RowTtl | _: Skew) => drop(hint.children.head)
    case other =>
      other.mapChildren(drop).transformExpressions { case subquery: PlanExpression[_] =>
        subquery.plan match {
          case query: LogicalPlan =>
            subquery.asInstanceOf[PlanExpression[LogicalPlan]].withNewPlan(drop(query))
          case _ => subquery
        }
      }
  }
}

/**
 * Lifts a `SKEW` hint to its join.
 *
 * {{{
 *   Join auction = id                         Join auction = id
 *   :- Project [auction, price]               :- Skew [auction] [1007]
 *   :  +- Filter price > 10            =>     :  +- Project [auction, price]
 *   :     +- Skew [auction] [1007]            :     +- Filter price > 10
 *   :        +- bids                          :        +- bids
 *   +- auctions                               +- auctions
 * }}}
 *
 * Lifted hints do not block Spark's rules that push filters and projections down. A hint stays
 * below a node that drops the hint's columns, and below subqueries, which become joins.
 */
object LiftSkew extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(_.isInstanceOf[Skew])) plan
    else plan.transformUp { case node => lifted(node).getOrElse(node) }

  /** Returns the hint lifted over `node`, if the hint still has its columns there. */
  private[optimizer] def lifted(node: LogicalPlan): Option[Skew] = node match {
    case Project(columns, skew: Skew) if node.subqueries.isEmpty =>
      val named = skew.columns.flatMap { column =>
        columns
          .find(ProjectKeys.carriedColumn(_).exists(_.exprId == column.exprId))
          .map(_.toAttribute)
      }
      over(node, skew, named)
    case _: Filter | _: Generate | _: Expand | _: AppendColumns | _: TemporalFilter | _: RowTtl |
        _: Sort =>
      node.children.head match {
        case skew: Skew if node.subqueries.isEmpty =>
          over(node, skew, skew.columns.filter(node.outputSet.contains))
        case _ => None
      }
    case _ => None
  }

  private def over(node: LogicalPlan, skew: Skew, columns: Seq[Attribute]): Option[Skew] =
    if (columns.size < skew.columns.size) None
    else Some(skew.copy(columns = columns, child = node.withNewChildren(Seq(skew.child))))
}

/**
 * Filters rows before the TTL operator records their arrival.
 *
 * {{{
 *   Filter city = 'Oslo'           RowTtl 3 days
 *   +- RowTtl 3 days         =>    +- Filter city = 'Oslo'
 *      +- orders                      +- orders
 * }}}
 *
 * Equal rows pass the filter together, so the order of the two nodes does not matter. Conditions
 * on the current time stay above: a row could pass them again later.
 */
object PushThroughRowTtl extends Rule[LogicalPlan] with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(_.isInstanceOf[RowTtl])) plan
    else {
      plan.transformDown { case filter @ Filter(condition, ttl: RowTtl) =>
        val (below, above) = splitConjunctivePredicates(condition).partition(isOfTheRow)
        if (below.isEmpty) filter
        else {
          val filtered = ttl.copy(child = Filter(below.reduce(And(_, _)), ttl.child))
          above.reduceOption(And(_, _)).fold[LogicalPlan](filtered)(Filter(_, filtered))
        }
      }
    }

  private def isOfTheRow(condition: Expression): Boolean =
    condition.deterministic && !hasSubquery(condition) && !PassingTime.isIn(condition)
}

/**
 * Tags each join with the `SKEW` hint of one of its sides, and removes the hints from the plan.
 *
 * A hint also moves up to later joins, whose keys may have its columns too. A hint that no join
 * can follow is an error. Hints below static plans, which Spark computes, are ignored.
 */
private[optimizer] object AssignSkew extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(_.isInstanceOf[Skew])) plan else assign(plan)

  private def assign(plan: LogicalPlan): LogicalPlan = plan match {
    case source: FromChangelog if source.streaming => source
    case skew: Skew => skew.copy(child = assign(skew.child))
    case static if StaticInference.isStatic(static) =>
      static.transformUp { case skew: Skew => skew.child }
    case _ =>
      val node = plan.mapChildren(assign)
      if (!node.children.exists(_.isInstanceOf[Skew])) node
      else {
        node match {
          case join: Join => ofJoin(join, join)
          case join: LookupJoin => ofJoin(join, join.toJoin)
          case _ => LiftSkew.lifted(node).getOrElse(withoutHints(node))
        }
      }
  }

  /**
   * @param join
   *   the join of `node`
   */
  private def ofJoin(node: LogicalPlan, join: Join): LogicalPlan = {
    val hints = node.children.map(hintsOver)
    val bare = node.withNewChildren(node.children.map(below))
    val equi = EquiJoin(join)
    val sides = for {
      (skews, number) <- hints.zipWithIndex
      skew <- skews
      key <- keyParts(equi, skew, isLeft = number == 0)
    } yield (skew, number == 0, key)
    val (possible, impossible) =
      sides.partition { case (_, isLeft, _) => obstacle(join, isLeft).isEmpty }
    val followed = possible.headOption.map { case (skew, isLeft, key) =>
      SkewedSide.set(bare, sideOf(skew, isLeft, key))
      skew
    }
    impossible.foreach { case (skew, isLeft, _) =>
      if (!skew.isFollowed) throw notFollowed(skew, obstacle(join, isLeft).get)
    }
    possible.drop(1).foreach { case (skew, _, _) =>
      if (!skew.isFollowed) {
        throw notFollowed(skew, s"another hint spreads rows of ${DescribeNode.short(join)}")
      }
    }
    hints.flatten.foldLeft(bare) { case (plan, skew) =>
      val over =
        skew.copy(isFollowed = skew.isFollowed || followed.exists(_ eq skew), child = plan)
      if (AttributeSet(skew.columns).subsetOf(bare.outputSet)) over
      else {
        refuse(over, join)
        plan
      }
    }
  }

  private def hintsOver(plan: LogicalPlan): Seq[Skew] = plan match {
    case skew: Skew => skew +: hintsOver(skew.child)
    case _ => Nil
  }

  private def below(plan: LogicalPlan): LogicalPlan = plan match {
    case skew: Skew => below(skew.child)
    case other => other
  }

  /**
   * Returns the parts of the join key that equal the hint's columns, if all columns are in the
   * key.
   */
  private def keyParts(equi: EquiJoin, skew: Skew, isLeft: Boolean): Option[Seq[Expression]] = {
    val parts = skew.columns.flatMap { column =>
      equi.key(isLeft).find(EquiJoin.columnOf(_).exists(_.exprId == column.exprId))
    }
    Option.when(parts.size == skew.columns.size)(parts)
  }

  /** Returns the reason why a side cannot be spread, with copies of the opposite side. */
  private def obstacle(join: Join, isLeft: Boolean): Option[String] = {
    val name = DescribeNode.short(join)
    if (StaticSide.looksUp(join)) {
      Some(s"one side of $name never changes, so that Spark runs the join")
    } else if (JoinState.isPreserved(join.joinType, !isLeft)) {
      Some(s"$name emits rows of the other side without a match, and cannot copy these rows")
    } else None
  }

  private def sideOf(skew: Skew, isLeft: Boolean, key: Seq[Expression]): SkewedSide = {
    val values = skew.values.map(_.zip(key).map { case (value, part) =>
      as(value, EquiJoin.plain(part).dataType)
    })
    SkewedSide(isLeft, skew.columns, values, 0 until conf.getConf(ChangelogConf.SKEW_WAYS))
  }

  private def as(value: Literal, dataType: DataType): Literal =
    if (value.dataType == dataType) value
    else {
      val cast =
        Cast(value, dataType, Some(conf.sessionLocalTimeZone), ansiEnabled = true)
      try {
        if (cast.checkInputDataTypes().isFailure) throw invalid(value, dataType)
        Literal(cast.eval(), dataType)
      } catch {
        case NonFatal(_) => throw invalid(value, dataType)
      }
    }

  private def invalid(value: Literal, dataType: DataType): AnalysisException =
    SkewHint.invalid("values", value.sql, s"the join key is of type ${dataType.sql}")

  /** Removes the hints below a node without a use for hints. */
  private def withoutHints(node: LogicalPlan): LogicalPlan =
    node.withNewChildren(node.children.map { child =>
      hintsOver(child).foreach(refuse(_, node))
      below(child)
    })

  private def refuse(skew: Skew, reader: LogicalPlan): Unit =
    if (!skew.isFollowed) {
      throw notFollowed(
        skew,
        s"no join below ${DescribeNode.short(reader)} compares the columns for equality; " +
          "put the hint where such a join reads the table, or remove the hint")
    }

  private def notFollowed(skew: Skew, why: String): AnalysisException =
    SkewHint.invalid("columns", DescribeNode.key(skew.columns), why)
}
