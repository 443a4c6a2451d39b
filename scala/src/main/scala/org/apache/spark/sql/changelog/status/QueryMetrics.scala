// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.status

import com.codahale.metrics.{Gauge, MetricRegistry}

import org.apache.spark.metrics.source.Source
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryTerminatedEvent

import org.apache.spark.sql.changelog.plans.OperatorNumbers

/**
 * Tells Spark's metrics system what each operator of a query did in the last batch, as Spark does for
 * the query as a whole: if `spark.sql.streaming.metricsEnabled`, until it ends. The driver reads it off
 * the query's progress when it is asked.
 *
 * @param query
 *   what the query has done when it is asked
 * @param operators
 *   their numbers and names
 */
private[status] class QueryMetrics(query: () => RunningQuery, operators: Seq[(Long, String)])
    extends Source {
  private val described = query()

  override val sourceName: String =
    s"spark.changelog.${described.name.getOrElse(described.id)}"

  override val metricRegistry: MetricRegistry = new MetricRegistry

  register("compiledClasses", Some(query().compiled))
  operators.foreach { case (id, name) =>
    QueryMetrics.gauges.foreach { case (metric, value) =>
      // no dots, as in Spark's own
      register(
        s"operator$id-$name-$metric",
        query().operators.find(_.id == id).map(operator => value(operator.numbers)))
    }
  }

  private def register(name: String, value: => Option[Long]): Unit = {
    metricRegistry.register(
      name,
      new Gauge[Long] {
        override def getValue: Long = value.getOrElse(0L)
      })
    ()
  }
}

private[status] object QueryMetrics {
  private val gauges: Seq[(String, OperatorNumbers => Long)] = Seq(
    "rowsIn" -> (_.rowsIn.getOrElse(0L)),
    "rowsOut" -> (_.rowsOut),
    "inserts" -> (_.inserts),
    "updatePreimages" -> (_.updatePreimages),
    "updatePostimages" -> (_.updatePostimages),
    "deletes" -> (_.deletes),
    "unmatchedRetractions" -> (_.unmatched),
    "lateRows" -> (_.late),
    "stateRows" -> (_.stateRows),
    "stateBytes" -> (_.stateBytes),
    "taskMs" -> (_.taskMs))

  /** Until the run ends. */
  def register(stream: StreamingQuery, plan: RunningPlan): Unit = {
    val context = stream.sparkSession.sparkContext
    val metrics = new QueryMetrics(() => new RunningQuery(stream, plan), plan.operators)
    context.env.metricsSystem.registerSource(metrics)
    context.addSparkListener(new SparkListener {
      override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
        case ended: QueryTerminatedEvent if ended.runId == stream.runId =>
          context.env.metricsSystem.removeSource(metrics)
          context.removeSparkListener(this)
        case _ =>
      }
    })
  }
}
