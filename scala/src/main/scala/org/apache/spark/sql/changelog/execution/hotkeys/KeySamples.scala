// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.hotkeys

import scala.jdk.CollectionConverters._

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.util.CollectionAccumulator

import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.inference.DescribeNode

/**
 * Lets the tasks of an operator look at the keys of their rows.
 *
 * @param keys
 *   of the rows of each child, in the order of the children; the first one's names stand for all
 * @param inputs
 *   the columns of each child
 */
private[execution] final class KeySamples private (
    keys: Seq[Seq[Expression]],
    inputs: Seq[Seq[Attribute]],
    timeZone: String,
    seen: CollectionAccumulator[SampledKeys])
    extends Serializable {
  private val names = keys.head.map(part => DescribeNode.expression(KeySamples.plain(part)))

  /** Passes a partition of a child on, and looks at some of its rows. */
  def noting(child: Int, partition: Int, rows: Iterator[InternalRow]): Iterator[InternalRow] = {
    val sample = open(partition)
    lazy val keyOf = UnsafeProjection.create(keys(child).map(KeySamples.plain), inputs(child))
    rows.map { row =>
      if (sample.takesNext()) sample.add(keyOf(row))
      row
    }
  }

  /** What a task looks at rows with. Generated code calls it, too. */
  def open(partition: Int): KeySample = {
    val sample = new KeySample(partition)
    Option(TaskContext.get()).foreach(_.addTaskCompletionListener[Unit](_ => tell(sample)))
    sample
  }

  private def tell(sample: KeySample): Unit = if (sample.rows > 0) {
    val counts = sample.keysOf(KeySamples.Remarkable).take(KeySamples.MostTold)
    seen.add(SampledKeys(sample.rows, counts.map { case (key, count) => describe(key) -> count }))
  }

  private def describe(key: UnsafeRow): String =
    names
      .zip(keys.head)
      .zipWithIndex
      .map { case ((name, part), index) =>
        val value = BoundReference(index, KeySamples.plain(part).dataType, nullable = true)
        s"$name = ${KeySamples.short(ToPrettyString(value, Some(timeZone)).eval(key).toString)}"
      }
      .mkString(", ")

  /** What all tasks have seen. Called on the driver, when the batch is done. */
  def all: Seq[SampledKeys] = seen.value.asScala.toSeq
}

private[execution] object KeySamples {

  /** None where no rows have a key. Called on the driver. */
  def apply(plan: SparkPlan, keys: Seq[Seq[Expression]]): Option[KeySamples] =
    Option.when(keys.exists(_.nonEmpty)) {
      new KeySamples(
        keys,
        plan.children.map(_.output),
        plan.conf.sessionLocalTimeZone,
        plan.session.sparkContext.collectionAccumulator[SampledKeys])
    }

  /** A part of a key as it was before it became one whose equal values have equal bytes. */
  private[hotkeys] def plain(part: Expression): Expression = part.transform {
    case CollationKey(child) => child
    case other => SparkRules.withoutNormalization(other)
  }

  /** A key that fewer rows of a task have is none that matters. */
  private val Remarkable = 9L

  /** No more keys can each have a third of the rows. */
  private val MostTold = 3

  private val MostChars = 60

  private def short(value: String): String =
    if (value.length <= MostChars) value else value.take(MostChars - 1) + "…"
}
