// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.expressions.{Ascending, Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.{PlanChangeLogger, Rule}

import org.apache.spark.sql.changelog.OutputMode
import org.apache.spark.sql.changelog.analysis.RemoveReadMarks
import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.inference.nodes.{StaticInference, StaticSide}
import org.apache.spark.sql.changelog.inference.times.EventTime
import org.apache.spark.sql.changelog.plans.{ChangelogStatic, FromChangelog, ToChangelog}

/**
 * The second phase: reduces a query to the few shapes that inference and rewriting know.
 *
 * Relies on [[ResolvePhase]], and on Spark's operator optimization of the query and of each subquery.
 *
 * At the end:
 *
 *   - No expression contains a subquery over a changing table.
 *   - Limits, offsets, sorts and limits per partition are gone, except in static parts.
 *   - Conditions on the current time are [[org.apache.spark.sql.changelog.plans.TemporalFilter]]s. Annotation rejects
 *     other uses of the time.
 *   - Hints are tags of joins, or the node `RowTtl`.
 *   - Each reading of a source has its own columns, and only columns with a reader.
 *   - Static rows are below a [[ChangelogStatic]], unless a join only looks them up.
 *   - Equal values of a grouping column have equal bytes.
 *   - Column names, unlike expression ids, are equal in each batch.
 *
 * Sorts disappear because the rows of a changelog have no order.
 */
object NormalizePhase {

  /** The passes, in order. */
  val passes: Seq[Pass] = Seq(
    Pass(OrderEmission, "the sort is at the root, and disappears later like other sorts"),
    Pass(ExtractRecursion, "makes a recursion one node, before its subqueries become joins"),
    Pass(ShowCalls, "all subqueries are optimized, so nothing needs to hide their calls"),
    Pass(JoinSubqueries, "reads the calls; later passes look at nodes, not into expressions"),
    Pass(CallRowFunctions, "the inputs of functions are nodes, joins of subqueries included"),
    Pass(PullOutPythonFunctions, "aggregates have their final inputs"),
    Pass(SparkRules.pruneColumns, "removes the columns that only subqueries and functions read"),
    Pass(RemoveReadMarks, "Spark's rules for aliases have run, and needed the marks"),
    Pass(CompareSourcesByNumber, "from here plans are compared within one query only"),
    Pass(SeparateSources, "needs the marks gone, to replace the aliases of repeated readings"),
    Pass(WidenEqualParts, "compares parts with separate columns, of Spark's nodes only"),
    Pass(NameColumns, "all columns exist; state is read by column name"),
    Pass(RecognizeTemporalFilter, "a static table filtered by the time is static no more"),
    Pass(AssignSkew, "knows which parts are static; ranks match without hints between"),
    Pass(HideRows, "in static parts and below sources, limits and sorts keep their meaning"),
    Pass(RecognizeRank, "reads sorts below limits, before sorts disappear"),
    Pass(DropSorts, "only sorts without a limit are left"),
    Pass(GroupByCollationKey, "aggregates are final"),
    Pass(InsertStaticRows, "shows the hidden static rows again"),
    Pass(PrepareJoinInputs, "joins are final; reads keys of all inputs, static ones included"),
    Pass(PruneSources, "no pass from here on reads a column that nothing read before"),
    Pass(SparkRules.updateNullability, "Spark forgets nullability, as for INTERSECT ALL"),
    Pass(ShowSources, "the next phase describes the plans below sources"))

  def apply(root: ToChangelog): ToChangelog = apply(Seq(root)).head

  /**
   * Normalizes the queries of a plan. Two passes compare the queries, for parts in common.
   *
   * Logs changed plans as Spark logs its rules: `spark.sql.planChangeLog.level`.
   */
  def apply(roots: Seq[ToChangelog]): Seq[ToChangelog] = {
    val logger = new PlanChangeLogger[LogicalPlan]
    val normalized = passes.foldLeft[Seq[LogicalPlan]](roots) { (plans, pass) =>
      val changed = pass.rule match {
        case SeparateSources | WidenEqualParts => pass.rule(Queries(plans)).children
        case rule => plans.map(rule(_))
      }
      plans.zip(changed).foreach { case (plan, is) =>
        logger.logRule(pass.rule.ruleName, plan, is)
      }
      changed
    }
    normalized.map(_.asInstanceOf[ToChangelog])
  }
}

/** The queries of a plan, for passes that compare them. */
private[optimizer] case class Queries(override val children: Seq[LogicalPlan])
    extends LogicalPlan {

  override def output: Seq[Attribute] = Nil

  override protected def withNewChildrenInternal(newChildren: IndexedSeq[LogicalPlan]): Queries =
    Queries(newChildren)
}

/** In mode append, makes a sort by event time at the root the order of emission. */
private[optimizer] object OrderEmission extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case root @ ToChangelog(OutputMode.Append, _, _, _, sort: Sort, _, _, _, _)
        if sort.global && EventTime.columnOf(sort.order.head.child).isDefined &&
          sort.order.head.direction == Ascending =>
      root.copy(child = sort.child, order = sort.order)
    case _ => plan
  }
}

/**
 * Hides the plans below `from_changelog`, and static parts, from the rules for changelogs.
 *
 * {{{
 *   Join                        Join
 *   :- FromChangelog            :- FromChangelog
 *   |  +- GlobalLimit 3         |  +- HiddenRows
 *   |     +- words        =>    |
 *   +- GlobalLimit 3            +- HiddenRows
 *      +- Sort [rate]
 * }}}
 *
 * Spark runs both. A limit below a source limits the stream instead of the table.
 * [[InsertStaticRows]] and [[ShowSources]] show the plans again.
 */
private[optimizer] object HideRows extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case source: FromChangelog if source.streaming =>
      source.copy(child = HiddenRows(source.child))
    case _ if StaticInference.isStatic(plan) => HiddenRows(plan)
    case _ => plan.mapChildren(apply)
  }
}

/** Placeholder for the plan below a source, or for static rows. */
private[optimizer] case class HiddenRows(hidden: LogicalPlan) extends LeafNode {
  override def output: Seq[Attribute] = hidden.output
  override def maxRows: Option[Long] = hidden.maxRows
}

private[optimizer] object DropSorts extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformUp {
    case Sort(_, _, child, _) => child
  }
}

/** Removes the columns of sources that nothing reads, so that operators do not store them. */
private[optimizer] object PruneSources extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformDown {
    case project @ Project(_, source: FromChangelog) =>
      project.copy(child = prune(source, project.references))
    case project @ Project(_, filter @ Filter(_, source: FromChangelog)) =>
      val read = project.references ++ filter.references
      project.copy(child = filter.copy(child = prune(source, read)))
    case aggregate @ Aggregate(_, _, source: FromChangelog, _) =>
      aggregate.copy(child = prune(source, aggregate.references))
  }

  private def prune(source: FromChangelog, read: AttributeSet): FromChangelog = {
    val needed = read ++ AttributeSet(source.key)
    source.copy(output = source.output.filter(needed.contains))
  }
}

private[optimizer] object ShowSources extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformUp {
    case HiddenRows(hidden) => hidden
  }
}

/**
 * Compares plans by the numbers of their sources, assigned by `ReadSourcesOnce`. Earlier rules
 * compare plans with plans of other queries, where the numbers differ.
 */
object CompareSourcesByNumber extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformUp {
    case source: FromChangelog => source.copy(isKnownByNumber = true)
  }
}

/**
 * Inserts static rows beside a changelog once, in the first batch.
 *
 * {{{
 *   Union                               Union
 *   :- Aggregate [word]        =>       :- Aggregate [word]
 *   +- LocalRelation                    +- ChangelogStatic
 *                                          +- LocalRelation
 * }}}
 *
 * The static side of a lookup-only join stays unchanged. A static side that emits rows by itself
 * is stored in state, like a changelog.
 */
object InsertStaticRows extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case HiddenRows(rows) => ChangelogStatic(rows)
    // The hidden plan below a source belongs to Spark.
    case source: FromChangelog => source
    case join: Join if StaticSide.looksUp(join) =>
      join.mapChildren {
        case HiddenRows(rows) => rows
        case side => apply(side)
      }
    case _ => plan.mapChildren(apply)
  }
}
