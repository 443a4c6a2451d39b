// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.plans.logical.{EventTimeWatermark, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.unsafe.types.CalendarInterval

import org.apache.spark.sql.changelog.analysis._
import org.apache.spark.sql.changelog.plans.{Emission, ToChangelog}
import org.apache.spark.sql.changelog.sources.tables.ReadTableRows

/**
 * Pass: a step of a phase.
 *
 * @param why
 *   the reason for its place among the passes, for docs/contributing/phases.md
 */
final case class Pass(rule: Rule[LogicalPlan], why: String)

/**
 * The first phase: finds the sources, the current time and the hints of a query.
 *
 * Relies on nothing: its passes run among Spark's rules, from the parsed query to the optimized one. Spark sees an
 * ordinary query over tables all the time. [[ReadStreams]] has wrapped and numbered the sources when `to_changelog` is
 * called.
 *
 * At the end, below `to_changelog`:
 *
 *   - Every stream is below a [[org.apache.spark.sql.changelog.plans.FromChangelog]]. Equal readings have an equal
 *     number.
 *   - The current time is a [[org.apache.spark.sql.changelog.plans.PassingTime]].
 *   - A hint of this project is a node, `RowTtl` or `Skew`.
 *   - Names, views and common tables are gone.
 *   - Subqueries are expressions, or joins by Spark's rules. Their sources are in place, and their calls are hidden
 *     ([[KeepCalls]]).
 *   - Watermarks wait for the corrections of closed results.
 */
object ResolvePhase {

  /** With Spark's rules for hints, before names are resolved. */
  val hints: Seq[Pass] = Seq(
    Pass(ResolveRowTtl, "moves the hint to the table that it names, while the table has a name"),
    Pass(ResolveSkewHints, "the same; finds the columns later, when the table is resolved"))

  /** After Spark's rules of analysis. */
  val analysis: Seq[Pass] = Seq(
    Pass(InlineCommonTables, "the streams of a common table are known when it is inlined"),
    Pass(ReadSourcesOfQueriesOnce, "the sources of all queries are in place, and not yet lifted"),
    Pass(ResolveTableAsOf, "common tables are inlined, and sources are in place"),
    Pass(ResolvePassingTime, "Spark's optimizer would make the current time a constant"),
    Pass(AcceptOffset, "Spark's check rejects OFFSET over streams"),
    Pass(OrderBySequence, "any_value is not yet first, and sources are in place"),
    Pass(RecognizeLookupJoin, "reads resolved joins, before their sources are lifted"),
    Pass(RecognizeTemporalJoin, "the same, for the joins that look up no table"),
    Pass(LiftSources, "Spark runs no streams in subqueries; no later rule looks for them"))

  /** Before Spark's optimizer. */
  val lowering: Seq[Pass] = Seq(
    Pass(ReadTableRows, "followed tables become relations before Spark plans their scans"),
    Pass(LowerSources, "subqueries are whole again, for Spark's rules"),
    Pass(DropHints, "hints outside to_changelog would block Spark's rules"))

  /** With Spark's operator optimization. */
  val optimization: Seq[Pass] = Seq(
    Pass(ReadLookupTables, "all rows of a batch query arrive at once"),
    Pass(LiftSkew, "a hint above a filter does not block its pushdown"),
    Pass(PushThroughRowTtl, "the same, for a hint that stays a node"))

  /** Delays each watermark by the corrections, so that state lives as long as corrections are emitted. */
  def apply(root: ToChangelog): ToChangelog = root.emission match {
    case Emission.OnClose(corrections) if corrections > 0 =>
      val delayed = root.transformDownWithSubqueries { case watermark: EventTimeWatermark =>
        val delay = watermark.delay
        watermark.copy(delay =
          new CalendarInterval(delay.months, delay.days, delay.microseconds + corrections * 1000))
      }
      delayed.asInstanceOf[ToChangelog]
    case _ => root
  }
}
