// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}

import org.apache.spark.sql.changelog.inference.keys.UpsertKeys
import org.apache.spark.sql.changelog.inference.nodes._
import org.apache.spark.sql.changelog.plans.{FromChangelog, Rank, ToChangelog}
import org.apache.spark.sql.changelog.{ChangelogMode, OutputMode}

/**
 * Infers the row kinds emitted and required by every node of a query, with the reasons.
 *
 * The inference walks the optimized plan below `to_changelog` twice. On the way up, each node
 * states the effects on its emitted rows (insert, update, delete) and the columns that identify a
 * row. On the way down, each consumer asks for before images or replaces rows by key. The rules
 * are in the package [[inference]], one object per kind of node. This object only picks the rule
 * and walks.
 *
 * {{{
 *   ToChangelog upsert (cnt)                    [I,UA,D]
 *   +- ChangelogAggregate [cnt] [count(1)]      [I,UA,D]     the reader replaces rows by key
 *      +- ChangelogAggregate [word] [count(1)]  [I,UB,UA]    the aggregate above needs before images
 *         +- ChangelogSource                    [I]
 * }}}
 *
 * The plan stays unchanged, except for work divided among tasks ([[SpreadSingleTasks]]). The
 * result is a tree beside the plan, with the same `children`.
 */
object InferChangelogMode {

  private val rules: Seq[NodeInference] = Seq(
    StaticInference,
    SourceInference,
    StatelessInference,
    FilterInference,
    TemporalFilterInference,
    RowTtlInference,
    UnionInference,
    AggregateInference,
    JoinInference,
    TemporalJoinInference,
    LookupJoinInference,
    RankInference,
    RecomputeInference,
    RecursionInference,
    HistoryInference,
    EmitInference,
    StockStatefulInference,
    RootInference)

  /**
   * Annotates a query. Fails if a node does not support the changes of its input, or if the given
   * key is not an upsert key.
   *
   * @param salts
   *   the salts for the work of single tasks; empty without salts
   */
  def apply(root: ToChangelog, salts: Seq[Int] = Nil): AnnotatedPlan = {
    val query = new BottomUp(root.mode, new SpreadSingleTasks(salts))(root.child)
    val held = Seq(EmitInference.onClose(root, _), EmitInference.every(root, _))
      .foldLeft(query) { (input, hold) =>
        hold(input).fold(input)(infer(_, Seq(input), root.mode))
      }
    val inferred = infer(over(root, Seq(held)), Seq(held), root.mode)
    if (hasChanges(root)) check(inferred)
    val annotated = down(inferred, RootInference.readerDemand(root, inferred.child))
    if (hasChanges(root)) CheckDeterminism.ofKept(annotated)
    annotated
  }

  private class BottomUp(mode: OutputMode, spreading: SpreadSingleTasks) {

    def apply(plan: LogicalPlan): InferredNode = plan match {
      case source: FromChangelog => infer(source, source.children.map(belowSource), mode)
      case _ =>
        val inputs = plan.children.map(apply)
        over(plan, inputs) match {
          // In append mode a rank over changing rows fails, and the error names the rank of the
          // query.
          case rank: Rank if mode != OutputMode.Append =>
            val below = spreading.below(rank, inputs.head).map(infer(_, inputs, mode))
            val ranked = below.toSeq ++ inputs.filter(_ => below.isEmpty)
            infer(over(rank, ranked), ranked, mode)
          case join: Join =>
            spreading.note(join, inputs)
            infer(join, inputs, mode)
          case other => infer(other, inputs, mode)
        }
    }
  }

  /** Returns `plan` over the inferred plans of its inputs. */
  private def over(plan: LogicalPlan, inputs: Seq[InferredNode]): LogicalPlan =
    plan.withNewChildren(inputs.map(_.plan))

  private def infer(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): InferredNode = {
    val isStatic = StaticInference.isStatic(plan, inputs.forall(_.isStatic))
    val rule = if (isStatic) StaticInference else pickRule(plan)
    CheckSubqueries(plan)
    InferredNode(
      plan,
      rule,
      rule.kinds(plan, inputs, mode),
      UpsertKeys(plan, inputs.map(_.upsertKeys)),
      isStatic,
      inputs)
  }

  /** Whether the query has a stream. Subplans over static tables are recomputed in each batch. */
  private def hasChanges(root: LogicalPlan): Boolean = root.exists {
    case source: FromChangelog => source.streaming
    case leaf => leaf.children.isEmpty && leaf.isStreaming
  }

  private def check(node: InferredNode): Unit = node.plan match {
    case _: FromChangelog =>
    case _ =>
      node.children.foreach(check)
      CheckDeterminism(node)
  }

  /** The plan below `from_changelog` is an ordinary stream of rows, planned and run by Spark. */
  private def belowSource(plan: LogicalPlan): InferredNode = {
    val inputs = plan.children.map(belowSource)
    InferredNode(
      plan,
      SourceInference,
      SourceInference.kinds(plan, inputs, OutputMode.Append),
      upsertKeys = Nil,
      isStatic = false,
      inputs)
  }

  private def down(node: InferredNode, wanted: Demand): AnnotatedPlan = {
    val demand = wanted.on(node.kinds)
    val decision = node.rule.decide(node, demand)
    assert(decision.inputs.size == node.children.size, node.name)
    AnnotatedPlan(
      node.plan,
      ChangelogMode(node.kinds, demand.kind),
      demand.kind,
      demand.key,
      node.upsertKeys,
      decision.strategy,
      decision.state,
      demand.text.toSeq ++ decision.reasons,
      node.children.zip(decision.inputs).map { case (input, asked) => down(input, asked) })
  }

  private def pickRule(plan: LogicalPlan): NodeInference =
    rules.find(_.appliesTo(plan)).getOrElse(throw InferenceErrors.nodeNotSupported(plan))
}
