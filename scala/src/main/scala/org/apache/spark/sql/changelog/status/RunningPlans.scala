// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.status

import java.time.Instant
import java.util.{Collections, WeakHashMap}

import scala.jdk.CollectionConverters._

import com.codahale.metrics.{Gauge, MetricRegistry}

import org.apache.spark.metrics.source.{CodegenMetrics, Source}
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryTerminatedEvent
import org.apache.spark.sql.streaming.{
  StateOperatorProgress,
  StreamingQuery,
  StreamingQueryProgress
}

import org.apache.spark.sql.changelog.plans.{ExplainNode, OperatorNumber, OperatorNumbers}

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
