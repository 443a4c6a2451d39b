// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.times

import org.apache.spark.sql.catalyst.expressions.{
  Attribute,
  AttributeSet,
  Coalesce,
  Expression,
  GetStructField
}
import org.apache.spark.sql.types.StructType

/**
 * A time that each row of a node has. Once the watermark has passed it the row is final: it no longer
 * comes or goes, but for what comes too late for the watermark.
 *
 * It is the latest of those of `latestOf` that are not NULL, so that any later time is one too. Without any a
 * row is final from the first batch on.
 */
private[inference] final case class ClosingTime(latestOf: Seq[ClosingTime.DelayedTime]) {

  /** The later of two times. */
  def and(other: ClosingTime): ClosingTime =
    ClosingTime((latestOf ++ other.latestOf).foldLeft(Seq.empty[ClosingTime.DelayedTime]) {
      (merged, time) =>
        merged.indexWhere(_.columns == time.columns) match {
          case -1 => merged :+ time
          case same => merged.updated(same, time.after(merged(same).delay))
        }
    })

  def isMadeOf(columns: AttributeSet): Boolean = latestOf.forall(_.columns.subsetOf(columns))

  /** The time with a delay, in ms, that is not shorter. */
  def after(delay: Long): ClosingTime = ClosingTime(latestOf.map(_.after(delay)))

  /** Whether it has come once a watermark that is `delay` ms behind has passed `column`. */
  def isNotAfter(column: Attribute, delay: Long): Boolean =
    latestOf.forall(time => time.delay <= delay && time.columns.contains(column))
}

private[inference] object ClosingTime {

  def apply(column: Attribute): ClosingTime = ClosingTime(
    Seq(DelayedTime(AttributeSet(column), 0L)))

  /**
   * @param columns
   *   event times, or windows of one, of which all that are not NULL are equal
   * @param delay
   *   what is added, in ms
   */
  final case class DelayedTime(columns: AttributeSet, delay: Long) {

    /** The time itself, or with a longer delay. */
    def after(other: Long): DelayedTime = copy(delay = math.max(delay, other))

    /** The event time, over rows of the columns `output`. */
    def time(output: Seq[Attribute]): Expression = {
      val times = output.filter(columns.contains).map { column =>
        column.dataType match {
          case window: StructType => GetStructField(column, window.fieldIndex("end"))
          case _ => column
        }
      }
      if (times.size == 1) times.head else Coalesce(times)
    }
  }
}
