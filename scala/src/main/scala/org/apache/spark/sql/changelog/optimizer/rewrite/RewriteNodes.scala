// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import java.util.IdentityHashMap

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan, UnaryNode}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.inference.{AggregateForm, AnnotatedPlan}
import org.apache.spark.sql.changelog.microbatch.{SampledBatch, SharedChanges}
import org.apache.spark.sql.changelog.plans._

/**
 * Rewrites all nodes of a query, inputs first. Operator ids therefore count from the sources up,
 * left to right. A shared part is rewritten at its first reading:
 *
 * {{{
 *   Join                              ChangelogJoin
 *   :- Project                        :- Project
 *   :  +- Aggregate  part 1     =>    :  +- SharedPart part 1
 *   +- Aggregate  part 1              :     +- ChangelogAggregate
 *                                     +- SharedReading part 1
 * }}}
 *
 * @param inherits
 *   in the first batch on inherited state: whether a node inherits state, and emits its whole
 *   result
 * @param netsSources
 *   whether sources net the changes of the batch
 * @param samples
 *   counts a sample of the sources' keys, unless switched off
 * @param watch
 *   in a dry run, records the rows emitted by nodes
 * @param parts
 *   the shared parts computed by this query and earlier queries of the plan, by number
 */
private[optimizer] class RewriteNodes(
    ids: OperatorIds,
    inherits: Option[RewrittenNode => Boolean],
    netsSources: Boolean,
    samples: Option[SampledBatch],
    watch: Option[WatchNodes],
    parts: mutable.Map[Int, SharedPart]) {

  /** The nodes with operators, in the order of operator ids. */
  val operators: mutable.ArrayBuffer[RewrittenNode] = mutable.ArrayBuffer.empty

  def apply(node: AnnotatedPlan): LogicalPlan = node.shared match {
    case Some(reading) if reading.computes =>
      val rows = NodeRewrite.select(rewrite(node), node.plan.output, !node.mode.isInsertOnly)
      val part = SharedPart(new SharedChanges(reading.number), placedBy(node, rows), rows)
      parts(reading.number) = part
      part
    case Some(reading) => readAgain(node, parts(reading.number))
    case None => rewrite(node)
  }

  private def rewrite(node: AnnotatedPlan): LogicalPlan = {
    val rewrite = NodeRewrite.forNode(node)
    // The plan below a source belongs to Spark.
    val inputs = node.plan match {
      case source: FromChangelog => Seq(source.child)
      case _ => rewrite.inputs(node).map(apply)
    }
    val (rewritten, operatorIds) = ids.during(rewrite(RewriteContext(marked(node), inputs, ids)))
    if (operatorIds.nonEmpty) {
      val last = rewritten.collectFirst { case operator: KeepsState => operator }
      val found = RewrittenNode(node, operatorIds, last.exists(KnownResult(node, _)))
      operators += found
      if (inherits.exists(_(found))) last.foreach(StoredResult.mark(_))
    }
    val sent = node.plan match {
      case source: FromChangelog =>
        val netted = if (netsSources) SourceRewrite.netted(source, rewritten) else rewritten
        samples.fold(netted)(SourceRewrite.sampled(source, netted, _))
      case _ => rewritten
    }
    watch.fold(sent)(_(node, sent))
  }

  private def marked(node: AnnotatedPlan): AnnotatedPlan = node.plan match {
    case source: FromChangelog if inherits.isDefined =>
      node.copy(plan = source.copy(child = SourceRows(source.child)))
    case _ => node
  }

  /**
   * Returns the shuffle columns of a shared part: the smallest key, or every column. Most readers
   * need this distribution, and an operator with a key already has it.
   */
  private def placedBy(node: AnnotatedPlan, rows: LogicalPlan): Seq[Attribute] = {
    val hashed = ChangelogConsolidate.comparable(rows.output)
    node.upsertKeys.sortBy(_.size).find(_.subsetOf(rows.outputSet)) match {
      case Some(key) => hashed.filter(key.contains)
      case None => hashed.filter(node.plan.outputSet.contains)
    }
  }

  private def readAgain(node: AnnotatedPlan, part: SharedPart): SharedReading = {
    val kind = if (node.mode.isInsertOnly) None else Some(RowKind.newAttribute())
    val columns = part.output.zip(node.plan.output ++ kind).map { case (computed, read) =>
      read.withNullability(computed.nullable)
    }
    val placedBy = part.placedBy.map { column =>
      columns(part.output.indexWhere(_.exprId == column.exprId))
    }
    SharedReading(part.changes, placedBy, columns)
  }
}

/**
 * A node rewritten to operators.
 *
 * @param ids
 *   the ids of the operators
 * @param givesRows
 *   whether the state of the operators holds the node's whole result
 */
private[optimizer] final case class RewrittenNode(
    node: AnnotatedPlan,
    ids: Seq[Long],
    givesRows: Boolean)

/**
 * Records the rows emitted by each node, under the node's position in the EXPLAIN tree.
 *
 * {{{
 *   ChangelogOutput                     WatchChanges 0
 *   +- ChangelogAggregate [cnt]         +- ChangelogOutput
 *      +- ChangelogAggregate [word]        +- WatchChanges 1
 *                                   =>        +- ChangelogAggregate [cnt]
 *                                                +- WatchChanges 2
 *                                                   +- ChangelogAggregate [word]
 * }}}
 *
 * Rows of a shared part are recorded at the computation only.
 */
private[optimizer] class WatchNodes(watched: WatchedChanges, root: AnnotatedPlan) {
  private val places = new IdentityHashMap[AnnotatedPlan, Int]
  number(root)

  private def number(node: AnnotatedPlan): Unit = {
    places.put(node, places.size)
    if (node.shared.forall(_.computes)) node.children.foreach(number)
  }

  /** Returns the watched plan of a rewritten node. */
  def apply(node: AnnotatedPlan, rewritten: LogicalPlan): LogicalPlan =
    if (!places.containsKey(node)) rewritten
    else watch(places.get(node), node.plan.output, RowKind.find(rewritten.output), rewritten)

  /** Returns the watched root of the query. */
  def output(rewritten: ChangelogOutput): LogicalPlan = {
    watched.explainedBy(rewritten.explanation)
    watch(0, rewritten.columns, Some(rewritten.changeType), rewritten)
  }

  private def watch(
      place: Int,
      columns: Seq[Attribute],
      kind: Option[Attribute],
      rewritten: LogicalPlan): LogicalPlan = {
    val noted = columns.flatMap(column => rewritten.output.find(_.exprId == column.exprId))
    WatchChanges(watched, place, noted ++ kind, rewritten)
  }
}

/**
 * FirstBatchOnState: the plan of the first batch on inherited state.
 *
 * {{{
 *   ChangelogJoin                             ChangelogJoin              starts without state
 *   :- ChangelogAggregate  inherited          :- ChangelogAggregate      emits all groups
 *   |  +- orders                     =>       |  +- (nothing)
 *   +- rates                                  +- rates                   read from the beginning
 * }}}
 *
 * Below an operator that emits stored results, sources are idle in the first batch.
 */
private[optimizer] object FirstBatchOnState {

  def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case operator: KeepsState if StoredResult.isWanted(operator) => operator.mapChildren(idle)
    case SourceRows(rows) => rows
    // Static rows of earlier batches went to the operators of the earlier query.
    case ChangelogStatic(rows) => rows
    case other => other.mapChildren(apply)
  }

  private def idle(plan: LogicalPlan): LogicalPlan = plan.transformDown {
    case source: SourceRows => IdleSource(source.output)
    case operator: KeepsState if StoredResult.isWanted(operator) =>
      StoredResult.unmark(operator)
      operator
  }
}

/** Placeholder for a source's rows in the first batch, until the readers are known. */
private[optimizer] case class SourceRows(child: LogicalPlan) extends UnaryNode {

  override def output: Seq[Attribute] = child.output

  override protected def withNewChildInternal(newChild: LogicalPlan): SourceRows =
    copy(child = newChild)
}

/** Decides whether an operator's state holds the operator's whole result. */
private[optimizer] object KnownResult {

  def apply(node: AnnotatedPlan, operator: LogicalPlan): Boolean =
    node.state.forall(_.keepsAll) && (operator match {
      case _: ChangelogNormalize => true
      case aggregate: ChangelogAggregate => !aggregate.emitsClosed && !groupsSessions(node)
      case rank: ChangelogRank =>
        rank.ranking.strategy match {
          case RankStrategy.AppendFast | RankStrategy.UpdateFast | RankStrategy.Retract => true
          // Only counts, or rows before their emission.
          case RankStrategy.FirstCome | RankStrategy.Earliest => false
        }
      case join: ChangelogJoin =>
        val sides = Seq(join.leftSide, join.rightSide)
        sides.forall(_.form != SideForm.Nothing) &&
        preserved(join).forall(side => isAlwaysKept(side.key, join.matchesNull))
      case _: ChangelogNeighbors => true
      // Sessions may be stored as buffers instead of rows.
      case replay: ChangelogReplay => !replay.emitsClosed && !groupsSessions(node)
      case _ => false
    })

  private def groupsSessions(node: AnnotatedPlan): Boolean = node.plan match {
    case aggregate: Aggregate => AggregateForm.groupsSessions(aggregate)
    case _ => false
  }

  /** Returns the preserved sides. */
  private def preserved(join: ChangelogJoin): Seq[JoinedSide] = join.joinType match {
    case LeftOuter | LeftSingle | LeftAnti | ExistenceJoin(_) => Seq(join.leftSide)
    case RightOuter => Seq(join.rightSide)
    case FullOuter => Seq(join.leftSide, join.rightSide)
    case _ => Nil
  }

  /**
   * Whether no key part is NULL where NULL matches nothing. Rows with such a key pass the join
   * without entering state.
   */
  private def isAlwaysKept(key: Seq[Expression], matchesNull: Seq[Boolean]): Boolean =
    key.zip(matchesNull).forall { case (part, matches) => matches || !part.nullable }
}
