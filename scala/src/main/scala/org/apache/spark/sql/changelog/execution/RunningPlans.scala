// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import java.time.Instant
import java.util.{Collections, WeakHashMap}

import scala.jdk.CollectionConverters._

import com.codahale.metrics.{Gauge, MetricRegistry}

import org.apache.spark.metrics.source.{CodegenMetrics, Source}
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryTerminatedEvent
import org.apache.spark.sql.streaming.{
  StateOperatorProgress, StreamingQuery, StreamingQueryProgress
}

import org.apache.spark.sql.changelog.microbatch.KeySamples
import org.apache.spark.sql.changelog.plans.{ExplainNode, OperatorNumber, OperatorNumbers}

/**
 * The plan of a query's run.
 *
 * @param trees
 *   the tree of EXPLAIN for each `to_changelog` of the query
 * @param operators
 *   ids and names of operators, in the order of the query's progress
 * @param compiledBefore
 *   the number of classes compiled by the driver before the run
 */
private[execution] final case class RunningPlan(
    trees: Seq[ExplainNode],
    operators: Seq[(Long, String)],
    compiledBefore: Long)

/** The changelog queries of this application. A query is forgotten with its `StreamingQuery` object. */
object RunningPlans {
  private val plans = Collections.synchronizedMap(new WeakHashMap[StreamingQuery, RunningPlan])

  /** The listener for new runs. */
  @volatile private var begun: StreamingQuery => Unit = _ => ()

  /** Sets the listener for new runs. */
  def onQueryStart(tell: StreamingQuery => Unit): Unit = begun = tell

  /** Registers a `to_changelog` of a query. Called in the first batch of a run. */
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

  /** The running queries, and ended queries that are still referenced. */
  def all: Seq[RunningQuery] = plans.synchronized {
    plans.asScala.toSeq.map { case (stream, plan) => new RunningQuery(stream, plan) }
  }

  /** Returns the newest query with this name or id. */
  def find(name: String): Option[RunningQuery] =
    all.filter(_.isCalled(name)).sortBy(query => (query.isActive, query.batchId)).lastOption

  /** The number of classes compiled by the driver, in local mode including classes compiled by tasks. */
  private[execution] def compiled: Long = CodegenMetrics.METRIC_COMPILATION_TIME.getCount
}

/** An operator of a running query, with the numbers of the last batch. */
final case class RunningOperator(id: Long, name: String, numbers: OperatorNumbers)

/** A running query, with the numbers of its last completed batch. */
class RunningQuery private[execution] (stream: StreamingQuery, plan: RunningPlan) {

  val name: Option[String] = Option(stream.name)
  val id: String = stream.id.toString
  val runId: String = stream.runId.toString

  /** The name of the query, or the id of a query without name. */
  def title: String = name.getOrElse(id)

  def isCalled(text: String): Boolean = name.contains(text) || id == text || runId == text

  def isActive: Boolean = stream.isActive

  /** The progress of the last batch with data. An idle query continues to report the last batch. */
  lazy val progress: Option[StreamingQueryProgress] = {
    val (done, idle) = stream.recentProgress.toSeq.partition(_.durationMs.containsKey("addBatch"))
    done.lastOption.orElse(idle.lastOption)
  }

  /**
   * The time of the last progress report: everything delivered before this time has been read. Empty before the
   * first batch.
   */
  def asOf: Option[Instant] =
    Option(stream.lastProgress).map(last => Instant.parse(last.timestamp))

  def batchId: Long = progress.map(_.batchId).getOrElse(-1L)

  /** The number of classes compiled by the driver since the run began, including classes of other queries. */
  def compiled: Long = RunningPlans.compiled - plan.compiledBefore

  /** The operators, from the sources up; empty before the first completed batch. */
  lazy val operators: Seq[RunningOperator] = progress
    .map(_.stateOperators.toSeq)
    .filter(_.size == plan.operators.size)
    .toSeq
    .flatMap(plan.operators.zip(_))
    .map { case ((id, _), operator) =>
      RunningOperator(id, operator.operatorName, RunningQuery.numbers(operator))
    }
    .sortBy(_.id)

  /** The tree of EXPLAIN for each `to_changelog`, with the numbers of the last batch. */
  def trees: Seq[ExplainNode] = {
    val byId = operators.map(operator => operator.id -> operator.numbers).toMap
    val warnings = KeySamples.warnings(stream.runId)
    plan.trees.map(_.running(byId)).map(tree => tree.copy(warnings = tree.warnings ++ warnings))
  }

  /** The numbers of operators without an operator above. */
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

/**
 * Reports the operators of a query to Spark's metrics system, as Spark does for the whole query. Requires
 * `spark.sql.streaming.metricsEnabled`, and stops when the query ends. The driver reads the query's progress on
 * request.
 *
 * @param query
 *   returns the current state of the query
 * @param operators
 *   ids and names of the operators
 */
private[execution] class QueryMetrics(query: () => RunningQuery, operators: Seq[(Long, String)])
    extends Source {
  private val described = query()

  override val sourceName: String =
    s"spark.changelog.${described.name.getOrElse(described.id)}"

  override val metricRegistry: MetricRegistry = new MetricRegistry

  register("compiledClasses", Some(query().compiled))
  operators.foreach { case (id, name) =>
    OperatorNumber.all.collect { case count: OperatorNumber.Count =>
      // no dots, as in Spark's own metrics
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

private[execution] object QueryMetrics {

  /** Registers a run's metrics until the run ends. */
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
