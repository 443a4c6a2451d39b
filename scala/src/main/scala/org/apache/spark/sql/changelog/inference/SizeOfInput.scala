// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.compat.RunningStream
import org.apache.spark.sql.changelog.plans.{FromChangelog, RowTtl}
import org.apache.spark.sql.changelog.sources.tables.TableStatistics

/**
 * How much the rows of a node take that may be kept, now, by statistics of the tables below. It is no more than that: what
 * a filter lets through is not guessed.
 *
 * @param rows
 *   none if only the size is known
 * @param tables
 *   those whose statistics tell
 */
private[inference] final case class SizeOfInput(
    rows: Option[BigInt],
    bytes: BigInt,
    tables: Seq[String]) {

  private def +(other: SizeOfInput): SizeOfInput = SizeOfInput(
    rows.zip(other.rows).map { case (one, two) => one + two },
    bytes + other.bytes,
    (tables ++ other.tables).distinct)

  override def toString: String = {
    val count = rows.map(rows => f"$rows%,d rows, ").mkString
    s"now up to $count${Utils.bytesToString(bytes)}, by statistics of ${tables.mkString(", ")}"
  }
}

private[inference] object SizeOfInput {

  /**
   * That of several inputs together. None if anything below tells nothing, and in a batch that runs, where
   * sources are just what has come.
   */
  def apply(inputs: Seq[LogicalPlan]): Option[SizeOfInput] =
    SparkSession.getActiveSession
      .filter(RunningStream(_).isEmpty)
      .flatMap(session => sum(inputs.map(of(session, _))))

  private def sum(sizes: Seq[Option[SizeOfInput]]): Option[SizeOfInput] =
    if (sizes.isEmpty || sizes.exists(_.isEmpty)) None else Some(sizes.flatten.reduce(_ + _))

  private def of(session: SparkSession, plan: LogicalPlan): Option[SizeOfInput] = plan match {
    case _: Project | _: Filter | _: SubqueryAlias | _: FromChangelog | _: EventTimeWatermark |
        _: RowTtl | _: Sort | _: RepartitionOperation | _: Aggregate | _: Deduplicate |
        _: Distinct =>
      val child = plan.children.head
      of(session, child).map(below => below.copy(bytes = bytesOf(plan, child, below)))
    case union: Union => sum(union.children.map(of(session, _)))
    case leaf: LeafNode =>
      TableStatistics.of(session, leaf).map { known =>
        SizeOfInput(known.rows, known.bytes, Seq(known.table))
      }
    case _ => None
  }

  /** As Spark reckons the size of rows with other columns. */
  private def bytesOf(plan: LogicalPlan, child: LogicalPlan, below: SizeOfInput): BigInt =
    below.rows match {
      case Some(rows) => EstimationUtils.getOutputSize(plan.output, rows)
      case None =>
        below.bytes * EstimationUtils.getSizePerRow(plan.output) /
          EstimationUtils.getSizePerRow(child.output)
    }
}
