// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.SparkContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, RowOrdering}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.util.CollectionAccumulator

import org.apache.spark.sql.changelog.RowKind

/**
 * Passes the changes of a query to its reader: the rewritten form of [[ToChangelog]].
 *
 * @param kind
 *   the row kind of `child`, or None for an insert-only input
 * @param pairBy
 *   the key whose `-U` and `+U` are neighbors in `child`, if any. A filter may leave a single
 *   image, which becomes `-D` or `+I`. A pair of equal images is dropped.
 * @param nettedBy
 *   columns with at most one change per value and batch. The rows of a value are neighbors in one task.
 * @param sendsUpdateBefore
 *   whether the reader wants `update_preimage`
 * @param columns
 *   the columns of the result
 * @param changeType
 *   the column with the change type
 * @param key
 *   the columns by which the reader replaces rows: declared by the reader, or chosen for a reader
 *   without before images. Each key then has one change.
 * @param upsertKeys
 *   columns that identify a row of the result, smallest first
 * @param explanation
 *   the EXPLAIN tree of the query
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
 * The EXPLAIN tree of a planned query, created on demand, because most batches never need it.
 * Instances are equal only to themselves. The tree stays on the driver.
 *
 * @param mode
 *   the row kinds emitted by the query
 */
final class Explanation private (val mode: String, @transient private val make: () => ExplainNode)
    extends Serializable {
  @transient lazy val tree: ExplainNode = make()
}

object Explanation {
  def apply(mode: String)(tree: => ExplainNode): Explanation = new Explanation(mode, () => tree)
}

/**
 * WatchedChanges: the record of a dry run, with the EXPLAIN tree and the rows emitted by each
 * node. Instances are equal only to themselves.
 */
final class WatchedChanges extends Serializable {
  import WatchedChanges._

  @transient @volatile private var known: Option[Explanation] = None
  @transient private lazy val places = mutable.SortedMap.empty[Int, Place]

  /** Records the EXPLAIN tree of the planned query. */
  def explainedBy(explanation: Explanation): Unit = known = Some(explanation)

  /** Returns the recorded EXPLAIN tree, once a batch is planned. */
  def explained: Option[ExplainNode] = known.map(_.tree)

  /**
   * Starts recording the rows emitted by a node in one batch. Called on the driver.
   *
   * @param place
   *   position of the node in the tree, counted from the root down
   */
  def begin(place: Int, columns: Seq[Attribute], context: SparkContext): Rows = synchronized {
    val rows = context.collectionAccumulator[(Int, Seq[InternalRow])]
    places(place) = Place(columns, rows)
    rows
  }

  /** Returns and clears the rows of the finished batch, by node position, with their columns. */
  def take(): Seq[(Int, Seq[Attribute], Seq[InternalRow])] = synchronized {
    val taken = places.toSeq.map { case (place, Place(columns, noted)) =>
      // A repeated task has recorded rows twice.
      val byTask = noted.value.asScala.toMap
      (place, columns, byTask.toSeq.sortBy(_._1).flatMap(_._2))
    }
    places.clear()
    taken
  }
}

object WatchedChanges {

  /** The rows of one node, by task number. */
  type Rows = CollectionAccumulator[(Int, Seq[InternalRow])]

  private case class Place(columns: Seq[Attribute], rows: Rows)
}

/**
 * Records the rows emitted by a node, and passes them unchanged.
 *
 * @param place
 *   position of the node in the EXPLAIN tree, counted from the root down
 * @param columns
 *   the recorded columns; the row kind last, if the rows have a kind
 */
case class WatchChanges(
    watched: WatchedChanges,
    place: Int,
    columns: Seq[Attribute],
    child: LogicalPlan)
    extends UnaryNode {

  override def output: Seq[Attribute] = child.output

  /** Recorded columns must not be pruned. */
  @transient override lazy val references: AttributeSet = AttributeSet(columns)

  override protected def withNewChildInternal(newChild: LogicalPlan): WatchChanges =
    copy(child = newChild)
}

/**
 * Nets a batch's changes to one change per key.
 *
 * @param key
 *   the columns by which changes are netted; all columns for rows without a key
 * @param pairs
 *   whether a deleted and an inserted row with an equal key are an update
 * @param replaces
 *   whether before images are omitted, so that a single `+U` is an update
 * @param inPlace
 *   whether changes are netted within each task, without a shuffle; remaining changes may still cancel out
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

object ChangelogConsolidate {

  /** Nets the changes of `child` by a key. */
  def byKey(
      key: Seq[Attribute],
      child: LogicalPlan,
      pairs: Boolean = true,
      replaces: Boolean = false,
      inPlace: Boolean = false): ChangelogConsolidate = {
    val kind = RowKind.find(child.output).get
    ChangelogConsolidate(key, pairs, replaces, kind, RowKind.newAttribute(), child, inPlace)
  }

  /** Cancels equal rows of `child` out. */
  def byRow(
      columns: Seq[Attribute],
      child: LogicalPlan,
      inPlace: Boolean = false): ChangelogConsolidate =
    byKey(comparable(columns), child, pairs = false, inPlace = inPlace)

  /** Returns the columns by which equal rows meet. Maps are not comparable. */
  def comparable(columns: Seq[Attribute]): Seq[Attribute] =
    columns.filter(column => RowOrdering.isOrderable(column.dataType))
}

/**
 * Reads its input to the end, even if the consumer stops earlier. A stateful operator has processed a batch only at the
 * end of its input. Spark's join stops when the opposite side has no more rows.
 */
case class ChangelogDrain(child: LogicalPlan) extends UnaryNode {

  override def output: Seq[Attribute] = child.output

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogDrain =
    copy(child = newChild)
}
