// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.SparkContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.util.CollectionAccumulator

/**
 * What is noted of a query in a dry run: its tree, and the rows that each node sends. Only itself is
 * equal to it.
 */
final class WatchedChanges extends Serializable {
  import WatchedChanges._

  @transient @volatile private var known: Option[Explanation] = None
  @transient private lazy val places = mutable.SortedMap.empty[Int, Place]

  /** Says what EXPLAIN says of the query, as it was planned. */
  def explainedBy(explanation: Explanation): Unit = known = Some(explanation)

  /** None before a batch is planned. */
  def explained: Option[ExplainNode] = known.map(_.tree)

  /**
   * Begins to note what a node sends in one batch. Called on the driver.
   *
   * @param place
   *   that of the node in the tree, counted from its root down
   */
  def begin(place: Int, columns: Seq[Attribute], context: SparkContext): Rows = synchronized {
    val rows = context.collectionAccumulator[(Int, Seq[InternalRow])]
    places(place) = Place(columns, rows)
    rows
  }

  /** The rows of the batch that has been run, by the places of nodes, and the columns they have. */
  def take(): Seq[(Int, Seq[Attribute], Seq[InternalRow])] = synchronized {
    val taken = places.toSeq.map { case (place, Place(columns, noted)) =>
      // a task that was run twice has noted the same twice
      val byTask = noted.value.asScala.toMap
      (place, columns, byTask.toSeq.sortBy(_._1).flatMap(_._2))
    }
    places.clear()
    taken
  }
}

object WatchedChanges {

  /** The rows of one node, by the number of the task. */
  type Rows = CollectionAccumulator[(Int, Seq[InternalRow])]

  private case class Place(columns: Seq[Attribute], rows: Rows)
}

/**
 * Lets the rows be noted that a node sends; they pass through untouched.
 *
 * @param place
 *   that of the node in the tree that EXPLAIN shows, counted from its root down
 * @param columns
 *   those of the rows that are noted, the kind of change last if there are several
 */
case class WatchChanges(
    watched: WatchedChanges,
    place: Int,
    columns: Seq[Attribute],
    child: LogicalPlan)
    extends UnaryNode {

  override def output: Seq[Attribute] = child.output

  /** None is pruned that is noted. */
  @transient override lazy val references: AttributeSet = AttributeSet(columns)

  override protected def withNewChildInternal(newChild: LogicalPlan): WatchChanges =
    copy(child = newChild)
}
