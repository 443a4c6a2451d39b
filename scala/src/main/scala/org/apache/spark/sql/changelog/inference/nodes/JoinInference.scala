// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.types.TimestampType

import org.apache.spark.sql.changelog.UpdateKind.OnlyUpdateAfter
import org.apache.spark.sql.changelog.inference.times.EventTime
import org.apache.spark.sql.changelog.inference.{DescribeNode, EquiJoin, InferenceErrors}
import org.apache.spark.sql.changelog.plans.{LookupJoin, StateTable, TemporalJoin}
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}

/**
 * Joins of two changelogs, and of a changelog with something static.
 *
 * An inner join does to its pairs what its inputs do to their rows. A semi join also loses left
 * rows when right rows go. Every other join takes back a padded row (or a left row, or a flag) when
 * the first match comes, and brings it back when the last one goes, even if both inputs only insert.
 *
 * A side may leave old rows out only if a key of it holds the join key: then both versions of a row
 * meet in the same place, where the stored old row is replaced. Otherwise an update may move a row
 * to another join key, and the place it leaves would never hear of it. (The other way round, a join
 * key that holds the side's key, is not enough: the rest of the join key may change.)
 */
object JoinInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean = plan match {
    case join: Join =>
      join.joinType match {
        case _: InnerLike | LeftOuter | RightOuter | FullOuter => true
        case LeftSemi | LeftAnti | LeftSingle | _: ExistenceJoin => true
        case _ => false
      }
    case _ => false
  }

  /** A row whose new version has fewer partners leaves lone old rows behind. */
  override def pairsUpdates(node: InferredNode): Boolean = false

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = {
    val join = plan.asInstanceOf[Join]
    val (left, right) = (inputs(0), inputs(1))
    if (inputs.exists(_.isStatic)) {
      StaticSide.other(left, right).kinds
    } else {
      join.joinType match {
        case _: InnerLike => left.kinds.union(right.kinds)
        case LeftSemi =>
          left.kinds.copy(delete = left.kinds.delete || right.kinds.changesRows)
        case _ => ModifyKindSet.All
      }
    }
  }

  override def objection(node: InferredNode, key: AttributeSet): Option[String] = {
    val join = node.plan.asInstanceOf[Join]
    if (node.children.exists(_.isStatic)) {
      StaticSide.objection(node, join, key)
    } else {
      val equi = EquiJoin(join)
      sides(node)
        .filterNot { case (_, isLeft) => isCounted(node, equi, isLeft) }
        .flatMap { case (side, isLeft) =>
          sideObjection(node, side, equi.references(isLeft), key)
        }
        .headOption
        .orElse(conditionObjection(node, equi))
    }
  }

  override def decide(node: InferredNode, demand: Demand): Decision = {
    val join = node.plan.asInstanceOf[Join]
    if (node.children.exists(_.isStatic)) {
      StaticSide.decide(node, demand)
    } else {
      val equi = EquiJoin(join)
      val asked = sides(node).map { case (side, isLeft) =>
        (demand.kind, demand.key) match {
          case _ if isCounted(node, equi, isLeft) => Demand.takesBack(join)
          case (OnlyUpdateAfter, Some(key)) if side.kinds.update =>
            val by = sideKey(side, equi.references(isLeft), key).get
            Demand.newRowsBy(by, s"${node.name} replaces rows by key ${DescribeNode.key(by)}")
          case _ => Demand.takesBack(join)
        }
      }
      val Seq(left, right) = node.children.zip(asked).map { case (side, demand) =>
        JoinState.input(side, demand)
      }
      JoinState(join, equi, left, right).decision(asked)
    }
  }

  /** Rows that are only counted must be taken back, and can be wherever they are. */
  private def isCounted(node: InferredNode, equi: EquiJoin, isLeft: Boolean): Boolean =
    !isLeft && JoinState.countsRight(node.plan.asInstanceOf[Join], equi)

  private def sides(node: InferredNode): Seq[(InferredNode, Boolean)] =
    Seq(node.children(0) -> true, node.children(1) -> false)

  /**
   * The key by which the join would replace rows of `side`: one that holds the join key, and every
   * column of the side in the join's own `key`, which would otherwise change in an update.
   */
  private def sideKey(
      side: InferredNode,
      joinKey: AttributeSet,
      key: AttributeSet): Option[AttributeSet] =
    side.upsertKeys.find { sideKey =>
      joinKey.subsetOf(sideKey) && key.intersect(side.plan.outputSet).subsetOf(sideKey) &&
      side.objection(sideKey).isEmpty
    }

  private def sideObjection(
      node: InferredNode,
      side: InferredNode,
      joinKey: AttributeSet,
      key: AttributeSet): Option[String] =
    if (!side.kinds.update || sideKey(side, joinKey, key).isDefined) {
      None
    } else {
      side.upsertKeys
        .filter(joinKey.subsetOf(_))
        .flatMap(side.objection(_))
        .headOption
        .orElse(Some(s"an update can move a row of ${node.name} to another join key " +
          DescribeNode.key(joinKey)))
    }

  /** A pair that stops meeting a further condition is deleted, where deletes are among the kinds. */
  private def conditionObjection(node: InferredNode, equi: EquiJoin): Option[String] = {
    val read = AttributeSet(equi.rest)
    val mayFail = node.children.exists { side =>
      val own = read.intersect(side.plan.outputSet)
      side.kinds.update && !side.upsertKeys.exists(own.subsetOf(_))
    }
    if (mayFail && !node.kinds.delete) {
      Some(s"${node.name} must see the old row to know that its condition no longer holds")
    } else {
      None
    }
  }
}

/**
 * Joins of each left row, once, with the right rows that are there after its batch.
 *
 * What comes out never changes, and depends on when rows come: here alone the result is not that of
 * the query over all rows. A left row that is taken back would have to take back what it was joined
 * with, of which there is no memory, so left rows must only come.
 */
object LookupJoinInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean = plan.isInstanceOf[LookupJoin]

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = {
    if (inputs.head.kinds.changesRows) {
      throw InferenceErrors.consumerCannotTakeChanges(
        plan,
        inputs.head,
        "Join with the table itself, without lookup, for rows that follow its changes.")
    }
    ModifyKindSet.InsertOnly
  }

  override def objection(node: InferredNode, key: AttributeSet): Option[String] = None

  override def decide(node: InferredNode, demand: Demand): Decision = {
    val join = node.plan.asInstanceOf[LookupJoin].toJoin
    val asked = Demand.takesBack(node.plan)
    val Seq(left, right) =
      node.children.zip(Seq(Demand.nothing, asked)).map { case (side, demand) =>
        JoinState.input(side, demand)
      }
    val decision = JoinState(join, EquiJoin(join), left, right, isLookup = true)
      .decision(Seq(Demand.nothing, asked))
    decision.copy(reasons = decision.reasons :+
      "each left row is joined once, with the right rows after its batch; the query's result over " +
      "all rows may be another")
  }
}

/**
 * Joins of each left row with the version of its time.
 *
 * A version that comes late or goes changes the left rows of its time, so anything can happen to
 * the result even if both inputs only insert. A reader that takes new rows only gets each left row
 * when the watermark has passed it, when no version of its time can come any more; that needs event
 * times on both sides.
 */
object TemporalJoinInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean = plan.isInstanceOf[TemporalJoin]

  override def pairsUpdates(node: InferredNode): Boolean = false

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = {
    val join = plan.asInstanceOf[TemporalJoin]
    val canWait = inputs.forall(_.kinds.isInsertOnly) && eventTimes(join).isDefined
    if (mode == OutputMode.Append && canWait) ModifyKindSet.InsertOnly else ModifyKindSet.All
  }

  override def objection(node: InferredNode, key: AttributeSet): Option[String] =
    Some(s"${node.name} emits the old row where a version changes")

  override def decide(node: InferredNode, demand: Demand): Decision = {
    val join = node.plan.asInstanceOf[TemporalJoin]
    val bounds = eventTimes(join).toSeq.flatMap { case (left, right) => Seq(left, right) }
    def table(name: String, key: Seq[Expression], time: Expression, index: Int) = StateTable(
      name,
      (key :+ time).map(DescribeNode.expression) :+ "row",
      "count",
      bounds
        .lift(index)
        .map(column => s"a watermark on ${column.name}")
        .getOrElse(StateTable.unbounded))
    val strategy =
      if (node.kinds.isInsertOnly) "look up the version once it is certain"
      else "look up the version by time"
    val reasons =
      if (node.kinds.isInsertOnly) {
        val column = bounds.map(_.name).distinct.mkString(" and ")
        Seq(s"a row is emitted when the watermark on $column has passed it")
      } else Nil
    Decision(
      Seq.fill(2)(Demand.takesBack(join)),
      Some(strategy),
      Seq(
        table("left rows", join.leftKey, join.leftTime, 0),
        table("versions", join.rightKey, join.rightTime, 1)),
      reasons ++
        (if (join.leftKey.isEmpty)
           Seq("no equality between the sides: all rows meet in one partition")
         else Nil))
  }

  /** The event times of both sides, where a watermark tells which versions are certain. */
  def eventTimes(join: TemporalJoin): Option[(Attribute, Attribute)] =
    if (join.isForward) None
    else {
      for {
        left <- eventTime(join.left, join.leftTime)
        right <- eventTime(join.right, join.rightTime)
      } yield (left, right)
    }

  private def eventTime(side: LogicalPlan, time: Expression): Option[Attribute] =
    side.output.find { column =>
      column.semanticEquals(time) && column.dataType == TimestampType &&
      EventTime.columnOf(column).isDefined
    }
}
