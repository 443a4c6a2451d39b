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
 * Hands the changes of a query to its reader: the rewritten form of [[ToChangelog]].
 *
 * @param kind
 *   the row kind of `child`, none if it is insert-only
 * @param pairBy
 *   if `-U` and `+U` of one key stand next to each other in `child`, that key: a half left alone
 *   by a filter then becomes `-D` or `+I`, and a pair that says nothing is dropped
 * @param nettedBy
 *   columns of which the result holds one change per batch at most: all its rows are in one task,
 *   side by side. None if no such columns are known
 * @param sendsUpdateBefore
 *   whether the reader wants `update_preimage`
 * @param columns
 *   the columns of the result
 * @param changeType
 *   the column that tells the change type
 * @param key
 *   the columns by which the reader replaces rows: what it said, or what was chosen for a reader that
 *   gets no old rows. There is one change per key then
 * @param upsertKeys
 *   columns that identify a row of the result, smallest first
 * @param explanation
 *   what EXPLAIN says about the query
 */
case class ChangelogOutput(
    kind: Option[Attribute],
    pairBy: Option[Seq[Attribute]],
    nettedBy: Option[Seq[Attribute]],
    sendsUpdateBefore: Boolean,
    columns: Seq[Attribute],
    changeType: Attribute,
    key: Option[Seq[Attribute]],
    upsertKeys: Seq[Seq[Attribute]],
    explanation: Explanation,
    child: LogicalPlan)
    extends UnaryNode {

  override def output: Seq[Attribute] = columns :+ changeType

  override def producedAttributes: AttributeSet = AttributeSet(changeType)

  override def isStreaming: Boolean = true

  def explained: ExplainNode = explanation.tree

  override def simpleString(maxFields: Int): String = s"ChangelogOutput ${explanation.mode}"

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogOutput =
    copy(child = newChild)
}

/**
 * What EXPLAIN says of a planned query, made when it is asked for first: of most batches it never is.
 * Only itself is equal to it. It stays on the driver.
 *
 * @param mode
 *   the row kinds the query sends
 */
final class Explanation private (val mode: String, @transient private val make: () => ExplainNode)
    extends Serializable {
  @transient lazy val tree: ExplainNode = make()
}

object Explanation {
  def apply(mode: String)(tree: => ExplainNode): Explanation = new Explanation(mode, () => tree)
}

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

/**
 * Nets a batch's changes so that one change per key is left.
 *
 * @param key
 *   the columns by which changes are netted; all columns if rows have no key
 * @param pairs
 *   whether a row that goes and one that comes under the same key are an update
 * @param replaces
 *   whether old rows are left out, so that a `+U` alone is an update
 * @param inputKind
 *   the row kind of `child`
 * @param outputKind
 *   the row kind of the result
 * @param inPlace
 *   whether only changes are netted that meet in a task as it is: what is left may cancel out yet
 */
case class ChangelogConsolidate(
    key: Seq[Attribute],
    pairs: Boolean,
    replaces: Boolean,
    inputKind: Attribute,
    outputKind: Attribute,
    child: LogicalPlan,
    inPlace: Boolean = false)
    extends UnaryNode {

  override def output: Seq[Attribute] =
    child.output.filterNot(_.exprId == inputKind.exprId) :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(outputKind)

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogConsolidate =
    copy(child = newChild)
}

/**
 * Reads its input to the end, even if its consumer stops before: operators that keep state have
 * taken in a batch only then. A join of Spark's stops when its other side has no more rows.
 */
case class ChangelogDrain(child: LogicalPlan) extends UnaryNode {

  override def output: Seq[Attribute] = child.output

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogDrain =
    copy(child = newChild)
}
