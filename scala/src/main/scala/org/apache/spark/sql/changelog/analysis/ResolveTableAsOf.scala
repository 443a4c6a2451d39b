// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.analysis.TypeCoercion
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.DataType

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.plans.{FromChangelog, TableAsOf}

/**
 * Resolves joins with a table as of a time of the left row.
 *
 * A history, with the columns `valid_from` and `valid_to`, is joined by the interval. Of a feed with a key and a
 * sequence, every sent row is a version, valid until the next change of its key:
 *
 * {{{
 *   LateralJoin Inner, o.cur = r.cur       LateralJoin Inner, NOT ends
 *   :  +- TableAsOf outer(o.at)            :  +- GlobalLimit 1
 *   :     +- FromChangelog key=[cur]   =>  :     +- Sort [since DESC]
 *   :        +- rates                      :        +- Filter cur = outer(o.cur) AND since <= outer(o.at)
 *   +- orders o                            :           +- FromChangelog inserts
 *                                          +- orders o
 * }}}
 */
object ResolveTableAsOf extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!hasTable(plan)) plan
    else {
      AnalysisHelper.allowInvokingTransformsInAnalyzer {
        val inlined = plan.transformUp { case common: WithCTE =>
          SparkRules.inlineCommonTables(common)
        }
        inlined.transformUpWithSubqueries {
          case join @ LateralJoin(_, subquery: LateralSubquery, _, _)
              if hasTable(subquery.plan) && !readsCommonTable(subquery.plan) =>
            new JoinAsOf(join, subquery).resolved
        }
      }
    }

  private[analysis] def hasTable(plan: LogicalPlan): Boolean =
    plan.collectWithSubqueries { case table: TableAsOf => table }.nonEmpty

  /** Whether the table is only known when an outer query is analyzed. */
  private def readsCommonTable(plan: LogicalPlan): Boolean =
    plan.exists(_.isInstanceOf[CTERelationRef])
}

/** Rejects `versions_of` anywhere except on the right side of a lateral join. */
object CheckTableAsOf extends (LogicalPlan => Unit) {
  override def apply(plan: LogicalPlan): Unit =
    if (ResolveTableAsOf.hasTable(plan)) {
      throw analysis(
        "CHANGELOG_SYSTEM_TIME",
        "clause" -> "versions_of",
        "expected" -> "the function is the right side of a join, as in JOIN LATERAL versions_of(TABLE(t), at => o.at) ON ...")
    }
}

/** A lateral join with a table as of a time. */
private final class JoinAsOf(join: LateralJoin, subquery: LateralSubquery)
    extends PredicateHelper
    with AliasHelper {
  private val left = join.left
  private val named = SparkRules.withoutNames(subquery.plan)
  private val table = named match {
    case table: TableAsOf => table
    case _ => throw refused("versions_of is the whole right side of the join")
  }
  private val conditions = join.condition.toSeq.flatMap(splitConjunctivePredicates)

  def resolved: LogicalPlan = {
    if (!table.at.exists(_.isInstanceOf[OuterReference]) ||
      table.at.exists(e => e.isInstanceOf[Attribute]) || !VersionSubquery.isPlain(table.at)) {
      throw refused(
        "the time is an expression over columns of the left side of the join, as in o.at")
    }
    def column(name: String) = table.output.find(_.name.equalsIgnoreCase(name))
    (column("valid_from"), column("valid_to")) match {
      case (Some(from), Some(to)) => ofHistory(from, to)
      case _ => ofFeed
    }
  }

  private def ofHistory(from: Attribute, to: Attribute): LogicalPlan = {
    val at = table.at.transform { case OuterReference(column) => column }
    val isValid =
      And(isUntil(from, at), Or(IsNull(to), Not(isUntil(to, at))))
    val condition = (conditions :+ isValid).reduceOption(And(_, _))
    Join(left, table.child, join.joinType, condition, JoinHint.NONE)
  }

  private def ofFeed: LogicalPlan = {
    val (outputs, feed) = columnsOf(table.child)
    val time = feed.sequence match {
      case Seq(time) if feed.key.nonEmpty && feed.snapshot.isEmpty => time
      case _ => throw noVersions
    }
    val aliases = AttributeMap(outputs.collect { case alias: Alias =>
      alias.toAttribute -> alias.child
    })
    val told = conditions.map(_.transform { case c: Attribute => aliases.getOrElse(c, c) })
    val byKey = feed.key.flatMap(column => told.find(isEqual(_, column)))
    if (byKey.size < feed.key.size) {
      val names = feed.key.map(_.name).mkString(", ")
      throw refused(
        s"ON compares each column of the table's key ($names) with a value of the left side by =")
    }
    val rest =
      conditions.zip(told).collect { case (given, read) if !byKey.contains(read) => given }
    val ends = Alias(
      feed.kind.fold[Expression](Literal(false))(EqualTo(_, Literal(RowKind.Delete))),
      "_ends")()
    val versions = versionsOf(feed, time, ends)
    val atLeft = byKey.map(_.transform {
      case column: Attribute if left.outputSet.contains(column) => OuterReference(column)
    })
    val found = Filter((atLeft :+ isUntil(time, table.at)).reduce(And(_, _)), versions)
    val last =
      Sort(
        Seq(SortOrder(time, Descending), SortOrder(ends.toAttribute, Ascending)),
        global = true,
        found)
    val one =
      Project(outputs :+ ends.toAttribute, GlobalLimit(Literal(1), LocalLimit(Literal(1), last)))
    val read = subquery.copy(plan = one, outerAttrs = SubExprUtils.getOuterReferences(one))
    val condition = (Not(ends.toAttribute) +: rest).reduceOption(And(_, _))
    Project(join.output, join.copy(right = read, condition = condition))
  }

  /** Returns every version that a feed has sent, and every delete, as rows. */
  private def versionsOf(feed: FromChangelog, time: Attribute, ends: Alias): LogicalPlan = {
    val kinds = Seq(RowKind.Insert, RowKind.UpdateAfter, RowKind.Delete).map(Literal(_))
    val sent = feed.kind.fold(feed.child)(kind => Filter(In(kind, kinds), feed.child))
    val columns = feed.output.map { column =>
      feed.unavailable.fold[NamedExpression](column)(orFail(column, _))
    }
    val rows = Project((columns ++ Seq(time).filterNot(feed.outputSet.contains)) :+ ends, sent)
    FromChangelog
      .ofInserts(rows, feed.streaming)
      .copy(reader = feed.reader)
  }

  /** A version does not take over the values of the version before it. */
  private def orFail(column: Attribute, unavailable: Attribute): NamedExpression = {
    val isMissing =
      Coalesce(Seq(ArrayContains(unavailable, Literal(column.name)), Literal(false)))
    val error = refused(s"the feed sends column ${column.name} with every change")
    val failed = RaiseError(
      Literal("USER_RAISED_EXCEPTION"),
      CreateMap(Seq(Literal("errorMessage"), Literal(error.getMessage))),
      column.dataType)
    Alias(If(isMissing, failed, column), column.name)(column.exprId, column.qualifier)
  }

  /** Returns the columns of the table as expressions over a feed. */
  private def columnsOf(plan: LogicalPlan): (Seq[NamedExpression], FromChangelog) = plan match {
    case feed: FromChangelog => (feed.output, feed)
    case Project(columns, child) if columns.forall(VersionSubquery.isPlain) =>
      val (below, feed) = columnsOf(child)
      val aliases = getAliasMap(below)
      (columns.map(replaceAliasButKeepName(_, aliases)), feed)
    case _: SubqueryAlias | _: View => columnsOf(plan.children.head)
    case _ => throw noVersions
  }

  private def isEqual(condition: Expression, key: Attribute): Boolean = {
    def isKey(value: Expression): Boolean = value match {
      case Cast(child, to, _, _) => isKey(child) && Cast.canUpCast(child.dataType, to)
      case other => other.semanticEquals(key)
    }
    def isLeft(value: Expression) = value.references.subsetOf(left.outputSet) &&
      value.references.nonEmpty && VersionSubquery.isPlain(value)
    condition match {
      case EqualTo(a, b) => isKey(a) && isLeft(b) || isKey(b) && isLeft(a)
      case _ => false
    }
  }

  private def isUntil(time: Expression, at: Expression): Expression = {
    def as(value: Expression, dataType: DataType) =
      if (value.dataType == dataType) value
      else Cast(value, dataType, Some(SQLConf.get.sessionLocalTimeZone))
    val both = TypeCoercion.findTightestCommonType(time.dataType, at.dataType)
    both.filter(RowOrdering.isOrderable) match {
      case Some(common) => LessThanOrEqual(as(time, common), as(at, common))
      case None =>
        throw refused(
          s"the time has the type of the table's times, ${time.dataType.sql}, not ${at.dataType.sql}")
    }
  }

  private def noVersions: AnalysisException = refused(
    "the table has the columns valid_from and valid_to, as a view with changelog.history, or is a feed with a key " +
      "and the time of a change as its only sequence_by, without a snapshot")

  private def refused(expected: String): AnalysisException = {
    val name = named
      .collectFirst { case alias: SubqueryAlias => alias.identifier.name }
      .getOrElse("the right side of the join")
    analysis("CHANGELOG_SYSTEM_TIME", "clause" -> name, "expected" -> expected)
  }
}
