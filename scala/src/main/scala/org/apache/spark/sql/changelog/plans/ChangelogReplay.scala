// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, Statistics, UnaryNode}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.microbatch.ReplayedVersions

/**
 * Keeps the rows of each partition, and gives out the old and the new rows of the partitions that
 * change, for one of Spark's own operators to compute its old and its new result from.
 *
 * @param partition
 *   the columns rows are kept by; empty for one partition of all rows
 * @param order
 *   the order in which a partition's rows are given out; rows it finds equal come in the order of
 *   their columns
 * @param session
 *   the column with the session a row begins, as long as no other one reaches it, if a watermark can
 *   end sessions
 * @param dropsLate
 *   whether changes that could reach a session that has ended come too late; not so if an operator
 *   below has left out those that do
 * @param emitsClosed
 *   whether rows are given out once, when the watermark has passed their partition or session,
 *   and in no order
 * @param inputKind
 *   the row kind of `child`, none if it is insert-only
 * @param opening
 *   a column that is true for one further row at the start of each version, whose other columns
 *   are NULL; with it there is always a version, over no rows too
 * @param outputKind
 *   which version a row is of: `-D` for the old one, `+I` for the new one
 * @param operatorId
 *   identifies the operator's state within the query
 * @param placedBy
 *   the columns by which rows are spread over tasks, if not by all of `partition`
 */
case class ChangelogReplay(
    partition: Seq[Attribute],
    order: Seq[SortOrder],
    session: Option[Attribute],
    dropsLate: Boolean,
    emitsClosed: Boolean,
    inputKind: Option[Attribute],
    opening: Option[Attribute],
    outputKind: Attribute,
    operatorId: Long,
    child: LogicalPlan,
    placedBy: Option[Seq[Attribute]] = None)
    extends UnaryNode
    with KeepsState {

  /** The columns of rows. */
  def columns: Seq[Attribute] = {
    val rows = RowKind.without(inputKind, child.output)
    if (opening.isEmpty) rows else rows.map(_.withNullability(true))
  }

  override def output: Seq[Attribute] = columns ++ opening :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(opening.toSeq :+ outputKind)

  /** A row is kept with all its columns. */
  @transient override lazy val references: AttributeSet = child.outputSet

  /** Whole partitions come out, which Spark's operators for tables are right for. */
  override def isStreaming: Boolean = false

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogReplay =
    copy(child = newChild)
}

/**
 * Computes something of Spark's own once over the new and once over the old rows of groups, where
 * it can't tell by its results which rows they are of.
 *
 * @param versions
 *   what the computations share
 * @param kind
 *   which version a result is of: `-D` for the old one, `+I` for the new one
 * @param replay
 *   gives the rows of both versions
 * @param after
 *   the computation over the new rows, which it reads from [[ReplayedVersion]]s
 * @param before
 *   the same over the old rows
 */
case class ChangelogVersions(
    versions: ReplayedVersions,
    kind: Attribute,
    replay: LogicalPlan,
    after: LogicalPlan,
    before: LogicalPlan)
    extends LogicalPlan {

  override def children: Seq[LogicalPlan] = Seq(replay, after, before)

  override def output: Seq[Attribute] = after.output :+ kind

  override def producedAttributes: AttributeSet = AttributeSet(kind)

  /** Replayed rows are read by position, so that none of their columns can go. */
  @transient override lazy val references: AttributeSet = inputSet

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[LogicalPlan]): ChangelogVersions =
    copy(replay = newChildren(0), after = newChildren(1), before = newChildren(2))
}

/**
 * The rows of one version, and of one side where two inputs are replayed together.
 *
 * @param version
 *   the kind of its rows
 * @param side
 *   the number of the side, if there are two
 * @param ordinals
 *   where `output` stands in replayed rows
 * @param group
 *   the columns the rows come sorted by, group after group
 * @param order
 *   the order of the rows of a group
 * @param operatorId
 *   of the replay, whose partitions these are
 */
case class ReplayedVersion(
    versions: ReplayedVersions,
    version: Byte,
    side: Option[Int],
    ordinals: Seq[Int],
    override val output: Seq[Attribute],
    group: Seq[Attribute],
    order: Seq[SortOrder],
    operatorId: Long)
    extends LeafNode
    with KeepsState {

  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)
}

/**
 * Computes functions over all rows of a partition up to each row, where rows come in the order of
 * time from batch to batch.
 *
 * @param partition
 *   the columns that make a partition
 * @param time
 *   no row has one that is not later than all of the batches before
 * @param operatorId
 *   identifies the operator's state within the query
 */
case class ChangelogRunning(
    partition: Seq[Attribute],
    time: Attribute,
    functions: RunningFunctions,
    operatorId: Long,
    child: LogicalPlan)
    extends UnaryNode
    with KeepsState {

  override def output: Seq[Attribute] = child.output ++ functions.results.map(_.toAttribute)

  override def producedAttributes: AttributeSet =
    AttributeSet(functions.buffers ++ functions.results.map(_.toAttribute))

  /** Ties are settled by all columns of a row. */
  @transient override lazy val references: AttributeSet = child.outputSet

  override def isStreaming: Boolean = false

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogRunning =
    copy(child = newChild)
}

/**
 * Functions over all rows of a partition up to each row.
 *
 * @param ofRows
 *   the buffers that see a row before the other rows with its time
 * @param ofPeers
 *   the buffers that see all rows with one time at once
 * @param results
 *   the results for a row, of the row and the buffers
 */
final case class RunningFunctions(
    ofRows: RunningBuffers,
    ofPeers: RunningBuffers,
    results: Seq[NamedExpression])
    extends ParameterGroup {

  /** What is kept of a partition. */
  def buffers: Seq[Attribute] = ofRows.columns ++ ofPeers.columns
}

/**
 * What functions keep of the rows they have seen.
 *
 * @param initial
 *   the value of each buffer before the first row
 * @param updates
 *   the next value of each buffer, of itself and a row
 */
final case class RunningBuffers(
    columns: Seq[Attribute],
    initial: Seq[Expression],
    updates: Seq[Expression])
    extends ParameterGroup
