// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.ModifyKindSet
import org.apache.spark.sql.changelog.UpdateKind.OnlyUpdateAfter
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.inference.DescribeNode
import org.apache.spark.sql.changelog.inference.keys.ProjectKeys
import org.apache.spark.sql.changelog.plans.{
  ChangelogStatic, CommitHistory, FromChangelog, KeyedVersions, RowTtl, TemporalFilter,
  ToChangelog
}

/**
 * Infers the changes of stateless nodes, from each row to rows of an equal kind. Examples are
 * projections, generators, grouping sets, watermarks and exchanges. A sort has no meaning for a
 * changelog and is dropped.
 *
 * A stateless node passes the consumer's demand to the input, as far as the key is preserved. An
 * exchange preserves every key. In some systems an exchange loses a key, because versions of a
 * row overtake each other. Here the changes of a batch are applied as a whole, so versions cannot
 * overtake each other.
 */
object StatelessInference extends NodeInference[LogicalPlan] {
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
    case _: BaseEvalPythonUDTF | _: KeyedVersions => true
    case _ => false
  }

  override def forwards: Boolean = true

  /** A generator may emit different numbers of rows for the old and the new version. */
  override def pairsUpdates(node: InferredNode): Boolean = node.plan match {
    case _: Generate | _: BaseEvalPythonUDTF => false
    case _ => super.pairsUpdates(node)
  }

  override def kinds(plan: LogicalPlan, inputs: NodeInputs): ModifyKindSet = {
    plan match {
      case versions: KeyedVersions => checkVersions(versions.key.init, inputs.head)
      case _ =>
    }
    inputs.head.kinds
  }

  /** Rejects a history over rows of which each subject has one at most. */
  private def checkVersions(subject: Seq[Attribute], validity: InferredNode): Unit =
    validity.plan match {
      case _: Project | _: Filter => checkVersions(subject, validity.child)
      case _: Window if validity.child.upsertKeys.exists(_.subsetOf(AttributeSet(subject))) =>
        throw analysis("CHANGELOG_HISTORY_OF_CURRENT_ROWS", "key" -> DescribeNode.key(subject))
      case _ =>
    }

  override def objection(node: InferredNode, key: AttributeSet): Option[String] =
    (node.plan, ProjectKeys.inputKey(node.plan, key)) match {
      case (_: CollectMetrics, _) => Some(s"${node.name} must subtract old rows from its metrics")
      case (_, Some(inputKey)) => node.child.objection(inputKey)
      case (_, None) =>
        Some(s"${node.name} does not return the key ${DescribeNode.key(key)} unchanged")
    }

  override def decide(node: InferredNode, demand: Demand): Decision =
    Decision(
      Seq(demand.copy(key = demand.key.flatMap(ProjectKeys.inputKey(node.plan, _)))),
      reasons = node.plan match {
        case _: Sort => Seq("dropped: a changelog has no order")
        case _: CollectMetrics if node.kinds.changesRows =>
          Seq("measures the difference that each batch makes to counts and sums")
        case _ => Nil
      })
}

/**
 * Infers the changes of filters.
 *
 * A new version of a row may fail a condition met by the old version. A consumer of new versions
 * alone would not notice the removal. The before image is therefore required, unless the
 * condition reads only the key. Both versions then give equal answers.
 */
object FilterInference extends NodeInference[LogicalPlan] {
  override def appliesTo(plan: LogicalPlan): Boolean =
    plan.isInstanceOf[Filter] || plan.isInstanceOf[TypedFilter]

  override def forwards: Boolean = true

  override def pairsUpdates(node: InferredNode): Boolean = false

  override def kinds(plan: LogicalPlan, inputs: NodeInputs): ModifyKindSet = inputs.head.kinds

  override def objection(node: InferredNode, key: AttributeSet): Option[String] =
    node.plan match {
      case filter: Filter if filter.condition.references.subsetOf(key) =>
        node.child.objection(key)
      case _ => Some(s"${node.name} needs the old row to retract rows that no longer pass")
    }

  override def decide(node: InferredNode, demand: Demand): Decision = Decision(Seq(demand))
}

/**
 * Infers the changes of `UNION ALL`: the changes of all inputs.
 *
 * Rows of two inputs may be equal in any columns. A union therefore has no upsert key, and no
 * consumer can omit before images. All inputs with updates receive the demand of the consumer.
 */
object UnionInference extends NodeInference[Union] {
  override def forwards: Boolean = true

  override def kinds(union: Union, inputs: NodeInputs): ModifyKindSet =
    inputs.nodes.map(_.kinds).reduce(_ union _)

  override def objection(node: InferredNode, key: AttributeSet): Option[String] =
    Some(s"${DescribeNode.node(node.plan)} has no key")

  override def decide(node: InferredNode, demand: Demand): Decision =
    Decision(node.children.map(_ => demand))
}

/**
 * Infers the changes of static plans, without a stream below. Spark computes a static plan as in
 * a batch query. Beside a changelog, the static rows are inserted once.
 */
object StaticInference extends NodeInference[LogicalPlan] {

  /** Whether `plan` is static. Changes of a batch source form a static table. */
  def isStatic(plan: LogicalPlan): Boolean = isStatic(plan, plan.children.forall(isStatic))

  private[inference] def isStatic(plan: LogicalPlan, inputsAreStatic: Boolean): Boolean =
    plan match {
      case _: ToChangelog | _: ChangelogStatic => false
      // Rows enter and leave over time, even over a static input.
      case _: TemporalFilter | _: RowTtl | _: CommitHistory => false
      case source: FromChangelog => !source.streaming
      case leaf: LeafNode => !leaf.isStreaming
      case _ => inputsAreStatic
    }

  override def appliesTo(plan: LogicalPlan): Boolean =
    plan.isInstanceOf[ChangelogStatic] || isStatic(plan)

  override def kinds(plan: LogicalPlan, inputs: NodeInputs): ModifyKindSet =
    ModifyKindSet.InsertOnly

  override def decide(node: InferredNode, demand: Demand): Decision = {
    val strategy = if (node.isStatic) "static" else "insert in the first batch"
    Decision(node.children.map(_ => Demand.nothing), strategy = Some(strategy))
  }
}

/**
 * StaticSide: a join of a changelog with a static input, done like Spark's join of a stream with
 * a table. Each batch reads the static side again and joins each change with the current rows.
 * The join stores no state.
 *
 * A join without state can only look up. Some join types emit static rows without a change:
 * padding rows, or rows without a match. These joins need state, and treat the static side as a
 * changelog with inserts in the first batch.
 */
private[changelog] object StaticSide {

  /** Returns the side that changes. */
  private[inference] def other(left: InferredNode, right: InferredNode): InferredNode =
    if (left.isStatic) right else left

  /** Whether one side is static, and the join emits no static row without a changing row. */
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
   * Returns an objection to omitting before images, as for a filter. If the new version of a row
   * matches different static rows, the old pairs remain. Two cases are safe: the join condition
   * reads only the key, or every changing row is emitted exactly once.
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
        else Some(s"${node.name} needs the old row to retract its pairs")
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
      reasons = Seq("each batch reads the static side again; its changes retract nothing"))
  }

  private def changing(node: InferredNode): InferredNode =
    other(node.children(0), node.children(1))

  /** Returns the key of the changing side within a key of the join. */
  private def changingKey(node: InferredNode, key: AttributeSet): Option[AttributeSet] =
    changing(node).upsertKeys.find(_ == key.intersect(changing(node).plan.outputSet))
}
