// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types.IntegerType

import org.apache.spark.sql.changelog.inference.nodes.{
  JoinState, StaticInference, TemporalJoinInference
}
import org.apache.spark.sql.changelog.inference.{AnnotatedPlan, EquiJoin}
import org.apache.spark.sql.changelog.plans._
import org.apache.spark.sql.changelog.{RowKind, UpdateKind}

/**
 * Replaces a `Join` of two changelogs by a [[ChangelogJoin]].
 *
 * {{{
 *   Join LeftOuter, (o.uid = u.uid AND o.ts > u.ts)     =>   ChangelogJoin [o.uid] [u.uid], o.ts > u.ts
 *   :- orders  [I,UB,UA,D]                                   :- orders  [I,UB,UA,D]
 *   +- users   [I,UB,UA,D]                                   +- users   [I,UB,UA,D]
 * }}}
 *
 * A join with a static input remains Spark's join, and the row kind passes through. Spark's join
 * may stop before reading all changes, and operators below would lose changes. `ChangelogDrain`
 * reads the rest. Without an equality, Spark's join may read changes several times, so the static
 * side is broadcast.
 */
private[optimizer] object JoinRewrite extends NodeRewrite {

  override def isDefinedAt(node: AnnotatedPlan): Boolean = node.plan match {
    case _: Join | _: LookupJoin => true
    case _ => false
  }

  override def apply(context: RewriteContext): LogicalPlan = {
    import context.{ids, node}
    val rewritten =
      if (node.children.exists(side => StaticInference.isStatic(side.plan))) {
        lookUpStatic(node, context.inputs)
      } else join(node, context.inputs, ids)
    context.select(rewritten)
  }

  private def lookUpStatic(node: AnnotatedPlan, inputs: Seq[LogicalPlan]): LogicalPlan = {
    val sides = node.children.zip(inputs).map { case (side, input) =>
      if (keepsState(side)) ChangelogDrain(input) else input
    }
    val join = node.plan.asInstanceOf[Join]
    val equi = EquiJoin(join)
    val hint =
      if (equi.key(left = true).nonEmpty || !node.children.exists(keepsState)) join.hint
      else {
        val broadcast = Some(HintInfo(Some(BROADCAST)))
        if (StaticInference.isStatic(join.left)) JoinHint(broadcast, None)
        else JoinHint(None, broadcast)
      }
    val joined = join.copy(left = sides(0), right = sides(1), hint = hint)
    if (equi.matchesNull.contains(true)) joined
    else PointLookup.find(joined, equi.pairs, equi.rest).getOrElse(joined)
  }

  private def keepsState(node: AnnotatedPlan): Boolean =
    node.state.nonEmpty || node.children.exists(keepsState)

  private def join(
      node: AnnotatedPlan,
      inputs: Seq[LogicalPlan],
      ids: OperatorIds): ChangelogJoin = {
    val state = JoinState(node)
    val spread = SpreadRows.of(node, state)
    val salted = spread.fold(inputs)(_.inputs(inputs))
    def side(number: Int) = {
      val isLeft = number == 0
      JoinedSide(
        state.equi.key(isLeft).map(NodeRewrite.sameBytes) ++ spread.map(_.salt(isLeft)),
        RowKind.find(inputs(number).output),
        state.form(isLeft),
        state.rowKey(isLeft).map(NodeRewrite.sameBytes),
        state.tracksMatches(isLeft),
        replaces(node.children(number)))
    }
    ChangelogJoin(
      state.join.joinType,
      side(0),
      side(1),
      state.equi.matchesNull ++ spread.map(_ => true),
      state.equi.rest.reduceOption(And(_, _)),
      result(node),
      ids.next(),
      salted(0),
      salted(1))
  }

  /** Whether a row of an input replaces the row with an equal key. */
  private[rewrite] def replaces(input: AnnotatedPlan): Boolean =
    input.required == UpdateKind.OnlyUpdateAfter

  /**
   * Returns the form of the join's changes. Updates are paired by the key of the consumer, or by
   * any key.
   */
  private[rewrite] def result(node: AnnotatedPlan): JoinResult = {
    val key = node.requiredKey.orElse(node.upsertKeys.headOption)
    JoinResult(
      if (node.mode.kinds.update) key.map(node.ordered) else None,
      node.mode.kinds.delete,
      node.mode.updateKind,
      RowKind.newAttribute())
  }
}

/**
 * Spreads the rows of hot join keys, or of all join keys, by a salt. The salt is an additional
 * part of the join key.
 *
 * {{{
 *   Join bids.auction = auctions.id      ChangelogJoin [auction, salt of the row] [id, salt]
 *   :- bids, skewed for 1007      =>     :- bids
 *   +- auctions                          +- Generate salt: 0 to 15 if id is 1007, else 0
 *                                           +- auctions
 * }}}
 *
 * The salt of a skewed row is a hash of the row's key, so a retraction gets an equal salt. Each
 * skewed row meets one copy of each matching row of the opposite side. The result, its keys and
 * the padding rows therefore do not change. An update of an opposite row changes all copies.
 */
private[rewrite] class SpreadRows(node: AnnotatedPlan, equi: EquiJoin, skew: SkewedSide) {
  private val copied =
    AttributeReference(Salt.Name, IntegerType, nullable = false, Salt.metadata)()

  /** Returns the salt of one side, the last part of the join key. */
  def salt(isLeft: Boolean): Expression = if (isLeft == skew.isLeft) saltOfRow else copied

  /** Returns the inputs, with the opposite side copied for each salt. */
  def inputs(rewritten: Seq[LogicalPlan]): Seq[LogicalPlan] = {
    val other = if (skew.isLeft) 1 else 0
    rewritten.updated(other, copies(rewritten(other)))
  }

  private def copies(input: LogicalPlan): LogicalPlan = {
    val all = Salt.array(skew.salts)
    val one = Salt.array(skew.salts.take(1))
    val wanted = isSkewed(!skew.isLeft).fold[Expression](all)(If(_, all, one))
    Generate(Explode(wanted), Nil, outer = false, None, Seq(copied), input)
  }

  private def saltOfRow: Expression = {
    val columns = hashed(node.children(if (skew.isLeft) 0 else 1))
    val first = Literal(skew.salts.head)
    val spread =
      if (columns.isEmpty) first
      else if (skew.isHinted) Salt.number(columns, skew.ways)
      else Salt(columns, skew.salts)
    isSkewed(skew.isLeft).fold(spread)(If(_, spread, first))
  }

  /**
   * Returns the columns for the hash of a row. First choice is the key by which rows are
   * replaced: a new row must hash like the old row.
   */
  private def hashed(side: AnnotatedPlan): Seq[Attribute] = {
    val holding = side.upsertKeys.filter(equi.references(skew.isLeft).subsetOf(_))
    val key = side.requiredKey.orElse(holding.headOption).orElse(side.upsertKeys.headOption)
    Salt.columns(side.plan.output, key)
  }

  /** Returns the condition for rows with skewed values, unless every row is spread. */
  private def isSkewed(isLeft: Boolean): Option[Expression] = {
    val key = equi.key(isLeft).map(EquiJoin.plain)
    skew.values
      .map { value =>
        val parts = ordinals.zip(value).map { case (ordinal, part) =>
          EqualNullSafe(key(ordinal), part): Expression
        }
        parts.reduce(And(_, _))
      }
      .reduceOption(Or(_, _))
  }

  /** The positions of the hint's columns in the join key. */
  private lazy val ordinals: Seq[Int] = skew.columns.map { column =>
    equi
      .key(skew.isLeft)
      .indexWhere(EquiJoin.columnOf(_).exists(_.exprId == column.exprId))
  }
}

private[rewrite] object SpreadRows {

  /** Returns the spreading of a join's rows, if the join has any. */
  def of(node: AnnotatedPlan, state: JoinState): Option[SpreadRows] =
    SkewedSide.of(state.join).map(new SpreadRows(node, state.equi, _))
}

/**
 * Replaces a `TemporalJoin` by the operator for versions in time order.
 *
 * {{{
 *   TemporalJoin Inner [o.cur] [r.cur]      =>   ChangelogTemporalJoin [o.cur] [r.cur]
 *   :- orders  [I,UB,UA,D]                       :- Project [*, o.at + 1 AS time]
 *   +- rates   [I]                               :  +- orders  [I,UB,UA,D]
 *                                                +- rates   [I]
 * }}}
 */
private[optimizer] object TemporalJoinRewrite extends RewriteOf[TemporalJoin] {

  override protected def rewrite(join: TemporalJoin, context: RewriteContext): LogicalPlan = {
    val (left, leftTime) = withTime(context.inputs(0), join.leftTime)
    val (right, rightTime) = withTime(context.inputs(1), join.rightTime)
    def side(number: Int, key: Seq[Expression], time: Attribute, input: LogicalPlan) =
      TemporalSide(key.map(NodeRewrite.sameBytes), time, RowKind.find(input.output))
    val matching = TemporalMatching(
      join.joinType,
      join.matchesNull,
      join.isForward,
      join.allowsEqual,
      join.ties,
      join.condition,
      isTimed = TemporalJoinInference.eventTimes(join).isDefined,
      appends = context.node.mode.isInsertOnly)
    val rewritten = ChangelogTemporalJoin(
      side(0, join.leftKey, leftTime, left),
      side(1, join.rightKey, rightTime, right),
      matching,
      RowKind.newAttribute(),
      context.ids.next(),
      left,
      right)
    context.select(rewritten)
  }

  /** Returns a side with its time as a column. */
  private def withTime(side: LogicalPlan, time: Expression): (LogicalPlan, Attribute) =
    time match {
      case column: Attribute => (side, side.output.find(_.exprId == column.exprId).get)
      case computed =>
        val alias = Alias(computed, "time")()
        (Project(side.output :+ alias, side), alias.toAttribute)
    }
}
