// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.{StatefulOperatorCustomMetric, StatefulOperatorCustomSumMetric}
import org.apache.spark.sql.execution.streaming.state.{KeyStateEncoderSpec, PrefixKeyScanStateEncoderSpec, StateStore}
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.UpdateKind
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.execution.ChangelogStateWriter
import org.apache.spark.sql.changelog.identity.EntryPlacement
import org.apache.spark.sql.changelog.plans.JoinResult

/** An operator that keeps the rows of its inputs under a join key, in one store. */
private[join] trait JoinStateWriter extends ChangelogStateWriter { self: SparkPlan =>

  /** The inputs, in the order of the children. */
  protected def layout: JoinLayout

  /** How the result is emitted. */
  def result: JoinResult

  override def requiredChildDistribution: Seq[Distribution] =
    layout.sides.map(side => clusteredBy(side.key))

  override def requiredChildOrdering: Seq[Seq[SortOrder]] = layout.sides.map { side =>
    side.key.map(SortOrder(_, Ascending)) ++ (if (canSplit) side.changeOrder else Nil)
  }

  /**
   * Whether the changes of one join key may be joined some at a time. Then a row of the result may
   * come and go in one batch, which all but a reader of only the newest rows can net.
   */
  protected def canSplit: Boolean = result.updateKind != UpdateKind.OnlyUpdateAfter

  /** How many rows that change are held of each input and join key. */
  protected def atOnce: Int =
    if (canSplit) conf.getConf(ChangelogConf.JOIN_ROWS_AT_ONCE) else Int.MaxValue

  override def stateKeySchema: StructType = layout.keySchema

  override def stateValueSchema: StructType = layout.valueSchema

  // what comes first tells the sides apart
  override def placement: EntryPlacement =
    EntryPlacement.byColumns(layout.sides.head.key, first = 1)

  override def keyEncoder: KeyStateEncoderSpec =
    if (layout.isScanned) PrefixKeyScanStateEncoderSpec(stateKeySchema, layout.numPrefixColumns)
    else super.keyEncoder

  override protected def customStatefulOperatorMetrics: Seq[StatefulOperatorCustomMetric] =
    super.customStatefulOperatorMetrics ++ layout.sides.flatMap { side =>
      val name = side.name.capitalize
      Seq(
        StatefulOperatorCustomSumMetric(
          s"num${name}RowsAdded",
          s"number of ${side.name} rows added to state"),
        StatefulOperatorCustomSumMetric(
          s"num${name}RowsDropped",
          s"number of ${side.name} rows dropped from state"),
        StatefulOperatorCustomSumMetric(
          s"num${name}KeysChanged",
          s"number of join keys with changes of ${side.name} rows"))
    }

  protected def sideState(side: JoinSideLayout, store: StateStore): JoinSideState = {
    val name = side.name.capitalize
    JoinSideState(
      layout,
      side,
      store,
      unmatchedRetractions(),
      JoinSideMetrics(
        longMetric("numUpdatedStateRows"),
        longMetric("numRemovedStateRows"),
        longMetric(s"num${name}RowsAdded"),
        longMetric(s"num${name}RowsDropped"),
        longMetric(s"num${name}KeysChanged")))
  }
}
