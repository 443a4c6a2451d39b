// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.types.TimestampType

import org.apache.spark.sql.changelog.ModifyKindSet
import org.apache.spark.sql.changelog.UpdateKind.OnlyUpdateAfter
import org.apache.spark.sql.changelog.inference.times.EventTime
import org.apache.spark.sql.changelog.inference.{DescribeNode, EquiJoin, InferenceErrors}
import org.apache.spark.sql.changelog.plans.{LookupJoin, StateTable, TemporalJoin}

/**
 * Infers the changes of a join of two changelogs, or of a changelog with a static input.
 *
 * An inner join passes the kinds of its inputs to the pairs. A semi join also deletes left rows
 * when right rows disappear. The remaining joins retract a padding row, a left row or a flag at
 * the first match. After the last match disappears, the join emits the row again. Retractions
 * occur even over insert-only inputs.
 *
 * A side may omit before images only if an upsert key of the side contains the join key. Both
 * versions of a row then have equal join keys, and the new row replaces the stored old row.
 * Otherwise an update may move a row to another join key, and the old join key would miss the
 * removal. The reverse, a join key that contains the side's key, is not enough: the remaining
 * columns of the join key may change.
 */
object JoinInference extends NodeInference[Join] {
  override def appliesTo(plan: LogicalPlan): Boolean = plan match {
    case join: Join =>
      join.joinType match {
        case _: InnerLike | LeftOuter | RightOuter | FullOuter => true
        case LeftSemi | LeftAnti | LeftSingle | _: ExistenceJoin => true
        case _ => false
      }
    case _ => false
  }

  /** A row whose new version has fewer matches emits before images without after images. */
  override def pairsUpdates(node: InferredNode): Boolean = false

  override def kinds(join: Join, inputs: NodeInputs): ModifyKindSet = {
    val (left, right) = (inputs.nodes(0), inputs.nodes(1))
    if (inputs.nodes.exists(_.isStatic)) {
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
          case _ if isCounted(node, equi, isLeft) => Demand.bothImagesFor(join)
          case (OnlyUpdateAfter, Some(key)) if side.kinds.update =>
            val by = sideKey(side, equi.references(isLeft), key).get
            Demand.newRowsBy(by, s"${node.name} replaces rows by key ${DescribeNode.key(by)}")
          case _ => Demand.bothImagesFor(join)
        }
      }
      val Seq(left, right) = node.children.zip(asked).map { case (side, demand) =>
        JoinState.input(side, demand)
      }
      JoinState(join, equi, left, right).decision(asked)
    }
  }

  /**
   * Whether rows are only counted. Counted rows need before images, and can be retracted
   * anywhere.
   */
  private def isCounted(node: InferredNode, equi: EquiJoin, isLeft: Boolean): Boolean =
    !isLeft && JoinState.countsRight(node.plan.asInstanceOf[Join], equi)

  private def sides(node: InferredNode): Seq[(InferredNode, Boolean)] =
    Seq(node.children(0) -> true, node.children(1) -> false)

  /**
   * Returns the key by which the join replaces rows of `side`. The key contains the join key and
   * every column of the side in the join's own `key`. An update must not change these columns.
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

  /**
   * Returns an objection if pairs may stop matching the further condition. The join deletes such
   * a pair, if deletes are among the kinds.
   */
  private def conditionObjection(node: InferredNode, equi: EquiJoin): Option[String] = {
    val read = AttributeSet(equi.rest)
    val mayFail = node.children.exists { side =>
      val own = read.intersect(side.plan.outputSet)
      side.kinds.update && !side.upsertKeys.exists(own.subsetOf(_))
    }
    if (mayFail && !node.kinds.delete) {
      Some(s"${node.name} needs the old row to retract pairs that no longer match")
    } else {
      None
    }
  }
}

/**
 * Infers the changes of a lookup join: each left row is joined once, with the right rows present
 * after its batch.
 *
 * The emitted rows never change and depend on the arrival of rows. Only here does the result
 * differ from the batch query. The operator does not remember past matches, so it cannot retract
 * the pairs of a deleted left row. The left input must therefore be insert-only.
 */
object LookupJoinInference extends NodeInference[LookupJoin] {
  override def kinds(join: LookupJoin, inputs: NodeInputs): ModifyKindSet = {
    if (inputs.head.kinds.changesRows) {
      throw InferenceErrors.consumerCannotTakeChanges(
        join,
        inputs.head,
        "For rows that follow the changes of the table, join with the table without lookup.")
    }
    ModifyKindSet.InsertOnly
  }

  override def decide(node: InferredNode, demand: Demand): Decision = {
    val join = node.plan.asInstanceOf[LookupJoin].toJoin
    val asked = Demand.bothImagesFor(node.plan)
    val Seq(left, right) =
      node.children.zip(Seq(Demand.nothing, asked)).map { case (side, demand) =>
        JoinState.input(side, demand)
      }
    val decision = JoinState(join, EquiJoin(join), left, right, isLookup = true)
      .decision(Seq(Demand.nothing, asked))
    decision.copy(reasons = decision.reasons :+
      "each left row is joined once, with the right rows after its batch; the batch query may " +
      "return another result")
  }
}

/**
 * Infers the changes of a temporal join: each left row with the version valid at its time.
 *
 * A late version, or a deleted one, changes the left rows of its time. All row kinds are
 * therefore possible, even if both inputs are insert-only. In append mode, each left row is
 * emitted after the watermark passes the row, because no version of its time can arrive later.
 * Append mode requires event times on both sides.
 */
object TemporalJoinInference extends NodeInference[TemporalJoin] {
  override def pairsUpdates(node: InferredNode): Boolean = false

  override def kinds(join: TemporalJoin, inputs: NodeInputs): ModifyKindSet = {
    val canWait = inputs.nodes.forall(_.kinds.isInsertOnly) && eventTimes(join).isDefined
    if (inputs.appends && canWait) ModifyKindSet.InsertOnly else ModifyKindSet.All
  }

  override def objection(node: InferredNode, key: AttributeSet): Option[String] =
    Some(s"${node.name} emits the old row if a version changes")

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
      if (node.kinds.isInsertOnly) "look up the version once it is final"
      else "look up the version by time"
    val reasons =
      if (node.kinds.isInsertOnly) {
        val column = bounds.map(_.name).distinct.mkString(" and ")
        Seq(s"a row is emitted when the watermark on $column has passed it")
      } else Nil
    Decision(
      Seq.fill(2)(Demand.bothImagesFor(join)),
      Some(strategy),
      Seq(
        table("left rows", join.leftKey, join.leftTime, 0),
        table("versions", join.rightKey, join.rightTime, 1)),
      reasons ++
        (if (join.leftKey.isEmpty)
           Seq("no equality between the sides: all rows meet in one partition")
         else Nil))
  }

  /**
   * Returns the event times of both sides, if a watermark determines which versions are final.
   */
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
