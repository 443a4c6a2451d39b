// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.execution.streaming.Sink
import org.apache.spark.sql.{DataFrame => AnyDataFrame}

import org.apache.spark.sql.changelog.checkpoint.QueryOrigin
import org.apache.spark.sql.changelog.compat.RunningStream
import org.apache.spark.sql.changelog.errors.SinkErrors

/**
 * Writes the changes of a query, batch by batch, so that a batch that is written twice changes
 * nothing.
 *
 * Its batches come from Spark's own front door for sinks. What the query gives it is known when
 * the query is started, and is checked there; a session without the extension learns the same
 * from its first batch.
 *
 * @param format
 *   the name it is asked for by, used in errors
 */
abstract class ChangelogSink(val format: String) extends Sink {
  @volatile private var accepted: Option[SinkInput] = None

  /** How many changes it was given since it was made. */
  val counts = new ChangeCounts

  /** Refuses what this sink can't keep. Called before the first batch. */
  protected def check(input: SinkInput): Unit

  /** Writes a batch. The same batch can come again, also after its writing has failed halfway. */
  def write(batch: ChangelogBatch): Unit

  /**
   * Whether the target shows the rows of the first batch already, as when they were computed without state. Then only
   * the state of that batch is computed.
   */
  protected def hasFirstBatch(session: SparkSession, queryId: String): Boolean = false

  /** What it writes to, as errors name it. */
  protected def targetName: String = format

  /** The last batch of a query that the target holds, if it notes that. */
  protected def lastBatchOf(session: SparkSession, queryId: String): Option[Long] = None

  /**
   * Refuses a target with later rows than those from which a query goes on, or with any if it begins with none.
   *
   * @param origins
   *   the queries that it goes back to, the nearest first
   */
  def checkOrigins(session: SparkSession, origins: Seq[QueryOrigin]): Unit = {
    val written = origins.iterator.flatMap { origin =>
      lastBatchOf(session, origin.queryId).map(origin -> _)
    }
    written.nextOption().foreach { case (QueryOrigin(origin, last), held) =>
      last match {
        case None => throw SinkErrors.notEmpty(format, targetName, origin, held)
        // a batch that changes nothing may not have been noted
        case Some(batch) if held > batch =>
          throw SinkErrors.notAtFork(format, targetName, origin, batch, held)
        case _ =>
      }
    }
  }

  /** Takes what a query, in columns `output` of the plan `optimized`, will give to this sink. */
  final def accept(output: Seq[Attribute], optimized: LogicalPlan): SinkInput =
    accept(SinkInput(format, output, optimized))

  /** Takes note of what the query will give the sink, where that is known already. */
  final def accept(input: SinkInput): SinkInput = {
    check(input)
    accepted = Some(input)
    input
  }

  final override def addBatch(batchId: Long, data: AnyDataFrame): Unit = {
    val session = castToImpl(data.sparkSession)
    val execution = castToImpl(data).queryExecution
    // the optimizer gives the columns of a batch other ids
    val optimized = execution.optimizedPlan
    val input = accepted.getOrElse(accept(optimized.output, optimized))
    val queryId = RunningStream.queryId(session.sparkContext)
    // Spark's plan of a batch must be run as it is; what is done with its rows is planned anew
    val rows = execution.toRdd
    if (batchId == 0 && hasFirstBatch(session, queryId)) rows.foreachPartition(_.foreach(_ => ()))
    else {
      val changeType = data.schema.fieldIndex(input.changeType.name)
      val counted = counts.count(session, rows, changeType)
      val made = LogicalRDD.fromDataset(counted, data, isStreaming = false)
      // their order is said in columns that the optimizer has given other ids, which persist() can't find
      val plan =
        made.copy(outputOrdering = Nil)(session, Some(made.stats), Some(made.constraints))
      val changes = Dataset.ofRows(session, plan)
      write(ChangelogBatch(queryId, batchId, input, changes, SinkInput.nettedBy(optimized)))
    }
  }

  /** Shown in the progress of the query: never an option, which may be a secret. */
  override def toString: String = format
}
