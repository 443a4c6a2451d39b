// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, RowOrdering}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.util.quoteIdentifier
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, StringType}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.plans.{ChangelogOutput, ExplainNode}

/**
 * The changes of a query, as far as a sink knows them.
 *
 * @param sink
 *   the sink's name
 * @param changeType
 *   the column with the change type
 * @param columns
 *   the columns of the query's rows
 * @param sources
 *   the origins of the changes; empty for a query without `to_changelog`, whose rows only have the form of changes
 */
case class SinkInput(
    sink: String,
    changeType: Attribute,
    columns: Seq[Attribute],
    sources: Seq[ChangelogOutput]) {

  /** Returns the only source. The properties of one source do not hold for rows of several. */
  private def source: Option[ChangelogOutput] =
    if (sources.size == 1) sources.headOption else None

  def columnNames: Seq[String] = columns.map(_.name)

  /** Whether the changes are insert-only. */
  def isInsertOnly: Boolean = sources.nonEmpty && sources.forall(SinkInput.isInsertOnly)

  /** Whether before images are missing, so that replaced rows are found by key. */
  def lacksBeforeImages: Boolean = sources.exists(SinkInput.replacedBy(_).isDefined)

  /**
   * Returns the key to replace rows by: the user's key, else the query's, if the changes are not
   * insert-only. Fails in three cases:
   *
   *   - Rows change without a key.
   *   - The key does not identify a row.
   *   - The query omits before images, and the key does not find the old rows.
   */
  def key(named: Option[String]): Option[Seq[String]] = {
    val asked =
      named
        .map(SinkInput.Name.findAllIn(_).map(_.trim).filter(_.nonEmpty).map(resolve).toSeq)
        .filter(_.nonEmpty)
    asked.orElse(chosenKey).foreach(check)
    asked.orElse(chosenKey).orElse(if (lacksBeforeImages) None else knownKeys.headOption).orElse {
      if (isInsertOnly) None else throw needsAppend
    }
  }

  /** Returns the key like [[key]], or None if only the complete values identify a row. */
  def keyOrNone(named: Option[String]): Option[Seq[String]] =
    if (named.isEmpty && chosenKey.isEmpty && knownKeys.isEmpty && sources.nonEmpty) {
      checkBeforeImages()
      None
    } else key(named)

  /** Rejects changing rows. */
  def checkInsertOnly(): Unit = if (!isInsertOnly) throw needsAppend

  /** Rejects changes without before images. */
  def checkBeforeImages(): Unit = if (lacksBeforeImages) throw needsAppend

  /** If complete values identify rows, rejects incomparable types. */
  def checkComparable(key: Option[Seq[String]], isComparable: DataType => Boolean): Unit =
    if (key.isEmpty) {
      columns.find(column => !isComparable(column.dataType)).foreach { column =>
        throw analysis(
          "CHANGELOG_SINK_VALUE_NOT_COMPARABLE",
          "sink" -> sink,
          "column" -> column.name,
          "type" -> column.dataType.sql)
      }
    }

  /** Rejects a known key that would lose rows or leave rows behind. */
  private def check(key: Seq[String]): Unit =
    if (source.nonEmpty && isUnchangedFromQuery(key)) {
      if (!knownKeys.exists(_.forall(key.contains))) {
        throw analysis(
          "CHANGELOG_SINK_KEY_NOT_UNIQUE",
          "sink" -> sink,
          "key" -> key.mkString("(", ", ", ")"),
          "keys" -> (if (knownKeys.isEmpty) "none"
                     else knownKeys.map(_.mkString("(", ", ", ")")).mkString(" or ")))
      }
      // An omitted before image has an equal query key, and so equal parts of the query key.
      val by = source.flatMap(SinkInput.replacedBy).map(_.map(_.name))
      by.filterNot(by => key.forall(by.contains)).foreach { by =>
        throw analysis(
          "CHANGELOG_SINK_KEY_DIFFERS",
          "sink" -> sink,
          "key" -> key.mkString("(", ", ", ")"),
          "by" -> by.mkString("(", ", ", ")"))
      }
    }

  /**
   * Returns the key chosen by the query or given to `to_changelog`, if its columns are present.
   */
  private def chosenKey: Option[Seq[String]] =
    source.flatMap(_.key).filter(_.forall(here)).map { key =>
      key.map(column => columns.find(_.exprId == column.exprId).get.name)
    }

  /** Returns the query's keys with all columns present, by their current names. */
  private def knownKeys: Seq[Seq[String]] = source.toSeq.flatMap { output =>
    output.upsertKeys.filter(_.forall(here)).filter(SinkInput.isComparable).map { key =>
      columns.filter(AttributeSet(key).contains).map(_.name)
    }
  }

  private def here(column: Attribute): Boolean = AttributeSet(columns).contains(column)

  /** Whether the columns come unchanged from the query. */
  private def isUnchangedFromQuery(key: Seq[String]): Boolean =
    columns.filter(column => key.contains(column.name)).forall { column =>
      source.exists(_.outputSet.contains(column))
    }

  /** Returns a column by its exact name, or by its name in backticks. */
  private def resolve(name: String): String = columnNames
    .find(SQLConf.get.resolver(_, name))
    .orElse(columnNames.find(column => SQLConf.get.resolver(quoteIdentifier(column), name)))
    .getOrElse(
      throw analysis(
        "CHANGELOG_COLUMN_NOT_FOUND",
        "function" -> sink,
        "argument" -> "key",
        "column" -> name,
        "columns" -> columnNames))

  private def needsAppend = source match {
    case Some(output) =>
      val changes = output.explained.symbols.flatMap(SinkInput.words.get).distinct
      analysis(
        "CHANGELOG_SINK_NEEDS_APPEND",
        "sink" -> sink,
        "producer" -> producer(output.explained),
        "kinds" -> changes.mkString(" and "))
    case None =>
      analysis(
        "CHANGELOG_SINK_OPTION_INVALID",
        "sink" -> sink,
        "option" -> "key",
        "value" -> "not set",
        "expected" -> "the columns that identify a row are needed")
  }

  /** Returns the first operator with changes over insert-only input. */
  private def producer(node: ExplainNode): String =
    node.children.find(_.symbols != Seq("I")) match {
      case Some(child) => producer(child)
      case None => s"${node.node} ${node.detail}".trim
    }
}

object SinkInput {

  /** A name in a list separated by commas. Backticks enclose a name with a comma. */
  private val Name = "(?:`(?:[^`]|``)*`|[^,])+".r

  private val words = Map("UA" -> "update", "D" -> "delete")

  /** Whether rows can be searched by a key. Maps support only grouping. */
  def isComparable(key: Iterable[Attribute]): Boolean =
    key.forall(column => RowOrdering.isOrderable(column.dataType))

  /**
   * Returns the input of `sink` from `optimized`, a query or a batch, in the order of `output`.
   */
  def apply(sink: String, output: Seq[Attribute], optimized: LogicalPlan): SinkInput = {
    val sources = optimized.collect { case source: ChangelogOutput => source }
    // The optimizer removes an alias with the name of the aliased column, and with the alias the
    // id of the analyzed column.
    val columns = output.zip(optimized.output).map { case (column, made) =>
      column.withExprId(made.exprId)
    }
    val changeType = changeTypeOf(columns, sources.map(_.changeType)).getOrElse {
      throw analysis(
        "CHANGELOG_SINK_CHANGE_TYPE_MISSING",
        "sink" -> sink,
        "columns" -> output.map(_.name))
    }
    SinkInput(sink, changeType, columns.filterNot(_ eq changeType), sources)
  }

  /**
   * Returns the columns by which a batch arrives netted. The plan above `to_changelog` must
   * neither move rows nor rename columns.
   */
  def nettedBy(optimized: LogicalPlan): Option[Seq[String]] = {
    def keyOf(plan: LogicalPlan): Option[Seq[Attribute]] = plan match {
      case source: ChangelogOutput => source.nettedBy
      case _: Project | _: Filter => keyOf(plan.children.head)
      case _ => None
    }
    keyOf(optimized).filter(AttributeSet(_).subsetOf(optimized.outputSet)).map { key =>
      key.map(column => optimized.output.find(_.exprId == column.exprId).get.name)
    }
  }

  /** Returns the change-type column of `to_changelog`, or else a column of that name. */
  private def changeTypeOf(output: Seq[Attribute], made: Seq[Attribute]): Option[Attribute] = {
    val names =
      if (made.isEmpty) Seq(RowKind.ChangeTypeColumnName) else made.map(_.name).distinct
    output
      .find(column => made.exists(_.exprId == column.exprId))
      .orElse(output.find(column => names.exists(column.name.equalsIgnoreCase)))
      .filter(_.dataType.isInstanceOf[StringType])
  }

  private def isInsertOnly(source: ChangelogOutput): Boolean =
    source.explained.symbols == Seq("I")

  /** Returns the key by which a query omits before images, if so. */
  private def replacedBy(source: ChangelogOutput): Option[Seq[Attribute]] =
    if (source.sendsUpdateBefore || isInsertOnly(source)) None else source.key
}
