// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.DeclarativeAggregate
import org.apache.spark.sql.catalyst.trees.UnaryLike
import org.apache.spark.sql.types.{BooleanType, DataType}

/**
 * The value a group is shown by, where its rows may spell it differently, as texts of a collation:
 * the first one it was given. It stays until the group goes, whichever of its rows go before.
 */
case class GroupValue(child: Expression) extends DeclarativeAggregate with UnaryLike[Expression] {
  private lazy val value = AttributeReference("value", child.dataType)()
  private lazy val isSet = AttributeReference("isSet", BooleanType, nullable = false)()

  override def prettyName: String = "group_value"

  override def nullable: Boolean = child.nullable

  override def dataType: DataType = child.dataType

  override lazy val aggBufferAttributes: Seq[AttributeReference] = Seq(value, isSet)

  override lazy val initialValues: Seq[Expression] =
    Seq(Literal(null, child.dataType), Literal(false))

  override lazy val updateExpressions: Seq[Expression] =
    Seq(If(isSet, value, child), Literal(true))

  override lazy val mergeExpressions: Seq[Expression] =
    Seq(If(isSet.left, value.left, value.right), Or(isSet.left, isSet.right))

  override lazy val evaluateExpression: Expression = value

  override protected def withNewChildInternal(newChild: Expression): GroupValue =
    copy(child = newChild)
}
