// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.ModifyKindSet
import org.apache.spark.sql.changelog.plans.{FromChangelog, InputMode, RowTtl, Skew, ToChangelog}

/**
 * Reads the streams of a query below `to_changelog` as changelogs, and each source once.
 *
 * {{{
 *   ToChangelog                    ToChangelog streaming
 *   +- Aggregate           =>      +- Aggregate
 *      +- stream                      +- FromChangelog, inserts only
 *                                        +- stream
 * }}}
 * Done when the function is called, and again when more of the query below is known.
 */
object ReadStreams {

  def apply(root: ToChangelog): ToChangelog = {
    root.child
      .collectWithSubqueries {
        case RowTtl(_, _, Some(problem)) => problem
        case Skew(_, _, _, Some(problem), _, _) => problem
      }
      .foreach(throw _)
    val streams = root.child.collectWithSubqueries {
      case leaf: LeafNode if isStream(leaf) => leaf
    }
    val read = readCommonTables(wrapStreams(root.child))
    checkHints(read)
    root.copy(streaming = streams.nonEmpty, child = ReadSourcesOnce(read))
  }

  /** The rows of a stream come and never go, and Spark reads them. */
  private def checkHints(plan: LogicalPlan): Unit = plan
    .collectWithSubqueries { case source: FromChangelog => source.child }
    .flatMap(_.collectFirst {
      case _: RowTtl => ResolveRowTtl.invalid("place", "a stream", Misplaced)
      case _: Skew => SkewHint.invalid("place", "a stream", Misplaced)
    })
    .foreach(throw _)

  private val Misplaced =
    "it is for tables: let it stand on the SELECT that reads from_changelog, or above a watermark"

  /** References to what was a stream when they were made, and is a changelog now. */
  private def readCommonTables(plan: LogicalPlan): LogicalPlan =
    AnalysisHelper.allowInvokingTransformsInAnalyzer {
      plan.transformUpWithSubqueries {
        case reference: CTERelationRef if reference.isStreaming =>
          reference.copy(isStreaming = false)
      }
    }

  /**
   * Reads every stream that is not yet below `from_changelog` as an insert-only changelog, above
   * its watermark, since Spark allows watermarks on streams only.
   */
  private def wrapStreams(plan: LogicalPlan): LogicalPlan = plan match {
    case changelog: FromChangelog => changelog
    case stream if isRawStream(stream) =>
      FromChangelog(
        None,
        ModifyKindSet.InsertOnly,
        InputMode.Retract,
        Nil,
        Nil,
        skipsBadRows = false,
        streaming = true,
        stream.output,
        stream)
    case other =>
      other.mapChildren(wrapStreams).transformExpressions { case subquery: SubqueryExpression =>
        subquery.withNewPlan(wrapStreams(subquery.plan))
      }
  }

  private def isRawStream(plan: LogicalPlan): Boolean = plan match {
    case leaf: LeafNode => isStream(leaf)
    case watermark: EventTimeWatermark => isPlainStream(watermark.child)
    case _: FlatMapGroupsWithState | _: FlatMapGroupsInPandasWithState | _: TransformWithState |
        _: TransformWithStateInPySpark =>
      plan.isStreaming && !plan.exists(_.isInstanceOf[FromChangelog])
    case _ => false
  }

  private def isPlainStream(plan: LogicalPlan): Boolean = plan match {
    case leaf: LeafNode => isStream(leaf)
    case _: Project | _: Filter | _: SubqueryAlias | _: View | _: EventTimeWatermark =>
      isPlainStream(plan.children.head)
    case _ => false
  }

  /** What a reference to a common table expression stands for is known once it is inlined. */
  private def isStream(leaf: LeafNode): Boolean =
    leaf.isStreaming && !leaf.isInstanceOf[CTERelationRef]
}
