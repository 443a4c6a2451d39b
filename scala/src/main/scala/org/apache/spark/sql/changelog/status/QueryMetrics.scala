// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.status

import com.codahale.metrics.{Gauge, MetricRegistry}

import org.apache.spark.metrics.source.Source
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryTerminatedEvent

import org.apache.spark.sql.changelog.plans.OperatorNumber

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
    OperatorNumber.all.collect { case count: OperatorNumber.Count =>
      // no dots, as in Spark's own
      register(
        s"operator$id-$name-${count.name}",
        query().operators.find(_.id == id).flatMap(operator => count.value(operator.numbers)))
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
