// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.status

import java.util.{Collections, WeakHashMap}

import scala.jdk.CollectionConverters._

import org.apache.spark.internal.Logging
import org.apache.spark.metrics.source.CodegenMetrics
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.streaming.StreamingQuery

import org.apache.spark.sql.changelog.plans.{ExplainNode, HotKey}

/**
 * What a run of a query is, as it was planned.
 *
 * @param trees
 *   what EXPLAIN says of each of its `to_changelog`
 * @param operators
 *   ids and names of its operators, as its progress lists them
 * @param compiledBefore
 *   how many classes the driver had compiled when the run began
 * @param hotKeys
 *   those of the operators that had any in the last batch, by their ids
 * @param warned
 *   the operators of which it has been said that they have hot keys
 */
private[status] final case class RunningPlan(
    trees: Seq[ExplainNode],
    operators: Seq[(Long, String)],
    compiledBefore: Long,
    hotKeys: Map[Long, Seq[HotKey]] = Map.empty,
    warned: Set[Long] = Set.empty)

/** The queries of this application that keep changes, while anybody holds them. */
object RunningPlans extends Logging {
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

  /**
   * Called when a batch is done, for each operator. The first hot keys of an operator are a hazard that
   * nobody could know of before, and so are said once.
   *
   * @param remedy
   *   what helps; none where hot keys do no harm
   */
  def noteHotKeys(
      stream: StreamingQuery,
      operator: Long,
      keys: Seq[HotKey],
      remedy: Option[String]): Unit = {
    val isFirst = plans.synchronized {
      Option(plans.get(stream)).exists { plan =>
        val hot =
          if (keys.isEmpty) plan.hotKeys - operator else plan.hotKeys.updated(operator, keys)
        val warns = keys.nonEmpty && remedy.isDefined && !plan.warned(operator)
        val warned = if (warns) plan.warned + operator else plan.warned
        plans.put(stream, plan.copy(hotKeys = hot, warned = warned))
        warns
      }
    }
    if (isFirst) {
      val query = new RunningQuery(stream, plans.get(stream))
      logWarning(query.hotKeyWarning(operator, keys, remedy.get))
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
