// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.functions

import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry.TableFunctionBuilder
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types.StringType

import org.apache.spark.sql.changelog.analysis.{ReadSourcesOnce, TtlHint}
import org.apache.spark.sql.changelog.errors.ChangelogErrors
import org.apache.spark.sql.changelog.plans.{
  FromChangelog,
  InputMode,
  RowTtl,
  StateTtl,
  ToChangelog
}
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode, RowKind}

/**
 * The SQL table function `to_changelog`: the changes of a query's result.
 *
 * {{{
 *   to_changelog(TABLE(query) [, mode] [, key] [, change_type])
 * }}}
 *
 *   - `mode`: `'retract'` (all row kinds), `'upsert'` (by key, no before images) or `'append'`
 *     (inserts only; refuses a query that updates or deletes)
 *   - `key`: the columns by which the reader replaces rows, for `'upsert'`
 *   - `change_type`: what the column that tells the change type is called, `_change_type` without it
 */
object ToChangelogFunction {
  val Name = "to_changelog"

  val description: (FunctionIdentifier, ExpressionInfo, TableFunctionBuilder) = (
    FunctionIdentifier(Name),
    FunctionArguments.info(Name, "Gives the changes of a query's result"),
    build _)

  private def build(expressions: Seq[Expression]): LogicalPlan = {
    val arguments = new FunctionArguments(Name, Seq("mode", "key", "change_type"), expressions)
    val mode = arguments.choice("mode", OutputMode.values).getOrElse(OutputMode.Retract)
    val changeType = arguments.text("change_type").getOrElse(RowKind.ChangeTypeColumnName)
    if (changeType.isEmpty) {
      throw arguments.invalid("change_type", "''", "the name of a column is expected")
    }
    findColumn(arguments.source, changeType).foreach { column =>
      throw ChangelogErrors.columnReserved(
        column.name,
        "tells the change type of each row it gives",
        "Let that be called otherwise, as with change_type => 'op'; or, if the column tells the " +
          "change type of the query's rows, read them with from_changelog first.")
    }
    apply(arguments.source, mode, arguments.columns("key"), changeType)
  }

  private def findColumn(query: LogicalPlan, name: String): Option[Attribute] =
    query.output.find(_.name.equalsIgnoreCase(name))

  /** A name for the change type that no column of the query has. */
  private def freeName(query: LogicalPlan): String = {
    val name = RowKind.ChangeTypeColumnName
    Iterator
      .iterate(1)(_ + 1)
      .map(number => if (number == 1) name else s"${name}_$number")
      .find(findColumn(query, _).isEmpty)
      .get
  }

  /** The same under a name for the change type that is still free. */
  def apply(query: LogicalPlan, mode: OutputMode, key: Seq[Attribute]): ToChangelog =
    apply(query, mode, key, freeName(query))

  /** The changes of `query`, whose raw streams are read as insert-only changelogs. */
  private def apply(
      query: LogicalPlan,
      mode: OutputMode,
      key: Seq[Attribute],
      changeTypeName: String): ToChangelog = {
    query.foreach {
      case _: ToChangelog =>
        throw ChangelogErrors.nested(
          Name,
          Name,
          "Apply to_changelog once, to the whole query; use from_changelog to read changes again.")
      case _ =>
    }
    query.collect { case node => RowKind.find(node.output) }.flatten.headOption.foreach {
      column =>
        throw ChangelogErrors.columnReserved(
          column.name,
          "keeps the kind of each row while it works",
          s"Select it under another name where it is read, as in SELECT * EXCEPT (${column.name}), " +
            s"${column.name} AS `${column.name}_1`.")
    }
    val changeType = AttributeReference(changeTypeName, StringType, nullable = false)()
    overStreams(ToChangelog(mode, key, streaming = false, changeType, query))
  }

  /** The same once more, when more of the query below is known. */
  private[changelog] def overStreams(root: ToChangelog): ToChangelog = {
    root.child
      .collectWithSubqueries { case StateTtl(scala.util.Left(problem), _) => problem }
      .foreach(throw _)
    val streams = root.child.collectWithSubqueries {
      case leaf: LeafNode if isStream(leaf) => leaf
    }
    val read = readCommonTables(wrapStreams(root.child))
    checkRowTtls(read)
    root.copy(streaming = streams.nonEmpty, child = ReadSourcesOnce(read))
  }

  /** The rows of a stream come and never go. */
  private def checkRowTtls(plan: LogicalPlan): Unit = plan
    .collectWithSubqueries { case source: FromChangelog => source.child }
    .flatMap(_.collectFirst { case hint: RowTtl => hint })
    .foreach { _ =>
      throw TtlHint.Row.invalid(
        "place",
        "a stream",
        "it is for tables: let it stand on the SELECT that reads from_changelog, or above a watermark")
    }

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
    case _: Project | _: Filter | _: SubqueryAlias | _: View | _: EventTimeWatermark |
        _: StateTtl =>
      isPlainStream(plan.children.head)
    case _ => false
  }

  /** What a reference to a common table expression stands for is known once it is inlined. */
  private def isStream(leaf: LeafNode): Boolean =
    leaf.isStreaming && !leaf.isInstanceOf[CTERelationRef]
}
