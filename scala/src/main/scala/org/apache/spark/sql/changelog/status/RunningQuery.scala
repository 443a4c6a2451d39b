// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.status

import java.time.Instant

import org.apache.spark.sql.streaming.{
  StateOperatorProgress,
  StreamingQuery,
  StreamingQueryProgress
}

import org.apache.spark.sql.changelog.plans.{ExplainNode, OperatorNumbers}

/** One operator of a running query, and what it did in the last batch. */
final case class RunningOperator(id: Long, name: String, numbers: OperatorNumbers)

/** A query that runs: what it is, and what it did in the last batch that is done. */
class RunningQuery private[status] (stream: StreamingQuery, plan: RunningPlan) {

  val name: Option[String] = Option(stream.name)
  val id: String = stream.id.toString
  val runId: String = stream.runId.toString

  /** Its name, or its id where it has none. */
  def title: String = name.getOrElse(id)

  def isCalled(text: String): Boolean = name.contains(text) || id == text || runId == text

  def isActive: Boolean = stream.isActive

  /** While a query has nothing to do, its progress goes on about the batch that it did last. */
  lazy val progress: Option[StreamingQueryProgress] = {
    val (done, idle) = stream.recentProgress.toSeq.partition(_.durationMs.containsKey("addBatch"))
    done.lastOption.orElse(idle.lastOption)
  }

  /** All that had been delivered by then has been read; none before a batch is done. */
  def asOf: Option[Instant] =
    Option(stream.lastProgress).map(last => Instant.parse(last.timestamp))

  def batchId: Long = progress.map(_.batchId).getOrElse(-1L)

  /** How many classes the driver has compiled since the run began, for other queries too. */
  def compiled: Long = RunningPlans.compiled - plan.compiledBefore

  /** From the sources up, once a batch is done. */
  lazy val operators: Seq[RunningOperator] = progress
    .map(_.stateOperators.toSeq)
    .filter(_.size == plan.operators.size)
    .toSeq
    .flatMap(plan.operators.zip(_))
    .map { case ((id, _), operator) =>
      RunningOperator(id, operator.operatorName, RunningQuery.numbers(operator))
    }
    .sortBy(_.id)

  /** What EXPLAIN says of each of its `to_changelog`, with the numbers of the last batch. */
  def trees: Seq[ExplainNode] = {
    val byId = operators.map(operator => operator.id -> operator.numbers).toMap
    plan.trees.map(_.running(byId))
  }

  /** Of the operators that no other is above. */
  def topmost: Seq[OperatorNumbers] = trees.flatMap(RunningQuery.topmost)
}

object RunningQuery {

  private def topmost(node: ExplainNode): Seq[OperatorNumbers] =
    node.numbers.fold(node.children.flatMap(topmost))(Seq(_))

  private def numbers(operator: StateOperatorProgress): OperatorNumbers = {
    def count(name: String): Long = operator.customMetrics.getOrDefault(name, 0L)
    val isOurs = operator.customMetrics.containsKey("numOutputRows")
    OperatorNumbers(
      Option.when(operator.customMetrics.containsKey("numInputRows"))(count("numInputRows")),
      if (isOurs) count("numInserts") else 0L,
      count("numUpdatePreimages"),
      count("numUpdatePostimages"),
      count("numDeletes"),
      count("numUnmatchedRetractions"),
      operator.numRowsDroppedByWatermark,
      operator.numRowsTotal,
      operator.memoryUsedBytes,
      operator.allUpdatesTimeMs + operator.allRemovalsTimeMs + operator.commitTimeMs)
  }
}
