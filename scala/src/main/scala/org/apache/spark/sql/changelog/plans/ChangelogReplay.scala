// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.plans.logical.{
  LeafNode, LogicalPlan, Statistics, UnaryNode, UnionLoop
}

import org.apache.spark.sql.changelog.microbatch.ReplayedVersions

/**
 * Stores the rows of each partition, and emits the old and new rows of changed partitions. A node
 * of Spark computes the old and the new result from these rows.
 *
 * @param partition
 *   the columns of the state's key; empty for a single partition
 * @param order
 *   the order of a partition's emitted rows; ties are ordered by the rows' columns
 * @param outputKind
 *   the version of a row: `-D` for the old one, `+I` for the new one
 * @param session
 *   the column with the initial session of a row, before merging, if a watermark can close sessions
 * @param opening
 *   a flag column, true in an additional row at the start of each version. The other columns of
 *   that row are NULL. With an opening row a version exists even over no rows.
 * @param dropsLate
 *   whether changes that reach a closed session are dropped as late; false if an operator below drops late rows
 * @param emitsClosed
 *   whether rows are emitted once and unordered, after the watermark passes their partition or session
 * @param placedBy
 *   the shuffle columns, if different from `partition`
 */
case class ChangelogReplay(
    partition: Seq[Attribute],
    order: Seq[SortOrder],
    inputKind: Option[Attribute],
    outputKind: Attribute,
    operatorId: Long,
    child: LogicalPlan,
    session: Option[Attribute] = None,
    opening: Option[Attribute] = None,
    dropsLate: Boolean = true,
    emitsClosed: Boolean = false,
    placedBy: Option[Seq[Attribute]] = None)
    extends StoresRows {

  override def columns: Seq[Attribute] =
    if (opening.isEmpty) super.columns else super.columns.map(_.withNullability(true))

  override def output: Seq[Attribute] = columns ++ opening :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(opening.toSeq :+ outputKind)

  /** The output has complete partitions, as Spark's batch operators require. */
  override def isStreaming: Boolean = false

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogReplay =
    copy(child = newChild)
}

/**
 * Stores the rows of each partition in order, and emits the old and new rows around changed rows. A window of Spark
 * computes the old and the new result from these rows.
 *
 * @param reach
 *   the distance in rows up to which a result depends on other rows
 * @param segment
 *   the number of a contiguous part of the partition
 * @param outputKind
 *   the version of a row: `-D` for the old one, `+I` for the new one
 */
case class ChangelogNeighbors(
    partition: Seq[Attribute],
    order: Seq[SortOrder],
    reach: Int,
    inputKind: Option[Attribute],
    segment: Attribute,
    outputKind: Attribute,
    operatorId: Long,
    child: LogicalPlan)
    extends StoresRows {

  override def output: Seq[Attribute] = columns :+ segment :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(Seq(segment, outputKind))

  /** The output has complete segments, as Spark's batch operators require. */
  override def isStreaming: Boolean = false

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogNeighbors =
    copy(child = newChild)
}

/**
 * Computes a plan of Spark's nodes twice, over the new and the old rows of groups. Used if
 * results do not name the version of their rows.
 *
 * @param versions
 *   the shared state of both computations
 * @param kind
 *   the version of a result: `-D` for the old one, `+I` for the new one
 * @param replay
 *   the plan with the rows of both versions
 * @param after
 *   the computation over the new rows, read from [[ReplayedVersion]]s
 * @param before
 *   the computation over the old rows
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

  /** Replayed rows are read by position, so no column may be pruned. */
  @transient override lazy val references: AttributeSet = inputSet

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[LogicalPlan]): ChangelogVersions =
    copy(replay = newChildren(0), after = newChildren(1), before = newChildren(2))
}

/**
 * The rows of one version, and of one side for cogrouped inputs.
 *
 * @param version
 *   the kind of the version's rows
 * @param side
 *   the number of the side, if there are two
 * @param ordinals
 *   the positions of `output` in replayed rows
 * @param group
 *   the columns that rows are sorted by, group by group
 * @param order
 *   the order of the rows of a group
 * @param operatorId
 *   the replay that emits these partitions
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
 * Computes running functions over all rows of a partition up to each row. Rows arrive in time order across batches.
 *
 * @param partition
 *   the columns that make a partition
 * @param time
 *   the time column; each batch has only later times than the batches before
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

  /** Ties are broken by all columns of a row. */
  @transient override lazy val references: AttributeSet = child.outputSet

  override def isStreaming: Boolean = false

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogRunning =
    copy(child = newChild)
}

/**
 * Running functions: functions over all rows of a partition up to each row.
 *
 * @param ofRows
 *   the buffers of functions over single rows
 * @param ofPeers
 *   the buffers of functions over rows with equal times
 * @param results
 *   the results of a row, over the row and the buffers
 */
final case class RunningFunctions(
    ofRows: RunningBuffers,
    ofPeers: RunningBuffers,
    results: Seq[NamedExpression])
    extends ParameterGroup {

  /** The stored columns of a partition. */
  def buffers: Seq[Attribute] = ofRows.columns ++ ofPeers.columns
}

/**
 * The buffers of running functions.
 *
 * @param initial
 *   the value of each buffer before the first row
 * @param updates
 *   the next value of each buffer, over the buffer and a row
 */
final case class RunningBuffers(
    columns: Seq[Attribute],
    initial: Seq[Expression],
    updates: Seq[Expression])
    extends ParameterGroup

/**
 * A recursive query over changing tables.
 *
 * @param loop
 *   the recursion for Spark, over [[RecursionInput]]s
 * @param inputs
 *   the changing inputs outside the recursion
 */
case class RecursiveQuery(loop: UnionLoop, inputs: Seq[LogicalPlan]) extends LogicalPlan {
  override def children: Seq[LogicalPlan] = inputs

  override val output: Seq[Attribute] = loop.output

  override def producedAttributes: AttributeSet = outputSet

  /** Inputs are read by position, so no column may be pruned. */
  @transient override lazy val references: AttributeSet = inputSet

  override def innerChildren: Seq[QueryPlan[_]] = Seq(loop)

  override def simpleString(maxFields: Int): String = nodeName

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[LogicalPlan]): RecursiveQuery = copy(inputs = newChildren)
}

/** The rows of an input of a [[RecursiveQuery]], as read by its recursion. */
case class RecursionInput(number: Int, override val output: Seq[Attribute]) extends LeafNode {
  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)
}

/**
 * Runs a recursion twice, over the new and the old rows of its inputs.
 *
 * @param loop
 *   the recursion, over [[RecursionInput]]s
 * @param inputs
 *   for each input, the positions of its columns in replayed rows
 * @param kind
 *   the version of a result: `-D` for the old one, `+I` for the new one
 * @param child
 *   a replay of the rows of both versions; each row begins with the number of its input
 */
case class ChangelogRecursion(
    loop: UnionLoop,
    inputs: Seq[Seq[Int]],
    kind: Attribute,
    child: LogicalPlan)
    extends UnaryNode {

  override def output: Seq[Attribute] = loop.output :+ kind

  override def producedAttributes: AttributeSet = outputSet

  /** Replayed rows are read by position, so no column may be pruned. */
  @transient override lazy val references: AttributeSet = child.outputSet

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogRecursion =
    copy(child = newChild)
}
