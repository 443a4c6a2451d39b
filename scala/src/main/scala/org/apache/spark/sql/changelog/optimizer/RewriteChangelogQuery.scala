// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import java.util.IdentityHashMap

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Alias, Literal}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.types.TimestampType
import org.apache.spark.unsafe.types.CalendarInterval

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.identity.{
  CanonicalPlan, OperatorRecord, PartRecord, RecordedRun
}
import org.apache.spark.sql.changelog.inference.{
  AnnotatedPlan, CheckExecutable, DescribeNode, InferChangelogMode
}
import org.apache.spark.sql.changelog.microbatch.{AssignStateInfo, KeySamples, SpreadingSalts}
import org.apache.spark.sql.changelog.optimizer.rewrite._
import org.apache.spark.sql.changelog.plans._

/**
 * Rewrites the query below `to_changelog` to operators that exchange changes.
 *
 * {{{
 *   ToChangelog                          ChangelogOutput
 *   +- Aggregate [cnt]                   +- ChangelogAggregate [cnt]        [I,UB,UA,D]
 *      +- Aggregate [word]         =>       +- ChangelogAggregate [word]    [I,UB,UA]
 *         +- FromChangelog                     +- Project
 *            +- words                             +- words                  [I]
 * }}}
 *
 * The rule runs once per batch, after Spark's operator optimization. The rewrite is
 * deterministic: an operator has an equal id in every batch. In a batch query, `from_changelog`
 * nets its changes and `to_changelog` adds `insert`. Two kinds of plans stay unchanged: queries
 * without the two functions, and subqueries of a streaming query, which Spark optimizes
 * separately.
 */
class RewriteChangelogQuery(session: SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case subquery: Subquery if !subquery.exists(_.isInstanceOf[ToChangelog]) =>
      rewriteQuery(KeepCalls.hide(subquery))
    case query => rewriteQuery(query)
  }

  private def rewriteQuery(plan: LogicalPlan): LogicalPlan = {
    val roots = plan.collect { case root: ToChangelog if root.streaming => root }
    if (!plan.exists(isChangelogNode)) plan
    else if (roots.isEmpty || roots.exists(_.explainOnly)) rewrite(plan, None)
    else {
      // Only when a run begins. Later batches are planned like the first one.
      val run = AssignStateInfo
        .firstOfRun(castToImpl(session))
        .map(new RecordedRun(castToImpl(session), _))
      run.foreach(_.begin())
      val rewritten = rewrite(plan, run)
      run.foreach(run => run.rewrittenTo(RewrittenOperators.in(rewritten, run.sources)))
      run.filter(_.inheritedState.isDefined).fold(rewritten)(_ => FirstBatchOnState(rewritten))
    }
  }

  private def rewrite(plan: LogicalPlan, run: Option[RecordedRun]): LogicalPlan = {
    val ids = new OperatorIds(StockOperators.count(plan))
    plan.transformDown {
      case root: ToChangelog if root.streaming => rewrite(root, ids, run)
      case ToChangelog(_, _, _, changeType, child, _, _, _, _) =>
        val inserted = Literal(RowKind.ChangeTypes(RowKind.Insert))
        Project(
          child.output :+ Alias(inserted, changeType.name)(exprId = changeType.exprId),
          child)
      case source: FromChangelog if !source.streaming =>
        SourceRewrite.batch(source, ids.nextSource())
      case KeyedVersions(_, child) => child
      case history: CommitHistory => current(history)
    }
  }

  /** In a batch query, every row is valid from now on. */
  private def current(history: CommitHistory): LogicalPlan = {
    val now = Literal(System.currentTimeMillis() * 1000, TimestampType)
    val values = Seq(now, Literal(null, TimestampType), Literal(true))
    val validity = history.validity.zip(values).map { case (column, value) =>
      Alias(value, column.name)(exprId = column.exprId)
    }
    Project(history.child.output ++ validity, history.child)
  }

  private def isChangelogNode(plan: LogicalPlan): Boolean =
    plan.isInstanceOf[ToChangelog] || plan.isInstanceOf[FromChangelog] ||
      plan.isInstanceOf[KeyedVersions] || plan.isInstanceOf[CommitHistory]

  private def rewrite(
      root: ToChangelog,
      ids: OperatorIds,
      run: Option[RecordedRun]): LogicalPlan = {
    val salts = SpreadingSalts(castToImpl(session))
    val annotated = ShareEqualParts(InferChangelogMode(normalized(root), salts))
    if (root.explainOnly) OutputRewrite.explained(annotated)
    else {
      CheckExecutable(annotated)
      val watch = root.watched.map(new WatchNodes(_, annotated))
      val nodes = new RewriteNodes(
        ids,
        inherits(annotated, run),
        run.exists(_.netsSources),
        KeySamples.ofBatch(castToImpl(session)),
        watch)
      val changes = nodes(annotated.children.head)
      val operators = nodes.operators.toSeq
      val numbers = operators.map(found => found.node -> found.ids)
      val rewritten = run.flatMap(held(root, _)) match {
        case Some(rows) => OutputRewrite.replacing(annotated, changes, rows, numbers)
        case None => OutputRewrite(annotated, changes, numbers)
      }
      RewrittenOperators.note(rewritten, annotated, operators)
      watch.fold[LogicalPlan](rewritten)(_.output(rewritten))
    }
  }

  /** Returns whether a node starts with inherited state, if the query inherits state. */
  private def inherits(
      root: AnnotatedPlan,
      run: Option[RecordedRun]): Option[RewrittenNode => Boolean] =
    for {
      run <- run
      inherited <- run.inheritedState
    } yield {
      val fingerprints = new Fingerprints(root, run.sources)
      found => found.givesRows && fingerprints(found.node).exists(inherited.parts)
    }

  /** Returns the rows in the target of a query that inherits state. */
  private def held(root: ToChangelog, run: RecordedRun): Option[LogicalPlan] =
    run.inheritedRows.map { folder =>
      val columns = root.child.output
      val rows =
        castToImpl(session).read.schema(DataTypeUtils.fromAttributes(columns)).parquet(folder)
      rows.queryExecution.analyzed
    }

  private def normalized(root: ToChangelog): ToChangelog =
    NormalizeChangelogQuery(withLateRows(root.mapChildren(ExtractRecursion(_)), root.emission))

  /** Keeps state for as long as corrections are emitted, by delaying each watermark. */
  private def withLateRows(root: LogicalPlan, emission: Emission): ToChangelog =
    (emission match {
      case Emission.OnClose(corrections) if corrections > 0 =>
        root.transformDownWithSubqueries { case watermark: EventTimeWatermark =>
          val delay = watermark.delay
          watermark.copy(delay = new CalendarInterval(
            delay.months,
            delay.days,
            delay.microseconds + corrections * 1000))
        }
      case _ => root
    }).asInstanceOf[ToChangelog]
}

/** The records of a rewritten query's operators. */
private[changelog] object RewrittenOperators {

  private val tag =
    TreeNodeTag[Map[Int, String] => Seq[OperatorRecord]]("changelogOperators")

  /** Tags `output` with the records of the query below. */
  private[optimizer] def note(
      output: ChangelogOutput,
      root: AnnotatedPlan,
      operators: Seq[RewrittenNode]): Unit =
    output.setTagValue(tag, records(root, operators, _))

  /**
   * Returns the operators of a rewritten plan.
   *
   * @param sources
   *   descriptions of the query's sources, by source number
   */
  def in(plan: LogicalPlan, sources: Map[Int, String]): Seq[OperatorRecord] =
    plan.collect { case output: ChangelogOutput => output }.flatMap { output =>
      output.getTagValue(tag).toSeq.flatMap(_(sources))
    }

  private def records(
      root: AnnotatedPlan,
      operators: Seq[RewrittenNode],
      sources: Map[Int, String]): Seq[OperatorRecord] = {
    val texts = CanonicalPlan.texts(root.plan)
    val fingerprints = new Fingerprints(root, sources)
    val ids = new IdentityHashMap[AnnotatedPlan, Seq[Long]]
    operators.foreach(found => ids.put(found.node, found.ids))
    def within(part: AnnotatedPlan): Seq[Long] =
      part.children.flatMap(within) ++ Option(ids.get(part)).toSeq.flatten
    operators.map { case RewrittenNode(node, ids, givesRows) =>
      OperatorRecord(
        ids,
        texts(node.plan),
        s"${DescribeNode.node(node.plan)} ${DescribeNode.detail(node.plan)}",
        node.mode.toString,
        node.state.map(_.toString),
        fingerprints(node).map(PartRecord(_, within(node).sorted, givesRows)))
    }
  }
}

/**
 * Counts Spark's own stateful operators in a plan, below `from_changelog` or above
 * `to_changelog`.
 *
 * Spark numbers its operators from 0 after planning a batch, when ours already have ids. An
 * operator counted here and not planned leaves a gap in the numbers.
 */
private[optimizer] object StockOperators {
  def count(plan: LogicalPlan): Long = plan
    .collect {
      case node if SparkRules.keepsState(node) => node
      case limit: GlobalLimit if limit.isStreaming => limit
      case deduplicated: Deduplicate if deduplicated.isStreaming => deduplicated
    }
    .size
    .toLong
}
