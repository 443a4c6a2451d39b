// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{
  Attribute, AttributeSet, Expression, Unevaluable
}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.catalyst.trees.{TreeNode, TreeNodeTag}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, NullType}
import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.config.ChangelogConf

/** A logical node of a stateful operator. */
trait KeepsState { this: LogicalPlan =>

  /** The operator's number in the query. The number names the folder of the operator's state. */
  def operatorId: Long
}

/** A logical node of an operator that stores rows of its input with all their columns. */
trait StoresRows extends UnaryNode with KeepsState {

  /** The row kind of the input, or None for an insert-only input. */
  def inputKind: Option[Attribute]

  /** The row kind of the result. */
  def outputKind: Attribute

  /** The columns of a row, without its kind. */
  def columns: Seq[Attribute] = RowKind.without(inputKind, child.output)

  override def output: Seq[Attribute] = columns :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(outputKind)

  @transient override lazy val references: AttributeSet = child.outputSet
}

/**
 * A table in an operator's state store, as shown by EXPLAIN.
 *
 * @param table
 *   the name, such as `groups` or `left rows`
 * @param key
 *   the key columns
 * @param value
 *   the stored value of a key
 * @param boundedBy
 *   the limit of the table's growth, such as `a watermark on ts`, or `unbounded`
 */
final case class StateTable(table: String, key: Seq[String], value: String, boundedBy: String) {

  /** Whether an entry remains until a change removes it. */
  def keepsAll: Boolean = !StateTable.Forgets.exists(boundedBy.contains(_))

  override def toString: String = s"$table: ${key.mkString("(", ", ", ")")} → $value, $boundedBy"
}

object StateTable {

  /** Returns the bound of a table without a watermark: none, or the session's TTL. */
  def unbounded: String = if (ttl == 0) Unbounded else forgotten

  /** Returns the bound of a table by the watermark of an event-time column, if there is one. */
  def boundedByWatermark(column: Option[String]): String =
    column.fold(unbounded)(column => s"watermark on $column")

  /** Returns the bound of a table with the bound `bound`, including the session's TTL. */
  def boundedBy(bound: String): String = if (ttl == 0) bound else s"$bound, $forgotten"

  /** Whether a table, as shown by EXPLAIN, has a TTL. */
  def hasTtl(shown: String): Boolean = shown.contains(Forgotten)

  val Unbounded = "unbounded"

  private val Forgotten = "forgotten"

  private val Forgets = Seq("watermark", Forgotten)

  private def ttl: Long = SQLConf.get.getConf(ChangelogConf.STATE_TTL)

  private def forgotten: String =
    s"$Forgotten ${Utils.msDurationToString(ttl)} after its last change"
}

/**
 * Marks operators, logical or physical, that inherit the state of an earlier query. In the first
 * batch of the new query, a marked operator emits the whole result as inserts.
 */
object StoredResult {
  private val tag = TreeNodeTag[Unit]("changelogStoredResult")

  def mark(operator: TreeNode[_]): Unit = operator.setTagValue(tag, ())

  def unmark(operator: TreeNode[_]): Unit = operator.unsetTagValue(tag)

  def isWanted(operator: TreeNode[_]): Boolean = operator.getTagValue(tag).isDefined
}

/**
 * Parameters shared by a logical node and its operator, listed once.
 *
 * A group is an expression, like Spark's window specification. Spark therefore sees the columns of the parameters when
 * it prunes and renames columns below, and plans their subqueries. A group is never evaluated.
 */
trait ParameterGroup extends Expression with Unevaluable {

  @transient override lazy val children: Seq[Expression] =
    productIterator.flatMap(ParameterGroup.expressionsIn).toVector

  override def nullable: Boolean = false

  override def dataType: DataType = NullType

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]): Expression = {
    val remaining = newChildren.iterator
    makeCopy(
      productIterator
        .map(ParameterGroup.replaced(_, remaining).asInstanceOf[AnyRef])
        .toArray)
  }
}

private object ParameterGroup {

  /**
   * Returns the expressions of a parameter: the parameter, or the elements of a sequence or an option.
   */
  private def expressionsIn(parameter: Any): Seq[Expression] = parameter match {
    case expression: Expression => Seq(expression)
    case several: Seq[_] => several.flatMap(expressionsIn)
    case option: Option[_] => option.toSeq.flatMap(expressionsIn)
    case _ => Nil
  }

  /** Returns the parameter with its expressions replaced by the next ones. */
  private def replaced(parameter: Any, remaining: Iterator[Expression]): Any = parameter match {
    case _: Expression => remaining.next()
    case several: Seq[_] => several.toVector.map(replaced(_, remaining))
    case option: Option[_] => option.map(replaced(_, remaining))
    case other => other
  }
}
