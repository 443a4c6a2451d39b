// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, AttributeSet, Literal}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.inference.keys.{ProjectKeys, UpsertKeys}
import org.apache.spark.sql.changelog.inference.nodes.{JoinState, StaticInference}
import org.apache.spark.sql.changelog.inference.{AnnotatedPlan, ExplainTree}
import org.apache.spark.sql.changelog.plans._
import org.apache.spark.sql.changelog.{OutputMode, RowKind, UpdateKind}

/**
 * Guarantees at most one change per key and batch to the reader.
 *
 * A stateful operator already emits one change per key, with the before and after image as
 * neighbors. Filters, and projections that keep the key, preserve this order. [[ChangelogOutput]]
 * then compares only neighbors. After other nodes, [[ChangelogConsolidate]] nets the batch's
 * changes.
 */
private[optimizer] object OutputRewrite {

  /**
   * Returns the root of the rewritten query.
   *
   * @param operators
   *   the nodes with operators, and the numbers of the operators
   */
  def apply(
      root: AnnotatedPlan,
      input: LogicalPlan,
      operators: Seq[(AnnotatedPlan, Seq[Long])]): ChangelogOutput = {
    val explanation = explainedBy(root)(ExplainTree(root, operators))
    netting(root) match {
      case Netting.Consolidate(key, pairs) =>
        val query = root.children.head
        val replaces =
          query.required == UpdateKind.OnlyUpdateAfter && knowsUpdates(query)
        val netted = ChangelogConsolidate.byKey(key, input, pairs, replaces)
        output(root, explanation, netted, Option.when(pairs)(key))
      case Netting.Neighbours(key) =>
        output(root, explanation, input, Some(key), pairBy = Some(key))
      case Netting.Alone(key) => output(root, explanation, input, Some(key))
      case Netting.None => output(root, explanation, input)
    }
  }

  /**
   * Returns the root of a query whose new result replaces the rows of the target. Unequal rows of
   * the target are deleted.
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
    val netted = ChangelogConsolidate.byKey(key, all, pairs)
    val explanation = explainedBy(root)(ExplainTree(root, operators))
    output(root, explanation, netted, Option.when(pairs)(key))
  }

  /** Returns a root for EXPLAIN, not for execution. */
  def explained(root: AnnotatedPlan): ChangelogOutput =
    output(root, explainedBy(root)(ExplainTree.withAdvice(root)), root.plan.children.head)

  private def explainedBy(root: AnnotatedPlan)(tree: => ExplainNode): Explanation =
    Explanation(root.mode.toString)(tree)

  private def output(
      root: AnnotatedPlan,
      explanation: Explanation,
      child: LogicalPlan,
      nettedBy: Option[Seq[Attribute]] = None,
      pairBy: Option[Seq[Attribute]] = None): ChangelogOutput = {
    val sink = root.plan.asInstanceOf[ToChangelog]
    val query = root.children.head
    ChangelogOutput(
      RowKind.find(child.output),
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

    /** The rows are insert-only, or netted by the operator. */
    case object None extends Netting

    /** A single row per key, because before images are omitted. */
    case class Alone(key: Seq[Attribute]) extends Netting

    /** Before and after images are neighbors. */
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
        // The rewrite of a window cancels equal rows, and without a key there are no updates.
        case Netting.Consolidate(_, false) if query.plan.isInstanceOf[Window] => Netting.None
        case other => other
      }
  }

  /** Nets by the key of the reader, or by any key. */
  private def consolidation(root: AnnotatedPlan): Netting = {
    val query = root.children.head
    replacedBy(root).orElse(query.upsertKeys.headOption.map(query.ordered)) match {
      case Some(key) => Netting.Consolidate(key, pairs = true)
      case None =>
        Netting.Consolidate(ChangelogConsolidate.comparable(query.plan.output), pairs = false)
    }
  }

  /**
   * Returns the key by which a reader without before images replaces rows. A batch then holds at
   * most one change per key. Readers with before images, or without replaced rows, have no such
   * key.
   */
  private def replacedBy(root: AnnotatedPlan): Option[Seq[Attribute]] = {
    val sink = root.plan.asInstanceOf[ToChangelog]
    val query = root.children.head
    if (sink.mode != OutputMode.Upsert || query.mode.isInsertOnly) None
    else if (sink.key.nonEmpty) Some(sink.key)
    else root.requiredKey.orElse(query.upsertKeys.headOption).map(query.ordered)
  }

  /**
   * Whether an after image always replaces a row, and an insert never does. Joins know this from
   * state.
   */
  private def knowsUpdates(node: AnnotatedPlan): Boolean = node.plan match {
    case _: Join => !node.children.exists(side => StaticInference.isStatic(side.plan))
    case _: Rank => true
    case _: Project | _: Filter => knowsUpdates(node.children.head)
    case _ => false
  }
}

/**
 * NettedKeys: the keys with at most one change per batch, or a pair of neighboring images.
 *
 * {{{
 *   aggregate                 the groups
 *   rank                      the slot, or keys that contain the partition
 *   normalized source         the key
 *   join of single rows       every upsert key that contains the join key
 *   projection, filter        the keys of the input, as far as preserved
 * }}}
 */
private[rewrite] object NettedKeys {

  def apply(node: AnnotatedPlan): Seq[AttributeSet] = node.plan match {
    case _: Aggregate => node.upsertKeys
    // A window without before images is netted by the consumer's key.
    case _: Window if node.mode.updateKind == UpdateKind.OnlyUpdateAfter => node.upsertKeys
    case rank: Rank =>
      // An update may move a row from one partition to the next.
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
   * If each side has at most one row per join key, the result has at most one row per join key. A
   * full join has one per side, with different keys. All changes of a key meet in one task if the
   * key contains the join key.
   *
   * Left and right joins are excluded: the inserted row may precede the deleted row.
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
        // A left row with a NULL join key passes through the join.
        case LeftAnti if neverNull(node.children(0), joinKey(true)) => holding(joinKey(true))
        case FullOuter if Seq(0, 1).forall(i => neverNull(node.children(i), joinKey(i == 0))) =>
          holding(joinKey(true) ++ joinKey(false))
        case _ => Nil
      }
  }

  /** Whether these columns are never NULL. A source rejects rows with a NULL key. */
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
