// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Expression, Unevaluable}
import org.apache.spark.sql.types.{DataType, NullType}

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
