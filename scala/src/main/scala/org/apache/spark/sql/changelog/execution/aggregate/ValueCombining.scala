// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import java.util.{Collections, LinkedHashMap, Map => JMap, UUID}

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.{ExpandExec, InputAdapter, SparkPlan}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.CompletionIterator
import org.apache.spark.util.collection.OpenHashSet

import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.execution.{ChangelogStateWriter, PassesRows}

/**
 * Decides for each batch whether to combine changes by value before the shuffle.
 *
 * If values repeat, combining leaves few rows. If values do not repeat, the hash map over copies of each change
 * costs as much as the rest of the batch. The decision uses the counts of the last combined batch, or a
 * [[ValueSampleExec sample]] of the values of an uncombined batch. The query's result does not depend on the
 * decision, so the checkpoint does not record it.
 */
private[aggregate] object ValueCombining {
  private val interval = 16L
  private val minChanges = 10000L
  private val maxOutcomes = 1000

  /** The number of rows before and after combining in a batch. */
  private final case class Outcome(changes: () => Long, combined: () => Long, worth: Int) {

    /** Whether combining is cheaper. An uncombined change is a single row in the shuffle and cheaper to create. */
    def isWorthwhile: Boolean = changes() < minChanges || combined() < changes() / 2 * worth
  }

  private val outcomes: JMap[(UUID, Long), Outcome] =
    Collections.synchronizedMap(new LinkedHashMap[(UUID, Long), Outcome](16, 0.75f, true) {
      override def removeEldestEntry(eldest: JMap.Entry[(UUID, Long), Outcome]): Boolean =
        size > maxOutcomes
    })

  /** Returns whether the planned batch combines the values of an operator's input; empty if the benefit is unknown. */
  def isWorthwhile(state: StatefulOperatorStateInfo, conf: SQLConf): Option[Boolean] =
    conf.getConf(ChangelogConf.COMBINE_VALUES) match {
      case "always" => Some(true)
      case "never" => Some(false)
      case _ => outcome(state).map(_.isWorthwhile)
    }

  /**
   * Returns whether an input may be so large that a single group would overload a task.
   *
   * @param size
   *   the upper bound of the input, in bytes
   */
  def isLarge(size: BigInt, conf: SQLConf): Boolean =
    size > conf.getConf(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES)

  /** Returns whether an uncombined batch samples its values. */
  def samples(state: StatefulOperatorStateInfo, conf: SQLConf): Boolean =
    conf.getConf(ChangelogConf.COMBINE_VALUES) == "auto" &&
      (state.storeVersion % interval == 0 || outcome(state).isEmpty)

  private def outcome(state: StatefulOperatorStateInfo): Option[Outcome] =
    Option(outcomes.get(state.queryRunId -> state.operatorId))

  /**
   * Records, before the batch runs, the metrics that will tell how well the operator's `input` combines.
   *
   * @param worth
   *   the number of combined rows that cost the operator as much as an uncombined change
   */
  def note(state: StatefulOperatorStateInfo, input: SparkPlan, worth: Int): Unit =
    outcomeOf(input, worth).foreach(outcomes.put(state.queryRunId -> state.operatorId, _))

  private def outcomeOf(plan: SparkPlan, worth: Int): Option[Outcome] = plan match {
    case _: ChangelogStateWriter => None
    case sample: ValueSampleExec =>
      Some(Outcome(counted(sample, "numOutputRows"), counted(sample, "numCombinedRows"), worth))
    case aggregate: BaseAggregateExec =>
      aggregate.child match {
        case expand: ExpandExec =>
          val copies = counted(expand, "numOutputRows")
          val copiesPerChange = expand.projections.size
          val combined = counted(aggregate, "numOutputRows")
          val input = expand.child match {
            case adapter: InputAdapter => adapter.child
            case other => other
          }
          val single = input match {
            case byTask: ChangesByTaskExec => counted(byTask, "numSingleChanges")
            case _ => () => 0L
          }
          Some(
            Outcome(
              () => copies() / copiesPerChange + single(),
              () => combined() + single(),
              worth))
        case other => outcomeOf(other, worth)
      }
    case other => other.children.flatMap(outcomeOf(_, worth)).headOption
  }

  private def counted(plan: SparkPlan, name: String): () => Long = {
    val metric = plan.metrics(name) // read here, so that the closure does not hold the plan
    () => metric.value
  }
}

/**
 * Passes changes on and estimates the number of rows left if each task combined its changes by group and value.
 * The estimate is the number of distinct hashes. The node stores a sample of the hashes.
 *
 * @param keys
 *   a change's group and value, for each kind of values; if the last column is NULL, the change has no value
 */
private[execution] case class ValueSampleExec(keys: Seq[Seq[Expression]], child: SparkPlan)
    extends PassesRows {

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"),
    "numCombinedRows" -> SQLMetrics.createMetric(
      sparkContext,
      "estimated number of rows combined"))

  override protected def doExecute(): RDD[InternalRow] = {
    val numOutputRows = longMetric("numOutputRows")
    val numCombinedRows = longMetric("numCombinedRows")
    val (keys, output) = (this.keys, child.output)
    child.execute().mapPartitionsInternal { rows =>
      val hashes = new ValueHashes(keys, output)
      val kept = new OpenHashSet[Long]
      val passed = rows.map { row =>
        numOutputRows += 1
        hashes.foreach(row)(hash => if (ValueSampleExec.isKept(hash)) kept.add(hash))
        row
      }
      CompletionIterator[InternalRow, Iterator[InternalRow]](
        passed,
        numCombinedRows += kept.size.toLong * ValueSampleExec.oneOf)
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ValueSampleExec =
    copy(child = newChild)
}

/**
 * Hashes the values of a change, one hash per kind. Hashes are computed over bytes, because some types have no
 * hash in Spark. Equal values with different bytes only make the estimate less exact.
 */
private[aggregate] final class ValueHashes(keys: Seq[Seq[Expression]], input: Seq[Attribute]) {
  private val keysOf = keys.map(UnsafeProjection.create(_, input)).toArray

  /** Calls `use` with the hash of each value of `row`. */
  def foreach(row: InternalRow)(use: Long => Unit): Unit = {
    var kind = 0
    while (kind < keysOf.length) {
      val key = keysOf(kind)(row)
      if (!key.isNullAt(key.numFields - 1)) {
        use(XXH64.hashUnsafeBytes(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes, kind))
      }
      kind += 1
    }
  }
}

private[aggregate] object ValueSampleExec {

  /** The number of hashes represented by each stored hash; a power of two. */
  private val oneOf = 16L

  private def isKept(hash: Long): Boolean = (hash & (oneOf - 1)) == 0
}
