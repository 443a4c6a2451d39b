// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import org.apache.spark.SparkException
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.{
  HashPartitioning, Partitioning, SinglePartition, UnknownPartitioning
}
import org.apache.spark.sql.execution.exchange.Exchange
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.{LeafExecNode, SparkPlan}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.compat.SparkRDDs
import org.apache.spark.sql.changelog.microbatch.ReplayedVersions
import org.apache.spark.sql.changelog.plans.ReplayedVersion

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
