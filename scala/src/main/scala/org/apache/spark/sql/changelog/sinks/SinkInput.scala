// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, RowOrdering}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.util.quoteIdentifier
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, StringType}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.errors.{ChangelogErrors, SinkErrors}
import org.apache.spark.sql.changelog.plans.{ChangelogOutput, ExplainNode}

/**
 * What a sink knows of the changes it is asked.
 *
 * @param sink
 *   the sink's name
 * @param changeType
 *   the column that tells the change type
 * @param columns
 *   the columns of the query's rows
 * @param sources
 *   where the changes come from; none if `to_changelog` is not part of the query, whose rows then
 *   only look like changes
 */
case class SinkInput(
    sink: String,
    changeType: Attribute,
    columns: Seq[Attribute],
    sources: Seq[ChangelogOutput]) {

  /** The only source: what is known of one says nothing of the rows of several. */
  private def source: Option[ChangelogOutput] =
    if (sources.size == 1) sources.headOption else None

  def columnNames: Seq[String] = columns.map(_.name)

  /** Whether rows only ever come. */
  def isInsertOnly: Boolean = sources.nonEmpty && sources.forall(SinkInput.isInsertOnly)

  /** Whether rows that are replaced don't come, but are found by their key. */
  def lacksOldRows: Boolean = sources.exists(SinkInput.replacedBy(_).isDefined)

  /**
   * The key to replace rows by: what the user names, else the query's. None for rows that only come;
   * refuses rows that change without a key, a key that doesn't identify a row, and one by which old
   * rows would not be found that the query leaves out.
   */
  def key(named: Option[String]): Option[Seq[String]] = {
    val asked =
      named
        .map(SinkInput.Name.findAllIn(_).map(_.trim).filter(_.nonEmpty).map(resolve).toSeq)
        .filter(_.nonEmpty)
    asked.orElse(wantedKey).foreach(check)
    asked.orElse(wantedKey).orElse(if (lacksOldRows) None else knownKeys.headOption).orElse {
      if (isInsertOnly) None else throw needsAppend
    }
  }

  /** The key as above, or none if rows can be told apart by nothing but all of their values. */
  def keyOrNone(named: Option[String]): Option[Seq[String]] =
    if (named.isEmpty && wantedKey.isEmpty && knownKeys.isEmpty && sources.nonEmpty) {
      if (lacksOldRows) throw needsAppend
      None
    } else key(named)

  /** Refuses values that can't be compared where rows are told apart by all of their values. */
  def checkComparable(key: Option[Seq[String]], isComparable: DataType => Boolean): Unit =
    if (key.isEmpty) {
      columns.find(column => !isComparable(column.dataType)).foreach { column =>
        throw SinkErrors.valueNotComparable(sink, column.name, column.dataType)
      }
    }

  /** Refuses a key by which rows would be lost or left behind, as far as it is known. */
  private def check(key: Seq[String]): Unit =
    if (source.nonEmpty && isKnownWhole(key)) {
      if (!knownKeys.exists(_.forall(key.contains))) {
        throw SinkErrors.keyNotUnique(sink, key, knownKeys)
      }
      // an old row that is left out agrees with the new one on the query's key, and so on its parts
      val by = source.flatMap(SinkInput.replacedBy).map(_.map(_.name))
      by.filterNot(by => key.forall(by.contains)).foreach { by =>
        throw SinkErrors.keyDiffers(sink, key, by)
      }
    }

  /** The query's own choice of a key, or what `to_changelog` was told, if it is among the columns. */
  private def wantedKey: Option[Seq[String]] =
    source.flatMap(_.key).filter(_.forall(here)).map { key =>
      key.map(column => columns.find(_.exprId == column.exprId).get.name)
    }

  /** Keys of the query whose columns are all here, by the names they have here. */
  private def knownKeys: Seq[Seq[String]] = source.toSeq.flatMap { output =>
    output.upsertKeys.filter(_.forall(here)).filter(SinkInput.isComparable).map { key =>
      columns.filter(AttributeSet(key).contains).map(_.name)
    }
  }

  private def here(column: Attribute): Boolean = AttributeSet(columns).contains(column)

  /** Whether the columns are the query's own, and not made from them after `to_changelog`. */
  private def isKnownWhole(key: Seq[String]): Boolean =
    columns.filter(column => key.contains(column.name)).forall { column =>
      source.exists(_.outputSet.contains(column))
    }

  /** A column by its very name, or by its name in backticks. */
  private def resolve(name: String): String = columnNames
    .find(SQLConf.get.resolver(_, name))
    .orElse(columnNames.find(column => SQLConf.get.resolver(quoteIdentifier(column), name)))
    .getOrElse(throw ChangelogErrors.columnNotFound(sink, "key", name, columnNames))

  private def needsAppend = source match {
    case Some(output) =>
      val changes = output.explained.symbols.flatMap(SinkInput.words.get).distinct
      SinkErrors.needsAppend(sink, producer(output.explained), changes.mkString(" and "))
    case None =>
      SinkErrors.optionMissing(sink, "key", "the columns that identify a row are needed")
  }

  /** The operator that first turns rows that come into rows that change. */
  private def producer(node: ExplainNode): String =
    node.children.find(_.symbols != Seq("I")) match {
      case Some(child) => producer(child)
      case None => s"${node.node} ${node.detail}".trim
    }
}

object SinkInput {

  /** Of several that are separated by commas. One with a comma in it stands in backticks. */
  private val Name = "(?:`(?:[^`]|``)*`|[^,])+".r

  private val words = Map("UA" -> "update", "D" -> "delete")

  /** Whether rows can be looked for by a key: maps are no more than grouped by. */
  def isComparable(key: Iterable[Attribute]): Boolean =
    key.forall(column => RowOrdering.isOrderable(column.dataType))

  /** What `optimized`, a query or a batch of it, gives to `sink` in the columns `output`, in their order. */
  def apply(sink: String, output: Seq[Attribute], optimized: LogicalPlan): SinkInput = {
    val sources = optimized.collect { case source: ChangelogOutput => source }
    // the optimizer removes an alias that has the name of its column, and with it the id of the analyzed column
    val columns = output.zip(optimized.output).map { case (column, made) =>
      column.withExprId(made.exprId)
    }
    val changeType = changeTypeOf(columns, sources.map(_.changeType)).getOrElse {
      throw SinkErrors.changeTypeMissing(sink, output.map(_.name))
    }
    SinkInput(sink, changeType, columns.filterNot(_ eq changeType), sources)
  }

  /**
   * The columns by which the rows of a batch are netted as they come, if its plan says so and nothing
   * stands above `to_changelog` that puts rows elsewhere or names the columns anew.
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

  /** The column that `to_changelog` has made, or else one of its name. */
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

  /** The key by which a query leaves out old rows, if it does. */
  private def replacedBy(source: ChangelogOutput): Option[Seq[Attribute]] =
    if (source.sendsUpdateBefore || isInsertOnly(source)) None else source.key
}
