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
 * It is the latest of its parts that are not NULL, so that any later time is one too. Without parts a
 * row is final from the first batch on.
 */
private[inference] final case class ClosingTime(parts: Seq[ClosingTime.Part]) {

  /** The later of two times. */
  def and(other: ClosingTime): ClosingTime =
    ClosingTime((parts ++ other.parts).foldLeft(Seq.empty[ClosingTime.Part]) { (merged, part) =>
      merged.indexWhere(_.columns == part.columns) match {
        case -1 => merged :+ part
        case same => merged.updated(same, part.after(merged(same).delay))
      }
    })

  def isMadeOf(columns: AttributeSet): Boolean = parts.forall(_.columns.subsetOf(columns))

  /** The same, but with a delay, in ms, that is not shorter. */
  def after(delay: Long): ClosingTime = ClosingTime(parts.map(_.after(delay)))

  /** Whether it has come once a watermark that is `delay` ms behind has passed `column`. */
  def isNotAfter(column: Attribute, delay: Long): Boolean =
    parts.forall(part => part.delay <= delay && part.columns.contains(column))
}

private[inference] object ClosingTime {

  def apply(column: Attribute): ClosingTime = ClosingTime(Seq(Part(AttributeSet(column), 0L)))

  /**
   * @param columns
   *   event times, or windows of one, of which all that are not NULL are equal
   * @param delay
   *   what is added, in ms
   */
  final case class Part(columns: AttributeSet, delay: Long) {

    /** The same, or with a longer delay. */
    def after(other: Long): Part = copy(delay = math.max(delay, other))

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
