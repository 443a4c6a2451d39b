// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.expressions.{
  Alias,
  Attribute,
  AttributeSet,
  Literal,
  RowOrdering
}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.inference.keys.{ProjectKeys, UpsertKeys}
import org.apache.spark.sql.changelog.inference.nodes.{JoinState, StaticInference}
import org.apache.spark.sql.changelog.inference.{AnnotatedPlan, ExplainTree}
import org.apache.spark.sql.changelog.plans._
import org.apache.spark.sql.changelog.{OutputMode, RowKind, UpdateKind}

/**
 * Sees to it that a reader gets at most one change per key and batch.
 *
 * A stateful operator emits one already, the halves of an update side by side. Projections that
 * keep the key and filters leave them so: [[ChangelogOutput]] then only looks at neighbours. After
 * anything else the batch's changes are netted by [[ChangelogConsolidate]].
 */
private[optimizer] object OutputRewrite {

  /**
   * The root of the rewritten query.
   *
   * @param operators
   *   the nodes below that have become operators, with the numbers of those
   */
  def apply(
      root: AnnotatedPlan,
      input: LogicalPlan,
      operators: Seq[(AnnotatedPlan, Seq[Long])]): ChangelogOutput = {
    val explanation = explainedBy(root)(ExplainTree(root, operators))
    netting(root) match {
      case Netting.Consolidate(key, pairs) =>
        val kind = RowKind.find(input.output).get
        val query = root.children.head
        val replaces =
          query.required == UpdateKind.OnlyUpdateAfter && knowsUpdates(query)
        val netted =
          ChangelogConsolidate(key, pairs, replaces, kind, RowKind.newAttribute(), input)
        val nettedBy = Option.when(pairs)(key)
        output(root, explanation, RowKind.find(netted.output), pairBy = None, nettedBy, netted)
      case Netting.Neighbours(key) =>
        output(root, explanation, RowKind.find(input.output), Some(key), Some(key), input)
      case Netting.Alone(key) =>
        output(root, explanation, RowKind.find(input.output), pairBy = None, Some(key), input)
      case Netting.None =>
        output(
          root,
          explanation,
          RowKind.find(input.output),
          pairBy = None,
          nettedBy = None,
          input)
    }
  }

  /**
   * The root of a query whose rows are all new, in whose place the target holds others: they go, but
   * for those that are the same.
   *
   * @param held
   *   the rows of the target, in the columns of the query
   */
  def replacing(
      root: AnnotatedPlan,
      input: LogicalPlan,
      held: LogicalPlan,
      operators: Seq[(AnnotatedPlan, Seq[Long])]): ChangelogOutput = {
    val query = root.children.head
    val rows = NodeRewrite.select(input, query.plan.output, withKind = true)
    val gone = Alias(Literal(RowKind.Delete), RowKind.ColumnName)()
    val all = Union(rows, Project(held.output :+ gone, held))
    val Netting.Consolidate(key, pairs) = consolidation(root): @unchecked
    val kind = RowKind.find(all.output).get
    val netted =
      ChangelogConsolidate(key, pairs, replaces = false, kind, RowKind.newAttribute(), all)
    val nettedBy = Option.when(pairs)(key)
    val explanation = explainedBy(root)(ExplainTree(root, operators))
    output(root, explanation, RowKind.find(netted.output), pairBy = None, nettedBy, netted)
  }

  /** A root that can be explained but not executed. */
  def explained(root: AnnotatedPlan): ChangelogOutput =
    output(
      root,
      explainedBy(root)(ExplainTree.withAdvice(root)),
      kind = None,
      pairBy = None,
      nettedBy = None,
      root.plan.children.head)

  private def explainedBy(root: AnnotatedPlan)(tree: => ExplainNode): Explanation =
    Explanation(root.mode.toString)(tree)

  private def output(
      root: AnnotatedPlan,
      explanation: Explanation,
      kind: Option[Attribute],
      pairBy: Option[Seq[Attribute]],
      nettedBy: Option[Seq[Attribute]],
      child: LogicalPlan): ChangelogOutput = {
    val sink = root.plan.asInstanceOf[ToChangelog]
    val query = root.children.head
    ChangelogOutput(
      kind,
      pairBy,
      nettedBy,
      sink.mode == OutputMode.Retract,
      sink.columns,
      sink.changeType,
      if (sink.key.nonEmpty) Some(sink.key) else replacedBy(root),
      query.upsertKeys.map(query.ordered),
      explanation,
      child)
  }

  private sealed trait Netting

  private object Netting {

    /** Rows that only come, or that are netted where they are made. */
    case object None extends Netting

    /** There is one row per key, for old rows are left out. */
    case class Alone(key: Seq[Attribute]) extends Netting

    /** The halves of an update stand side by side. */
    case class Neighbours(key: Seq[Attribute]) extends Netting

    case class Consolidate(key: Seq[Attribute], pairs: Boolean) extends Netting
  }

  private def netting(root: AnnotatedPlan): Netting = {
    val query = root.children.head
    val wanted = replacedBy(root)
    val netted = NettedKeys(query)
      .map(query.ordered)
      .sortBy(_.size)
      .find(key => wanted.forall(AttributeSet(_) == AttributeSet(key)))
    if (query.mode.isInsertOnly) Netting.None
    else if (netted.isDefined) {
      if (query.mode.updateKind == UpdateKind.BeforeAndAfter) Netting.Neighbours(netted.get)
      else Netting.Alone(netted.get)
    } else
      consolidation(root) match {
        // the rewrite of a window cancels equal rows, and without a key there are no updates
        case Netting.Consolidate(_, false) if query.plan.isInstanceOf[Window] => Netting.None
        case other => other
      }
  }

  /** By the key that a reader replaces rows by, or any. */
  private def consolidation(root: AnnotatedPlan): Netting = {
    val query = root.children.head
    replacedBy(root).orElse(query.upsertKeys.headOption.map(query.ordered)) match {
      case Some(key) => Netting.Consolidate(key, pairs = true)
      case None =>
        // maps can't be compared, but equal rows still meet where the other columns are equal
        val comparable =
          query.plan.output.filter(column => RowOrdering.isOrderable(column.dataType))
        Netting.Consolidate(comparable, pairs = false)
    }
  }

  /**
   * The key by which a reader replaces rows that gets no old ones: a batch must hold one change of it
   * at most, and of no other key. None if the reader gets the old rows, or if none are replaced.
   */
  private def replacedBy(root: AnnotatedPlan): Option[Seq[Attribute]] = {
    val sink = root.plan.asInstanceOf[ToChangelog]
    val query = root.children.head
    if (sink.mode != OutputMode.Upsert || query.mode.isInsertOnly) None
    else if (sink.key.nonEmpty) Some(sink.key)
    else root.requiredKey.orElse(query.upsertKeys.headOption).map(query.ordered)
  }

  /** Whether a new row comes with `+U` exactly if it replaces one, as state tells a join. */
  private def knowsUpdates(node: AnnotatedPlan): Boolean = node.plan match {
    case _: Join => !node.children.exists(side => StaticInference.isStatic(side.plan))
    case _: Rank => true
    case _: Project | _: Filter => knowsUpdates(node.children.head)
    case _ => false
  }
}

/**
 * The keys that a batch holds at most one change of, the halves of an update side by side.
 *
 * {{{
 *   aggregate                 its groups
 *   rank                      a place of it, or a row of its partition
 *   source of new rows        its key
 *   join of one row with one  every key that holds the join key
 *   projection, filter        those of the input, as far as they are kept
 * }}}
 */
private[rewrite] object NettedKeys {

  def apply(node: AnnotatedPlan): Seq[AttributeSet] = node.plan match {
    case _: Aggregate => node.upsertKeys
    // a window is netted by the consumer's key where old rows are left out by that
    case _: Window if node.mode.updateKind == UpdateKind.OnlyUpdateAfter => node.upsertKeys
    case rank: Rank =>
      // a row that changes its partition leaves one and enters the other
      val partition = AttributeSet(rank.partitionBy)
      UpsertKeys.slotKey(rank) match {
        case Some(slot) => node.upsertKeys.filter(_ == slot)
        case None => node.upsertKeys.filter(partition.subsetOf(_))
      }
    case source: FromChangelog if source.input == InputMode.Upsert => node.upsertKeys
    case join: Join if !node.children.exists(side => StaticInference.isStatic(side.plan)) =>
      ofJoin(node, join.joinType)
    case _: Project | _: Filter | _: EventTimeWatermark =>
      ProjectKeys
        .outputKeys(node.plan, apply(node.children.head))
        .filter(node.upsertKeys.contains)
    case _ => Nil
  }

  /**
   * Where each side has one row per join key at most, so has the result before a batch and after
   * it; a full join has one per side, whose keys differ. All changes of a key meet in one task if
   * the key holds the join key.
   *
   * Left and right joins are left out: the row that comes may stand before the one that goes.
   */
  private def ofJoin(node: AnnotatedPlan, joinType: JoinType): Seq[AttributeSet] = {
    val state = JoinState(node)
    def isSingle(isLeft: Boolean) = state.form(isLeft) match {
      case SideForm.OneRow => true
      case SideForm.KeyCount => !isLeft
      case _ => false
    }
    def joinKey(isLeft: Boolean) = state.equi.references(isLeft)
    def holding(columns: AttributeSet) = node.upsertKeys.filter(columns.subsetOf(_))

    if (SkewedSide.of(state.join).isDefined) Nil // changes of a key meet in several tasks
    else if (!isSingle(isLeft = true) || !isSingle(isLeft = false)) Nil
    else
      joinType match {
        case _: InnerLike => (holding(joinKey(true)) ++ holding(joinKey(false))).distinct
        case LeftSemi => holding(joinKey(true))
        // rows without a join key come out as they come in
        case LeftAnti if neverNull(node.children(0), joinKey(true)) => holding(joinKey(true))
        case FullOuter if Seq(0, 1).forall(i => neverNull(node.children(i), joinKey(i == 0))) =>
          holding(joinKey(true) ++ joinKey(false))
        case _ => Nil
      }
  }

  /** Whether no row has NULL in these columns: a source refuses rows without their key. */
  private def neverNull(node: AnnotatedPlan, columns: AttributeSet): Boolean =
    columns.forall(column => node.plan.output.exists(c => c == column && !c.nullable)) ||
      (node.plan match {
        case source: FromChangelog =>
          source.kind.isDefined && columns.subsetOf(AttributeSet(source.key))
        case _: Project | _: Filter | _: EventTimeWatermark =>
          ProjectKeys.inputKey(node.plan, columns).exists(neverNull(node.children.head, _))
        case _ => false
      })
}
