// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}

import org.apache.spark.sql.changelog.inference.keys.UpsertKeys
import org.apache.spark.sql.changelog.inference.nodes._
import org.apache.spark.sql.changelog.plans.{
  ExplainNode, FromChangelog, Rank, StateTable, ToChangelog
}
import org.apache.spark.sql.changelog.{ChangelogMode, OutputMode, UpdateKind}

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

  private val rules: Seq[NodeInference[_]] = Seq(
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
      rule.kindsOf(plan, NodeInputs(inputs, mode)),
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
      SourceInference.kinds(plan, NodeInputs(inputs, OutputMode.Append)),
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

  private def pickRule(plan: LogicalPlan): NodeInference[_] =
    rules.find(_.appliesTo(plan)).getOrElse(throw InferenceErrors.nodeNotSupported(plan))
}

/**
 * A reading of a shared part. A shared part is computed once.
 *
 * @param number
 *   number of the shared part in the query, from 1
 * @param readers
 *   number of readings of the part
 * @param computes
 *   whether this reading computes the part
 */
final case class PartReading(number: Int, readers: Int, computes: Boolean) {
  override def toString: String =
    if (computes) s"part $number: computed once for its $readers readers"
    else s"part $number: read again, not computed again"
}

/**
 * The inferred properties of one node of a query below `to_changelog`.
 *
 * @param plan
 *   the node, unchanged
 * @param mode
 *   the row kinds sent to the consumer
 * @param required
 *   the form of updates requested by the consumer
 * @param requiredKey
 *   the key by which the consumer replaces rows, for updates without before images. Rows with an
 *   equal key are the same row of the consumer.
 * @param upsertKeys
 *   every known set of output columns that identifies a row; the empty set means at most one row
 * @param strategy
 *   the chosen execution strategy, if there is a choice
 * @param state
 *   the tables stored by the node
 * @param reasons
 *   sentences with the reasons for the mode and the strategy
 * @param shared
 *   the reading of a shared part, if the node is one
 */
final case class AnnotatedPlan(
    plan: LogicalPlan,
    mode: ChangelogMode,
    required: UpdateKind,
    requiredKey: Option[AttributeSet],
    upsertKeys: Seq[AttributeSet],
    strategy: Option[String],
    state: Seq[StateTable],
    reasons: Seq[String],
    children: Seq[AnnotatedPlan],
    shared: Option[PartReading] = None) {

  /** Returns the columns of a key, in the order of the node's output. */
  def ordered(key: AttributeSet): Seq[Attribute] = plan.output.filter(key.contains)

  /** Visits the node and its descendants, inputs first. */
  def foreachUp(visit: AnnotatedPlan => Unit): Unit = {
    children.foreach(_.foreachUp(visit))
    visit(this)
  }
}

/** Converts an annotated query to the tree shown by EXPLAIN. */
object ExplainTree {

  /**
   * Returns the EXPLAIN tree of an annotated query.
   *
   * @param operators
   *   the nodes with operators, and the numbers of the operators
   */
  def apply(
      annotated: AnnotatedPlan,
      operators: Seq[(AnnotatedPlan, Seq[Long])] = Nil): ExplainNode =
    new ExplainTree(operators).explain(annotated, isPart = false)

  /**
   * Returns the EXPLAIN tree of a query that does not run, with advice about the reader's mode.
   */
  def withAdvice(annotated: AnnotatedPlan): ExplainNode =
    apply(annotated).copy(warnings = Risks.ofReader(annotated))
}

private class ExplainTree(operators: Seq[(AnnotatedPlan, Seq[Long])]) {

  private def explain(annotated: AnnotatedPlan, isPart: Boolean): ExplainNode = {
    val isReadAgain = annotated.shared.exists(!_.computes)
    val hasParts = annotated.plan match {
      case source: FromChangelog => source.reader.nonEmpty
      case _ => isPart
    }
    ExplainNode(
      DescribeNode.node(annotated.plan),
      DescribeNode.detail(annotated.plan),
      annotated.mode.toString,
      annotated.mode.symbols,
      annotated.required.toString,
      annotated.upsertKeys.map(annotated.ordered(_).map(_.name)),
      if (isReadAgain) None else annotated.strategy,
      if (isReadAgain) Nil else annotated.state,
      annotated.reasons ++ annotated.shared.map(_.toString),
      if (isReadAgain) Nil else annotated.children.map(explain(_, hasParts)),
      isPart && annotated.children.nonEmpty,
      operators.collectFirst { case (node, ids) if node eq annotated => ids }.getOrElse(Nil),
      if (isReadAgain) Nil else Risks(annotated))
  }
}
