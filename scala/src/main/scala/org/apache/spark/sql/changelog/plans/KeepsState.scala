// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Expression, Unevaluable}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.{TreeNode, TreeNodeTag}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, NullType}
import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.config.ChangelogConf

/** A node that becomes an operator with state. */
trait KeepsState { this: LogicalPlan =>

  /** The operator's number in the query, which names the folder of its state. */
  def operatorId: Long
}

/**
 * One table kept in an operator's state store, as EXPLAIN shows it.
 *
 * @param table
 *   what it is called, such as `groups` or `left rows`
 * @param key
 *   the columns it is looked up by
 * @param value
 *   what is kept per key
 * @param boundedBy
 *   what keeps it from growing for ever, such as `a watermark on ts`, or `unbounded`
 */
final case class StateTable(table: String, key: Seq[String], value: String, boundedBy: String) {

  /** Whether an entry stays until a change removes it. */
  def keepsAll: Boolean = !StateTable.Forgets.exists(boundedBy.contains(_))

  override def toString: String = s"$table: ${key.mkString("(", ", ", ")")} → $value, $boundedBy"
}

object StateTable {

  /** What bounds a table that no watermark does: nothing, unless the session has a TTL. */
  def unbounded: String = if (ttl == 0) Unbounded else forgotten

  /** What bounds a table that `bound` does too. */
  def boundedBy(bound: String): String = if (ttl == 0) bound else s"$bound, $forgotten"

  /** Whether a table, as it is shown, has a TTL. */
  def hasTtl(shown: String): Boolean = shown.contains(Forgotten)

  val Unbounded = "unbounded"

  private val Forgotten = "forgotten"

  private val Forgets = Seq("watermark", Forgotten)

  private def ttl: Long = SQLConf.get.getConf(ChangelogConf.STATE_TTL)

  private def forgotten: String =
    s"$Forgotten ${Utils.msDurationToString(ttl)} after its last change"
}

/**
 * Marks operators, logical or physical, whose state is that of an earlier query. In the batch in which
 * the query that takes it over begins, such an operator emits all rows of its result, as if they had
 * just come.
 */
object StoredResult {
  private val tag = TreeNodeTag[Unit]("changelogStoredResult")

  def mark(operator: TreeNode[_]): Unit = operator.setTagValue(tag, ())

  def unmark(operator: TreeNode[_]): Unit = operator.unsetTagValue(tag)

  def isWanted(operator: TreeNode[_]): Boolean = operator.getTagValue(tag).isDefined
}

/**
 * Parameters that a logical node and the operator it is planned as have in common, listed once.
 *
 * An expression, as the specification of a window is one of Spark's: so Spark sees the columns among
 * the parameters where it prunes and renames those below, and plans their subqueries. No row has a
 * value of it.
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

  /** The expressions of a parameter: itself, or those in a sequence or an option. */
  private def expressionsIn(parameter: Any): Seq[Expression] = parameter match {
    case expression: Expression => Seq(expression)
    case several: Seq[_] => several.flatMap(expressionsIn)
    case option: Option[_] => option.toSeq.flatMap(expressionsIn)
    case _ => Nil
  }

  /** The parameter with the next expressions for its own. */
  private def replaced(parameter: Any, remaining: Iterator[Expression]): Any = parameter match {
    case _: Expression => remaining.next()
    case several: Seq[_] => several.toVector.map(replaced(_, remaining))
    case option: Option[_] => option.map(replaced(_, remaining))
    case other => other
  }
}
