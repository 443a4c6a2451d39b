// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.MaxBy
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
import org.apache.spark.sql.types.{BooleanType, StringType}
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.errors.ChangelogErrors
import org.apache.spark.sql.changelog.plans.FromChangelog

/**
 * Completes the newest row of each key by the values that its change did not send, from the newest
 * changes that did, as `ChangelogNormalize` does it from its state.
 *
 * @param unavailable
 *   names the columns a change did not send
 * @param order
 *   orders the changes of one key
 */
private[rewrite] class StoredValues(
    source: FromChangelog,
    unavailable: Attribute,
    order: Expression) {

  private val newestSent: Map[ExprId, Alias] = {
    val key = AttributeSet(source.key)
    source.output
      .filterNot(key.contains)
      .map { column =>
        val sent = MaxBy(CreateStruct(Seq(column)), order)
          .toAggregateExpression(isDistinct = false, Some(Not(isMissing(column, unavailable))))
        column.exprId -> Alias(sent, s"_sent_${column.name}")()
      }
      .toMap
  }

  def aggregates: Seq[NamedExpression] =
    source.output.flatMap(column => newestSent.get(column.exprId))

  /** The value of a column: as `sent` by the newest change, or else by the newest that did. */
  def complete(column: Attribute, sent: Expression, newest: Alias): Expression =
    newestSent.get(column.exprId).fold(sent) { stored =>
      val missing =
        isMissing(column, GetStructField(newest.toAttribute, source.output.size + 1))
      val key = ToPrettyString(
        CreateStruct(source.key.map(k => GetStructField(newest.toAttribute, indexOf(k)))),
        Some("UTC"))
      val name = Literal(UTF8String.fromString(column.name), StringType)
      val fails =
        StaticInvoke(StoredValues.getClass, BooleanType, "fail", Seq(key, name))
      val earlier = If(
        And(IsNull(stored.toAttribute), fails),
        Literal(null, column.dataType),
        GetStructField(stored.toAttribute, 0))
      If(missing, earlier, sent)
    }

  private def indexOf(column: Attribute): Int =
    source.output.indexWhere(_.exprId == column.exprId)

  private def isMissing(column: Attribute, names: Expression): Expression = {
    val name = Literal(UTF8String.fromString(column.name), StringType)
    Coalesce(Seq(ArrayContains(names, name), Literal(false)))
  }
}

private[changelog] object StoredValues {

  /** Called from generated code. */
  def fail(key: UTF8String, column: UTF8String): java.lang.Boolean =
    throw ChangelogErrors.valueUnavailable(key.toString, column.toString)
}
