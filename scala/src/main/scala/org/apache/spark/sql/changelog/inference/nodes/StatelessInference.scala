// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.UpdateKind.OnlyUpdateAfter
import org.apache.spark.sql.changelog.inference.DescribeNode
import org.apache.spark.sql.changelog.inference.keys.ProjectKeys
import org.apache.spark.sql.changelog.plans.{
  ChangelogStatic,
  FromChangelog,
  RowTtl,
  TemporalFilter,
  ToChangelog
}
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}

/**
 * Nodes that turn each row into rows of the same kind, looking at nothing else: projections,
 * generators, grouping sets' copies, watermarks, exchanges, and a sort, which means nothing for a
 * changelog and is dropped.
 *
 * They ask of their input what their consumer asks of them, by the same key, as far as they keep
 * it. An exchange keeps every key: where versions of one row overtake each other on the way, a key
 * is lost by it, but here a batch's changes are applied as a whole, so there is no overtaking.
 */
object StatelessInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean = plan match {
    case generate: Generate => !StockStatefulInference.appliesTo(generate)
    case _: Project | _: Expand | _: EventTimeWatermark => true
    case _: UpdateEventTimeWatermarkColumn | _: RepartitionOperation | _: RebalancePartitions =>
      true
    case _: Sort | _: Sample | _: CollectMetrics | _: SubqueryAlias | _: View | _: Subquery |
        _: ResolvedHint =>
      true
    case _: DeserializeToObject | _: SerializeFromObject | _: MapElements => true
    case _: AppendColumns | _: AppendColumnsWithObject | _: BaseEvalPython => true
    case _: BaseEvalPythonUDTF => true
    case _ => false
  }

  override def forwards: Boolean = true

  /** A generator may give another number of rows for the new version than for the old. */
  override def pairsUpdates(node: InferredNode): Boolean = node.plan match {
    case _: Generate | _: BaseEvalPythonUDTF => false
    case _ => super.pairsUpdates(node)
  }

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = inputs.head.kinds

  override def objection(node: InferredNode, key: AttributeSet): Option[String] =
    (node.plan, ProjectKeys.inputKey(node.plan, key)) match {
      case (_: CollectMetrics, _) => Some(s"${node.name} takes old rows off what it measures")
      case (_, Some(inputKey)) => node.child.objection(inputKey)
      case (_, None) =>
        Some(s"${node.name} does not pass on the key ${DescribeNode.key(key)} as it is")
    }

  override def decide(node: InferredNode, demand: Demand): Decision =
    Decision(
      Seq(demand.copy(key = demand.key.flatMap(ProjectKeys.inputKey(node.plan, _)))),
      reasons = node.plan match {
        case _: Sort => Seq("dropped: a changelog has no order")
        case _: CollectMetrics if node.kinds.changesRows =>
          Seq("measures by how much each batch moves its counts and sums")
        case _ => Nil
      })
}

/**
 * Filters, each row for itself.
 *
 * A new version of a row may fail a condition that the old one met. A consumer that was sent only
 * new versions would never hear that the row is gone. So the old version is needed, unless the
 * condition reads nothing but the key, for then both versions give the same answer.
 */
object FilterInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean =
    plan.isInstanceOf[Filter] || plan.isInstanceOf[TypedFilter]

  override def forwards: Boolean = true

  override def pairsUpdates(node: InferredNode): Boolean = false

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = inputs.head.kinds

  override def objection(node: InferredNode, key: AttributeSet): Option[String] =
    node.plan match {
      case filter: Filter if filter.condition.references.subsetOf(key) =>
        node.child.objection(key)
      case _ => Some(s"${node.name} must see the old row to know that it leaves")
    }

  override def decide(node: InferredNode, demand: Demand): Decision = Decision(Seq(demand))
}

/**
 * `UNION ALL`: the changes of all inputs.
 *
 * Rows of two inputs may agree on any columns, so that a union has no key and nobody can do
 * without its before images. All inputs that update are asked for the same.
 */
object UnionInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean = plan.isInstanceOf[Union]

  override def forwards: Boolean = true

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = inputs.map(_.kinds).reduce(_ union _)

  override def objection(node: InferredNode, key: AttributeSet): Option[String] =
    Some(s"${DescribeNode.node(node.plan)} has no key")

  override def decide(node: InferredNode, demand: Demand): Decision =
    Decision(node.children.map(_ => demand))
}

/**
 * Anything that never changes while a query runs, as no stream lies below it. Spark computes it as
 * in a batch query; where its rows stand among changing ones they are inserted once.
 */
object StaticInference extends NodeInference {

  /** Whether nothing in `plan` changes: changes of a batch source make a table that does not. */
  def isStatic(plan: LogicalPlan): Boolean = isStatic(plan, plan.children.forall(isStatic))

  private[inference] def isStatic(plan: LogicalPlan, inputsAreStatic: Boolean): Boolean =
    plan match {
      case _: ToChangelog | _: ChangelogStatic => false
      // rows come and go as time passes, also over what never changes
      case _: TemporalFilter | _: RowTtl => false
      case source: FromChangelog => !source.streaming
      case leaf: LeafNode => !leaf.isStreaming
      case _ => inputsAreStatic
    }

  override def appliesTo(plan: LogicalPlan): Boolean =
    plan.isInstanceOf[ChangelogStatic] || isStatic(plan)

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = ModifyKindSet.InsertOnly

  override def objection(node: InferredNode, key: AttributeSet): Option[String] = None

  override def decide(node: InferredNode, demand: Demand): Decision = {
    val strategy = if (node.isStatic) "static" else "insert in the first batch"
    Decision(node.children.map(_ => Demand.nothing), strategy = Some(strategy))
  }
}

/**
 * Joins of a changelog with something static, done as Spark joins a stream with a table: the static
 * side is read again in each batch, each change meets its rows, and no state is kept.
 *
 * Such a join can only look up. A static side whose rows must come out by themselves (padded, or
 * depending on what the changelog lacks) needs a memory of what came before, and is joined like a
 * changelog of rows that all come in the first batch.
 */
private[changelog] object StaticSide {

  /** The side that changes. */
  private[inference] def other(left: InferredNode, right: InferredNode): InferredNode =
    if (left.isStatic) right else left

  /** Whether one side of the join is static, and no row of it comes out without a changing one. */
  def looksUp(join: Join): Boolean = {
    val (left, right) =
      (StaticInference.isStatic(join.left), StaticInference.isStatic(join.right))
    val isKept = join.joinType match {
      case _: InnerLike => false
      case RightOuter => right
      case FullOuter => true
      case _ => left
    }
    (left || right) && !isKept
  }

  /**
   * Like a filter: a row whose new version finds other partners leaves pairs behind, unless what it
   * finds them by is in its key, or every row comes out exactly once anyway.
   */
  private[inference] def objection(
      node: InferredNode,
      join: Join,
      key: AttributeSet): Option[String] = {
    val side = changing(node)
    changingKey(node, key) match {
      case Some(sideKey) =>
        val read = join.condition.map(_.references).getOrElse(AttributeSet.empty)
        val looksUpByKey = read.intersect(side.plan.outputSet).subsetOf(sideKey)
        val comesOutOnce = key == sideKey && (join.joinType match {
          case LeftOuter | RightOuter | LeftSingle | _: ExistenceJoin => true
          case _ => false
        })
        if (looksUpByKey || comesOutOnce) side.objection(sideKey)
        else Some(s"${node.name} must see the old row to know which pairs it had")
      case None => Some(s"${node.name} has other keys than its changing input")
    }
  }

  private[inference] def decide(node: InferredNode, demand: Demand): Decision = {
    val asked = demand.kind match {
      case OnlyUpdateAfter => demand.copy(key = demand.key.flatMap(changingKey(node, _)))
      case _ => demand
    }
    Decision(
      node.children.map(side => if (side.isStatic) Demand.nothing else asked),
      strategy = Some("look up the static side"),
      reasons = Seq("the static side is read again in each batch; its changes take nothing back"))
  }

  private def changing(node: InferredNode): InferredNode =
    other(node.children(0), node.children(1))

  /** The key of the changing side within a key of the join. */
  private def changingKey(node: InferredNode, key: AttributeSet): Option[AttributeSet] =
    changing(node).upsertKeys.find(_ == key.intersect(changing(node).plan.outputSet))
}
