// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions.{
  Alias, Attribute, Expression, ExpressionSet, NamedExpression
}
import org.apache.spark.sql.catalyst.plans.logical.{
  LeafNode, LogicalPlan, OrderPreservingUnaryNode, Statistics, SubqueryAlias, UnaryNode, View
}

import org.apache.spark.sql.changelog.ModifyKindSet
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/** Whether a source's changes carry usable before images. */
sealed abstract class InputMode(override val toString: String)

object InputMode {

  /** Every removed row is sent in full. */
  case object Retract extends InputMode("retract")

  /** Only the newest row per key is sent. State knows the replaced row. */
  case object Upsert extends InputMode("upsert")

  val values: Seq[InputMode] = Seq(Retract, Upsert)
}

/**
 * Reads rows that describe changes, as the described table.
 *
 * Catalyst sees this node as a table instead of a stream. Everything above is analyzed and
 * optimized as an ordinary query, and [[ToChangelog]] turns the result back into a stream.
 *
 * @param kind
 *   the row kind of each row of `child`, a non-null byte; None if every row is an insert
 * @param produces
 *   the effects of changes on the table
 * @param input
 *   whether the changes have before images
 * @param key
 *   columns that identify a row of the table, declared by the user; empty if none
 * @param sequence
 *   columns of `child` that order the changes of one key; empty for arrival order
 * @param skipsBadRows
 *   whether `kind` marks unreadable rows, to be skipped and counted
 * @param streaming
 *   whether the changes arrive in batches; if not, they are netted into a table at once
 * @param output
 *   the columns of the table: the columns of `child` without the change type
 * @param unavailable
 *   the names of columns missing from a change, as an array; NULL for none. Missing columns keep their stored values.
 * @param number
 *   number of the source in the query, equal for each reading; 0 before sources are numbered
 * @param isKnownByNumber
 *   whether plans are compared by the number instead of the plan below. Two sources without input have equal plans.
 * @param duplicates
 *   the reaction to a second row of a key
 * @param reader
 *   the name of the function that parses records below; empty for plain rows
 * @param snapshot
 *   the column that distinguishes snapshot rows of the first batch from changes, if the source has a snapshot
 * @param repeatsBytes
 *   whether a retraction has the bytes of the retracted row. If not, 0.0 may retract -0.0, and a map
 *   may list its entries in another order.
 */
case class FromChangelog(
    kind: Option[Expression],
    produces: ModifyKindSet,
    input: InputMode,
    key: Seq[Attribute],
    sequence: Seq[Attribute],
    skipsBadRows: Boolean,
    streaming: Boolean,
    output: Seq[Attribute],
    child: LogicalPlan,
    unavailable: Option[Attribute] = None,
    number: Int = 0,
    isKnownByNumber: Boolean = false,
    duplicates: Duplicates = Duplicates.Trust,
    reader: Option[String] = None,
    snapshot: Option[Attribute] = None,
    repeatsBytes: Boolean = false)
    extends UnaryNode
    with StartedOnly {

  override protected def notStarted: AnalysisException =
    analysis("CHANGELOG_CHANGES_NOT_ASKED_FOR", "reader" -> reader.getOrElse("from_changelog"))

  override def isStreaming: Boolean = false

  override def maxRows: Option[Long] = None

  /** Whether the rows of each key are counted. */
  def checksKey: Boolean = duplicates != Duplicates.Trust

  /** Whether equal rows are given equal bytes, so that operators find the row of a retraction in their state. */
  def matchesRows: Boolean =
    input == InputMode.Retract && !repeatsBytes && kind.nonEmpty && !produces.isInsertOnly

  /*
   * The plan must not depend on a batch's rows, or it would differ from batch to batch. Without
   * input, Spark's optimizer replaces everything below by an empty relation. The constraints of
   * filters and of non-null columns are then gone.
   */

  override def stats: Statistics =
    if (streaming) Statistics(sizeInBytes = conf.defaultSizeInBytes) else super.stats

  override protected lazy val validConstraints: ExpressionSet =
    if (streaming) ExpressionSet() else child.constraints

  /** Keeps the nullability of columns as analyzed. */
  override def mapExpressions(f: Expression => Expression): this.type =
    super.mapExpressions { expression =>
      (expression, f(expression)) match {
        case (old: Attribute, column: Attribute) if streaming =>
          column.withNullability(old.nullable)
        case (_, other) => other
      }
    }

  override def simpleString(maxFields: Int): String = {
    val keyText = if (key.isEmpty) "" else key.map(_.name).mkString(" key=(", ", ", ")")
    s"FromChangelog input=$input$keyText"
  }

  override protected def doCanonicalize(): LogicalPlan =
    if (number == 0) super.doCanonicalize()
    else {
      val compared = if (isKnownByNumber) NumberedSource(number, child.output) else child
      copy(child = compared, number = 0, isKnownByNumber = false).canonicalized
    }

  override protected def withNewChildInternal(newChild: LogicalPlan): FromChangelog =
    copy(child = newChild)
}

object FromChangelog {

  /** Reads the rows of a plan as inserts. */
  def ofInserts(rows: LogicalPlan, streaming: Boolean): FromChangelog = FromChangelog(
    kind = None,
    ModifyKindSet.InsertOnly,
    InputMode.Retract,
    key = Nil,
    sequence = Nil,
    skipsBadRows = false,
    streaming,
    rows.output,
    rows)

  /** Whether `plan` reads changes in batches, ignoring its subqueries. */
  def streamsIn(plan: LogicalPlan): Boolean = plan.exists {
    case source: FromChangelog => source.streaming
    case _ => false
  }
}

/** Placeholder for the plan below a numbered source, for comparisons. */
private case class NumberedSource(number: Int, override val output: Seq[Attribute])
    extends LeafNode

/** The reaction to a second row of an existing key. */
sealed abstract class Duplicates(override val toString: String)

object Duplicates {

  /** The key is trusted to be unique, and nothing is stored for a check. */
  case object Trust extends Duplicates("trust")

  /**
   * Both rows are rows of the table. Duplicates are counted, and a warning reports the first one.
   */
  case object Warn extends Duplicates("warn")

  case object Fail extends Duplicates("fail")

  val values: Seq[Duplicates] = Seq(Trust, Warn, Fail)
}

/**
 * The name of a relation in a query: the name of its view, else the name in the query.
 *
 * @param isOfView
 *   whether the name is final, because it comes from a view
 */
final case class ReadName(name: Option[String], isOfView: Boolean = false) {

  /** Returns the name below a node that may set a name. */
  def below(node: LogicalPlan): ReadName = node match {
    case _ if isOfView => this
    case alias: SubqueryAlias => ReadName(ReadName.of(alias).orElse(name))
    case _: View => copy(isOfView = name.nonEmpty)
    case _ => this
  }
}

object ReadName {
  val Unknown: ReadName = ReadName(None)

  /** Returns the name of the rows read by a source. */
  def within(source: FromChangelog): Option[String] =
    source.child.collectFirst { case alias: SubqueryAlias => of(alias) }.flatten

  private def of(alias: SubqueryAlias): Option[String] =
    Some(alias.identifier.name).filterNot(isMadeUp)

  /** Whether PySpark generated the name, for a data frame. */
  def isMadeUp(name: String): Boolean = name.startsWith("_pyspark") || name.startsWith("__")
}

/**
 * Holds the sources of subqueries beside the rows of `query`, from analysis to optimization.
 *
 * Spark passes a batch's rows to streams that are nodes of a plan, and ignores streams within expressions.
 *
 * @param query
 *   the input of the node with the subqueries
 * @param sources
 *   the lifted sources; a [[LiftedSource]] replaces each in its subquery
 */
case class LiftedSources(query: LogicalPlan, sources: Seq[LogicalPlan]) extends LogicalPlan {

  override def children: Seq[LogicalPlan] = query +: sources

  override def output: Seq[Attribute] = query.output

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[LogicalPlan]): LiftedSources =
    copy(query = newChildren.head, sources = newChildren.tail)
}

/**
 * Placeholder for a lifted source in a subquery.
 *
 * @param index
 *   position among the [[LiftedSources]] below the node with the subquery
 * @param source
 *   the lifted source as analyzed, for comparisons of subqueries
 */
case class LiftedSource(index: Int, source: FromChangelog) extends LeafNode {

  override def output: Seq[Attribute] = source.output

  override def simpleString(maxFields: Int): String = s"LiftedSource $index"

  override protected def doCanonicalize(): LogicalPlan = source.canonicalized
}

/** Renames columns to the ids and names of given columns. */
object RenameColumns {
  def apply(columns: Seq[Attribute], wanted: Seq[Attribute]): Seq[NamedExpression] =
    wanted.zip(columns).map { case (other, column) =>
      if (other.exprId == column.exprId) column
      else Alias(column, other.name)(other.exprId, other.qualifier)
    }
}

/**
 * `OFFSET` below `to_changelog`. Spark rejects its own node in every stream.
 *
 * [[SkipRows]] becomes `OFFSET` again when a batch is optimized.
 *
 * @param count
 *   the number of skipped rows
 */
case class SkipRows(count: Expression, child: LogicalPlan) extends OrderPreservingUnaryNode {

  override def output: Seq[Attribute] = child.output

  override protected def withNewChildInternal(newChild: LogicalPlan): SkipRows =
    copy(child = newChild)
}

/**
 * SourceOfPlan: a data source with the rows of a plan. Two are equal if their plans are equal.
 * Further data sources are compared by identity, because each instance may have separate rows.
 */
trait SourceOfPlan
