// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, ExpressionSet}
import org.apache.spark.sql.catalyst.plans.logical.{
  LeafNode,
  LogicalPlan,
  Statistics,
  SubqueryAlias,
  UnaryNode,
  View
}

import org.apache.spark.sql.changelog.ModifyKindSet
import org.apache.spark.sql.changelog.errors.ChangelogErrors

/** Whether a source's changes carry usable before images. */
sealed abstract class InputMode(override val toString: String)

object InputMode {

  /** Every removed row is sent in full. */
  case object Retract extends InputMode("retract")

  /** Only the newest row per key is sent; what it replaces is known from state. */
  case object Upsert extends InputMode("upsert")

  val values: Seq[InputMode] = Seq(Retract, Upsert)
}

/**
 * Reads rows that describe changes as the table they describe.
 *
 * To Catalyst this node is a table, not a stream: everything above it is analyzed and optimized
 * as an ordinary query, and [[ToChangelog]] turns the result back into a stream.
 *
 * @param kind
 *   the row kind of each row of `child`, a non-null byte; none if every row is an insert
 * @param produces
 *   what the changes can do to the table
 * @param input
 *   whether before images are there
 * @param key
 *   columns that identify a row of the table, declared by the user; empty if none
 * @param sequence
 *   columns of `child` that order the changes of one key; empty for arrival order
 * @param skipsBadRows
 *   whether `kind` marks rows that can't be read, which are then skipped and counted
 * @param streaming
 *   whether the changes come batch by batch; if not, they are netted into a table at once
 * @param output
 *   the columns of the table: those of `child` without the change type
 * @param unavailable
 *   the names of columns whose values a change did not send, as an array; NULL for none. They stay
 *   as they are stored
 * @param number
 *   which of the query's sources this is, the same for each reading of it; 0 before they are counted
 * @param isKnownByNumber
 *   whether plans are compared by the number, and not by what lies below. Two sources without news
 *   look the same below
 * @param duplicates
 *   what to do with a second row of a key
 * @param reader
 *   the function that makes the changes of records by nodes of its own below; none if they come as
 *   they are
 * @param snapshot
 *   whether a row is one of the snapshot that the first batch begins with, and no change; none if there
 *   is no snapshot
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
    snapshot: Option[Attribute] = None)
    extends UnaryNode
    with StartedOnly {

  override protected def notStarted: AnalysisException =
    ChangelogErrors.changesNotAskedFor(reader.getOrElse("from_changelog"))

  override def isStreaming: Boolean = false

  override def maxRows: Option[Long] = None

  /** Whether the rows of each key are counted. */
  def checksKey: Boolean = duplicates != Duplicates.Trust

  /*
   * What a batch brings says nothing of the table: a plan that went by it would be another in each.
   * Where there is no news, Spark's optimizer makes a relation without rows of all that lies below,
   * and then its filters are gone, with what they say of rows and of columns that are never NULL.
   */

  override def stats: Statistics =
    if (streaming) Statistics(sizeInBytes = conf.defaultSizeInBytes) else super.stats

  override protected lazy val validConstraints: ExpressionSet =
    if (streaming) ExpressionSet() else child.constraints

  /** Leaves columns that can be NULL, and those that can't, as they were when the query was analyzed. */
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

  /** Whether `plan` reads changes that come batch by batch, but for what its subqueries read. */
  def streamsIn(plan: LogicalPlan): Boolean = plan.exists {
    case source: FromChangelog => source.streaming
    case _ => false
  }
}

/** Stands for what lies below a numbered source where plans are compared. */
private case class NumberedSource(number: Int, override val output: Seq[Attribute])
    extends LeafNode

/** What to do where a source gives a second row of a key, whose first is still there. */
sealed abstract class Duplicates(override val toString: String)

object Duplicates {

  /** The key is taken for one: nothing is kept to look it up. */
  case object Trust extends Duplicates("trust")

  /** Both rows are rows of the table; duplicates are counted, and a warning tells of the first. */
  case object Warn extends Duplicates("warn")

  case object Fail extends Duplicates("fail")

  val values: Seq[Duplicates] = Seq(Trust, Warn, Fail)
}

/**
 * What a query calls what it reads: after its view, or as it is called in the query where it has none.
 *
 * @param isOfView
 *   whether nothing below can be called otherwise
 */
final case class ReadName(name: Option[String], isOfView: Boolean = false) {

  /** The name below a node that may give one. */
  def below(node: LogicalPlan): ReadName = node match {
    case _ if isOfView => this
    case alias: SubqueryAlias => ReadName(ReadName.of(alias).orElse(name))
    case _: View => copy(isOfView = name.nonEmpty)
    case _ => this
  }
}

object ReadName {
  val Unknown: ReadName = ReadName(None)

  /** What the rows are called that a source reads. */
  def within(source: FromChangelog): Option[String] =
    source.child.collectFirst { case alias: SubqueryAlias => of(alias) }.flatten

  private def of(alias: SubqueryAlias): Option[String] =
    Some(alias.identifier.name).filterNot(isMadeUp)

  /** Whether PySpark has made up the name, for a data frame. */
  def isMadeUp(name: String): Boolean = name.startsWith("_pyspark") || name.startsWith("__")
}
