// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{
  Alias, Attribute, AttributeReference, NamedExpression, SubqueryExpression
}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.execution.streaming.runtime.{
  StreamingExecutionRelation, StreamingRelation
}
import org.apache.spark.sql.types.{Metadata, MetadataBuilder}

import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.plans.{
  FromChangelog, LookupTable, RowTtl, Skew, SourceOfPlan, ToChangelog
}

/**
 * Reads the streams of a query below `to_changelog` as changelogs, and each source once.
 *
 * {{{
 *   ToChangelog                    ToChangelog streaming
 *   +- Aggregate           =>      +- Aggregate
 *      +- stream                      +- FromChangelog, inserts only
 *                                        +- stream
 * }}}
 *
 * Runs when the function is called, and again when more of the query below is resolved.
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

  /** Rejects hints on streams: streams are insert-only, and Spark reads them. */
  private def checkHints(plan: LogicalPlan): Unit = plan
    .collectWithSubqueries { case source: FromChangelog => source.child }
    .flatMap(_.collectFirst {
      case _: RowTtl => ResolveRowTtl.invalid("place", "a stream", Misplaced)
      case _: Skew => SkewHint.invalid("place", "a stream", Misplaced)
    })
    .foreach(throw _)

  private val Misplaced =
    "the hint is for tables: put it on the SELECT that reads from_changelog, or above a watermark"

  /**
   * Corrects references to common table expressions that were streams, and are changelogs now.
   */
  private def readCommonTables(plan: LogicalPlan): LogicalPlan =
    AnalysisHelper.allowInvokingTransformsInAnalyzer {
      plan.transformUpWithSubqueries {
        case reference: CTERelationRef if reference.isStreaming =>
          reference.copy(isStreaming = false)
      }
    }

  /**
   * Reads every stream outside `from_changelog` as an insert-only changelog. The stream includes
   * its watermark, because Spark allows watermarks on streams only.
   */
  private def wrapStreams(plan: LogicalPlan): LogicalPlan = plan match {
    case changelog: FromChangelog => changelog
    case stream if isRawStream(stream) => FromChangelog.ofInserts(stream, streaming = true)
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

  /** The plan of a common table expression is known after inlining. */
  private def isStream(leaf: LeafNode): Boolean =
    leaf.isStreaming && !leaf.isInstanceOf[CTERelationRef]
}

/**
 * Merges several equal readings of a source into one source.
 *
 * {{{
 *   Join                          Join
 *   :- FromChangelog [k#1]        :- FromChangelog [k#1]
 *   :  +- words [k#1]       =>    :  +- words [k#1]
 *   +- FromChangelog [k#2]        +- Project [k#1 AS k#2]
 *      +- words [k#2]                +- FromChangelog [k#1]
 *                                       +- words [k#1]
 * }}}
 *
 * Spark considers the readings of one view different streams, because their columns differ. Each
 * reading would have separate offsets, and a batch could contain different rows of each reading.
 * Separately created streams and different ways of reading stay separate.
 *
 * The rule also numbers the sources, and copies of a common table expression keep the number.
 * Without numbers, sources with equal columns look equal in a batch without input.
 */
object ReadSourcesOnce extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = SeparateSubqueries {
    if (!conf.getConf(ChangelogConf.SHARE_EQUAL_PARTS_ENABLED) || !keepsApart(plan)) plan
    else once(plan, _ => true)
  }

  /** Merges and numbers the sources for which `mayBeMerged` is true. */
  private[analysis] def once(
      plan: LogicalPlan,
      mayBeMerged: FromChangelog => Boolean): LogicalPlan = {
    val known = mutable.Map.empty[Reading, FromChangelog]
    AnalysisHelper.allowInvokingTransformsInAnalyzer {
      plan.transformUpWithSubqueries {
        case source: FromChangelog if mayBeMerged(source) =>
          val reading = Reading(source.canonicalized, source.collectLeaves().map(originOf))
          known.get(reading) match {
            case Some(first) if source.streaming && first.output != source.output =>
              readAs(first, source.output)
            case Some(first) => source.copy(number = first.number)
            case None =>
              known(reading) = source.copy(number = known.size + 1)
              known(reading)
          }
      }
    }
  }

  /**
   * Whether the sides of all joins keep separate columns. Spark's rule for redundant aliases
   * removes the aliases created here, except below these nodes.
   */
  private def keepsApart(plan: LogicalPlan): Boolean = plan.collectWithSubqueries {
    case node @ (_: LateralJoin | _: LookupTable) => node
    case node if node.children.size > 1 && !isSparkNode(node) => node
  }.isEmpty

  private def isSparkNode(node: LogicalPlan): Boolean = node match {
    case _: Join | _: Union | _: SetOperation | _: WithCTE => true
    case _ => false
  }

  /** The properties that two readings must share to be read once. */
  private case class Reading(changes: LogicalPlan, origins: Seq[Origin])

  /** An object created once per stream, and shared by all readings of the stream. */
  private final class Origin(val made: AnyRef) {
    override def equals(other: Any): Boolean = other match {
      case origin: Origin => origin.made eq made
      case _ => false
    }

    override def hashCode: Int = System.identityHashCode(made)
  }

  private def originOf(leaf: LogicalPlan): Origin = new Origin(leaf match {
    case stream: StreamingRelation =>
      stream.dataSource match {
        case _: SourceOfPlan => None
        case made => made
      }
    case stream: StreamingRelationV2 => stream.table
    case stream: StreamingExecutionRelation => stream.source
    case stream: LeafNode if stream.isStreaming => stream
    // Tables are equal if their plans are equal.
    case _ => None
  })

  /** Returns the output of a source under other column ids. */
  private[analysis] def readAs(source: FromChangelog, columns: Seq[Attribute]): LogicalPlan = {
    val named = source.output.zip(columns).map { case (read, column) =>
      val marked =
        new MetadataBuilder().withMetadata(column.metadata).putBoolean(Mark, true).build()
      Alias(read, column.name)(column.exprId, column.qualifier, Some(marked))
    }
    Project(named, source)
  }

  /** Whether a column was created by [[readAs]]. */
  private[analysis] def isMarked(column: NamedExpression): Boolean =
    column.metadata.contains(Mark)

  /**
   * Marks the columns of a repeated reading. Spark never considers an alias with its own metadata
   * redundant. Without the mark, a column read by only one side of a join would have equal ids on
   * both sides. A join pushed below a projection would then find the column twice.
   */
  private[analysis] val Mark = "spark.sql.changelog.readOnceMore"
}

/**
 * Merges and numbers the sources of several `to_changelog`s together, as in a statement set. The
 * parts of different queries can then be compared.
 */
object ReadSourcesOfQueriesOnce extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    val queries = plan.collect { case root: ToChangelog if root.streaming => root }
    if (queries.size < 2) plan else ReadSourcesOnce.once(plan, isNumbered)
  }

  /** Whether a source has a number, and the query is not running. Batches keep the numbers of the query. */
  private def isNumbered(source: FromChangelog): Boolean = source.number > 0 &&
    source.collectLeaves().exists {
      case _: StreamingRelation | _: StreamingRelationV2 => true
      case _ => false
    }
}

/** Removes the marks of repeated readings. Runs after Spark's rules for aliases. */
object RemoveReadMarks extends Rule[LogicalPlan] {
  import ReadSourcesOnce.Mark

  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformAllExpressions {
    case alias: Alias if alias.explicitMetadata.exists(_.contains(Mark)) =>
      val metadata = alias.explicitMetadata.map(unmarked)
      Alias(alias.child, alias.name)(alias.exprId, alias.qualifier, metadata)
    case column: AttributeReference if column.metadata.contains(Mark) =>
      column.withMetadata(unmarked(column.metadata))
  }

  private def unmarked(metadata: Metadata) =
    new MetadataBuilder().withMetadata(metadata).remove(Mark).build()
}

/**
 * Inlines common table expressions read by `to_changelog`.
 *
 * {{{
 *   WithCTE                               ToChangelog streaming
 *   :- CTERelationDef 0                   +- Aggregate
 *   :  +- Aggregate                =>        +- FromChangelog
 *   :     +- words                              +- words
 *   +- ToChangelog
 *      +- CTERelationRef 0
 * }}}
 *
 * Only after inlining is it known which streams the query reads. Runs when everything else is
 * resolved. Spark would inline later, in the optimizer. Queries without `to_changelog` stay
 * unchanged.
 */
object InlineCommonTables extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(isChangelogNode)) plan
    else {
      AnalysisHelper.allowInvokingTransformsInAnalyzer {
        SparkRules.inlineCommonTables(plan).transformUp { case root: ToChangelog =>
          ReadStreams(root)
        }
      }
    }

  private def isChangelogNode(plan: LogicalPlan): Boolean = plan match {
    case common: WithCTE => common.exists(readsCommonTable)
    case _ => false
  }

  private def readsCommonTable(plan: LogicalPlan): Boolean =
    plan.isInstanceOf[ToChangelog] &&
      plan.collectWithSubqueries { case reference: CTERelationRef => reference }.nonEmpty
}
