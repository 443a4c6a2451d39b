// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.status

import java.util.{Collections, WeakHashMap}

import scala.jdk.CollectionConverters._

import org.apache.spark.metrics.source.CodegenMetrics
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.streaming.StreamingQuery

import org.apache.spark.sql.changelog.plans.ExplainNode

/**
 * What a run of a query is, as it was planned.
 *
 * @param trees
 *   what EXPLAIN says of each of its `to_changelog`
 * @param operators
 *   ids and names of its operators, as its progress lists them
 * @param compiledBefore
 *   how many classes the driver had compiled when the run began
 */
private[status] final case class RunningPlan(
    trees: Seq[ExplainNode],
    operators: Seq[(Long, String)],
    compiledBefore: Long)

/** The queries of this application that keep changes, while anybody holds them. */
object RunningPlans {
  private val plans = Collections.synchronizedMap(new WeakHashMap[StreamingQuery, RunningPlan])

  /** Told of each run that begins. */
  @volatile private var begun: StreamingQuery => Unit = _ => ()

  /** Lets something know of each run that begins, from now on. */
  def whenBegun(tell: StreamingQuery => Unit): Unit = begun = tell

  /** Called in the first batch of a run, for each `to_changelog`. */
  def note(stream: StreamingQuery, tree: ExplainNode, operators: Seq[(Long, String)]): Unit = {
    val isNew = plans.synchronized {
      val known = Option(plans.get(stream))
      plans.put(
        stream,
        known.fold(RunningPlan(Seq(tree), operators, compiled)) { plan =>
          plan.copy(trees = (plan.trees :+ tree).distinct)
        })
      known.isEmpty
    }
    if (isNew) {
      if (castToImpl(stream.sparkSession).sessionState.conf.streamingMetricsEnabled) {
        QueryMetrics.register(stream, plans.get(stream))
      }
      begun(stream)
    }
  }

  /** Those that run, and those that have ended and are held. */
  def all: Seq[RunningQuery] = plans.synchronized {
    plans.asScala.toSeq.map { case (stream, plan) => new RunningQuery(stream, plan) }
  }

  /** The last one that has this name or id. */
  def find(name: String): Option[RunningQuery] =
    all.filter(_.isCalled(name)).sortBy(query => (query.isActive, query.batchId)).lastOption

  /** How many classes the driver has compiled; in local mode those of tasks are among them. */
  private[status] def compiled: Long = CodegenMetrics.METRIC_COMPILATION_TIME.getCount
}
