// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import org.apache.spark.SparkException
import org.apache.spark.rdd.RDD
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.physical.{
  HashPartitioning, Partitioning, SinglePartition, UnknownPartitioning
}
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.execution.exchange.Exchange
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd
import org.apache.spark.sql.execution.{
  LeafExecNode, LogicalRDD, SQLExecution, SparkPlan, UnaryExecNode
}
import org.apache.spark.storage.StorageLevel

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.compat.{SparkAggregates, SparkRDDs}
import org.apache.spark.sql.changelog.execution.aggregate.signed.SignedFunction
import org.apache.spark.sql.changelog.execution.session.PlanChangelogSession
import org.apache.spark.sql.changelog.inference.AggregateForm
import org.apache.spark.sql.changelog.microbatch.{AssignStateInfo, ReplayedVersions}
import org.apache.spark.sql.changelog.plans.{ChangelogReplay, RecursionInput, ReplayedVersion}

/**
 * Executes a [[org.apache.spark.sql.changelog.plans.ChangelogVersions]]: in a single task the replay, then the
 * computation over the new rows, then the computation over the old rows.
 *
 * {{{
 *   ChangelogVersions
 *   :- ChangelogReplay
 *   :  +- changes
 *   :- FlatMapGroupsInPandas        Spark's own, twice
 *   :  +- ReplayedVersion +I
 *   +- FlatMapGroupsInPandas
 *      +- ReplayedVersion -D
 * }}}
 */
case class ChangelogVersionsExec(
    versions: ReplayedVersions,
    kind: Attribute,
    replay: SparkPlan,
    after: SparkPlan,
    before: SparkPlan)
    extends SparkPlan {

  override def children: Seq[SparkPlan] = Seq(replay, after, before)

  override def output: Seq[Attribute] = after.output :+ kind

  override def producedAttributes: AttributeSet = AttributeSet(kind)

  override def outputPartitioning: Partitioning =
    UnknownPartitioning(replay.outputPartitioning.numPartitions)

  override def simpleString(maxFields: Int): String = nodeName

  override protected def doExecute(): RDD[InternalRow] = {
    // in a task of its own, a version would run the replay and its state store a second time
    Seq(after, before).flatMap(_.find(_.isInstanceOf[Exchange])).foreach { exchange =>
      throw SparkException.internalError(s"Versions of groups are exchanged by $exchange")
    }
    val replayed = replay.execute()
    versions.readFrom(replayed)
    val both = Seq(after -> RowKind.Insert, before -> RowKind.Delete).map { case (plan, kind) =>
      plan.execute().mapPartitionsInternal { rows =>
        rows.map(UnsafeProjection.create(plan.output :+ Literal(kind), plan.output))
      }
    }
    SparkRDDs
      .concatenate(both, replayed.getNumPartitions)
      .mapPartitionsInternal { rows =>
        // runs the replay, even if no consumer reads on
        rows.hasNext
        rows
      }
  }

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[SparkPlan]): ChangelogVersionsExec =
    copy(replay = newChildren(0), after = newChildren(1), before = newChildren(2))
}

/**
 * Passes the rows of a version of groups to a Spark node. The rows come from a replay in the same task, and
 * therefore have the replay's partitioning and order.
 *
 * @param numPartitions
 *   the number of partitions of the replay
 */
case class ReplayedVersionExec(rows: ReplayedVersion, numPartitions: Int) extends LeafExecNode {

  override def output: Seq[Attribute] = rows.output

  override def outputPartitioning: Partitioning =
    if (rows.group.isEmpty) SinglePartition else HashPartitioning(rows.group, numPartitions)

  override def outputOrdering: Seq[SortOrder] =
    rows.group.map(SortOrder(_, Ascending)) ++ rows.order

  override def simpleString(maxFields: Int): String =
    (Seq(nodeName, RowKind.Symbols(rows.version)) ++ rows.side.map(side => s"side $side"))
      .mkString(" ")

  override lazy val metrics: Map[String, SQLMetric] =
    Map("numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"))

  override protected def doExecute(): RDD[InternalRow] = {
    val numOutputRows = longMetric("numOutputRows")
    val columns = rows.ordinals.zip(output).map { case (ordinal, column) =>
      BoundReference(ordinal, column.dataType, column.nullable)
    }
    rows.versions.rows(rows.version, rows.side).mapPartitionsInternal { replayed =>
      val columnsOf = UnsafeProjection.create(columns)
      replayed.map { row =>
        numOutputRows += 1
        columnsOf(row)
      }
    }
  }
}

/**
 * Runs a recursion over the old and the new rows of its inputs. As in Spark's batch execution, each step is a
 * query of its own, executed during the batch.
 *
 *   - in: both versions of all inputs, if any has changed; each version begins with an opening row without
 *     values
 *   - out: the result over the new rows, as `+I`, and the result over the old rows, as `-D`
 *
 * The input rows are cached, so that the operators below run once however often a step reads the rows.
 */
case class ChangelogRecursionExec(
    @transient loop: UnionLoop,
    inputs: Seq[Seq[Int]],
    override val output: Seq[Attribute],
    child: SparkPlan)
    extends UnaryExecNode {

  override def producedAttributes: AttributeSet = outputSet

  override def outputPartitioning: Partitioning = UnknownPartitioning(0)

  override def simpleString(maxFields: Int): String = nodeName

  override protected def doExecute(): RDD[InternalRow] = {
    val kindOrdinal = child.output.size - 1
    val rows = child.execute().map(_.copy()).persist(StorageLevel.MEMORY_AND_DISK)
    unpersistAfterBatch(rows)
    // reads every row, because an operator below must run to its end
    rows.count()
    val results = Seq(RowKind.Insert, RowKind.Delete).flatMap { version =>
      val ofVersion = rows.filter(_.getByte(kindOrdinal) == version)
      if (ofVersion.isEmpty()) None else Some(result(ofVersion, version))
    }
    sparkContext.union(results)
  }

  /** Frees the cached rows at the end of the batch. Until then a sink may read the result several times. */
  private def unpersistAfterBatch(rows: RDD[_]): Unit = {
    val batch = sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)
    sparkContext.addSparkListener(new SparkListener {
      override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
        // the event of the batch's end may be dropped; any later event then frees the rows
        case end: SparkListenerSQLExecutionEnd
            if end.executionId.toString == batch || SQLExecution.getQueryExecution(
              batch.toLong) == null =>
          rows.unpersist()
          sparkContext.removeSparkListener(this)
        case _ =>
      }
    })
  }

  private def result(rows: RDD[InternalRow], version: Byte): RDD[InternalRow] = {
    val query = loop.transformUp { case RecursionInput(number, columns) =>
      val places = inputs(number).zip(columns).map { case (ordinal, column) =>
        BoundReference(ordinal, column.dataType, nullable = true)
      }
      val ofInput: RDD[InternalRow] = rows.mapPartitions { all =>
        val columnsOf = UnsafeProjection.create(places)
        all.filter(row => !row.isNullAt(0) && row.getInt(0) == number).map(columnsOf(_))
      }
      LogicalRDD(columns, ofInput)(session)
    }
    val computed = Dataset.ofRows(session, query).queryExecution
    val columns = computed.executedPlan.output
    computed.toRdd.mapPartitions { results =>
      val withKind = UnsafeProjection.create(columns :+ Literal(version), columns)
      results.map(withKind(_))
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogRecursionExec =
    copy(child = newChild)
}

/**
 * Plans Spark's aggregate over replayed rows, so that its functions see the rows in order.
 *
 * When Spark's hash aggregates run out of memory (with object buffers: after 128 groups), a group's later rows
 * may overtake earlier rows. An untouched list could then change its order from batch to batch, and a
 * retraction would not match the emitted row. Replayed rows are sorted by group. Spark's sort aggregates thus
 * need memory for a single group, and neither a hash map nor a sort.
 */
object PlanReplayedAggregate {

  /** Matches an aggregate over replayed rows, and returns the replay. */
  def unapply(aggregate: Aggregate): Option[ChangelogReplay] = replayBelow(aggregate.child)

  def apply(
      session: SparkSession,
      aggregate: Aggregate,
      replay: ChangelogReplay,
      plan: LogicalPlan => SparkPlan): SparkPlan = {
    val keepsSessions =
      AggregateForm.keepsSessions(aggregate, retracts = replay.inputKind.isDefined)
    val planned = session.sessionState.planner
      .Aggregation(if (keepsSessions) inAnyOrder(aggregate) else aggregate)
      .head
    val overReplay = SparkAggregates.sorted(planned, normalizedBelow(_, replay))
    SparkAggregates.sessionsOf(planned) match {
      case Some(merging) if keepsSessions =>
        val state = AssignStateInfo(session, replay.operatorId)
        val sessions = PlanChangelogSession(aggregate, replay, merging, state, plan)
        SparkAggregates.withSessions(overReplay, sessions)
      case _ => overReplay
    }
  }

  /** Returns the aggregate with functions whose buffers do not depend on the order of rows. */
  private def inAnyOrder(aggregate: Aggregate): LogicalPlan = aggregate.transformExpressions {
    case call: AggregateExpression =>
      call.copy(aggregateFunction = SignedFunction.inAnyOrder(call.aggregateFunction))
  }

  /** Removes Spark's normalization of floating point groups, which would hide that the rows are sorted. */
  private def normalizedBelow(group: NamedExpression, replay: ChangelogReplay): NamedExpression =
    group match {
      case alias: Alias => replay.partition.find(_.exprId == alias.exprId).getOrElse(alias)
      case other => other
    }

  private def replayBelow(plan: LogicalPlan): Option[ChangelogReplay] = plan match {
    case replay: ChangelogReplay => Some(replay)
    // Spark's nodes for DISTINCT and for Python functions, and this project's sort
    case _: Project | _: Filter | _: Expand | _: Aggregate | _: Sort =>
      replayBelow(plan.children.head)
    case _ => None
  }
}
