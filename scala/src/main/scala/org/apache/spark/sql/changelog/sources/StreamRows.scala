// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions.{Alias, Literal}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.{
  StreamingExecutionRelation,
  StreamingRelation
}

import org.apache.spark.sql.changelog.compat.OneBatch
import org.apache.spark.sql.changelog.sources.tables.TableRows

/**
 * The rows that the streams of a query have for one batch, as Spark itself reads them, whatever they are:
 * by the one batch of a throw-away query.
 */
private[changelog] object StreamRows {

  /** The streams of a plan, each reading of one. */
  def in(plan: LogicalPlan): Seq[LogicalPlan] = plan.collect {
    case stream if isStream(stream) => stream
  }

  def isStream(plan: LogicalPlan): Boolean = plan match {
    case _: StreamingRelation | _: StreamingRelationV2 | _: StreamingExecutionRelation => true
    case _ => false
  }

  /**
   * Hands the rows of each stream to `read`, as plans that can be computed as long as that runs. It is not
   * called if none of them has any.
   *
   * @param checkpoint
   *   that of the throw-away query, which may say up to where it reads
   */
  def read(session: SparkSession, streams: Seq[LogicalPlan], checkpoint: Path)(
      read: Seq[(LogicalPlan, LogicalPlan)] => Unit): Unit = {
    // what the query computes is never computed: it only names the sources, in their order
    val inputs = streams.map(Project(Seq(Alias(Literal(1), "one")()), _))
    val plan = if (inputs.size == 1) inputs.head else Union(inputs)
    OneBatch.run(session, plan, checkpoint) { (batch, query) =>
      read(streams.zip(inputsOf(query).map(atRest(batch, _))))
    }
  }

  /** Takes the plan of the batch apart into the rows of each stream. */
  private def inputsOf(query: LogicalPlan): Seq[LogicalPlan] = {
    val inputs = query match {
      case union: Union => union.children
      case single => Seq(single)
    }
    inputs.map {
      case Project(_, input) => input
      case other => throw new IllegalStateException(s"unexpected input:\n$other")
    }
  }

  /** The plan of a batch as one that is no stream. */
  private def atRest(batch: SparkSession, plan: LogicalPlan): LogicalPlan =
    OneBatch.atRest(batch, plan.transform { case rows: TableRows => rows.atRest })
}
