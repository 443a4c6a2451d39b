// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.Count
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.types.{BooleanType, IntegerType}
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.errors.SnapshotErrors

/** Refuses a snapshot that has several rows of one key, as `ChangelogNormalize` does. */
private[rewrite] class SnapshotKeys(isSnapshot: Attribute) {

  /** How many rows of the snapshot a key has. */
  val count: Alias = {
    val one = If(isSnapshot, Literal(1), Literal(null, IntegerType))
    Alias(Count(one).toAggregateExpression(), "_snapshot_rows")()
  }

  /**
   * @param grouped
   *   rows by key, with the count
   * @param key
   *   what the key of each is
   */
  def check(grouped: LogicalPlan, key: Seq[Expression]): LogicalPlan = {
    val text = ToPrettyString(CreateStruct(key), Some("UTC"))
    val fails = StaticInvoke(SnapshotKeys.getClass, BooleanType, "fail", Seq(text))
    Filter(Or(LessThanOrEqual(count.toAttribute, Literal(1L)), fails), grouped)
  }
}

private[changelog] object SnapshotKeys {

  /** Called from generated code. */
  def fail(key: UTF8String): java.lang.Boolean =
    throw SnapshotErrors.keyRepeated(key.toString.stripPrefix("{").stripSuffix("}"))
}
