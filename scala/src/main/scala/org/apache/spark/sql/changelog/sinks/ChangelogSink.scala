// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import java.util.ServiceLoader

import scala.annotation.tailrec
import scala.jdk.CollectionConverters._

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.execution.streaming.Sink
import org.apache.spark.sql.execution.streaming.operators.stateful.{
  EventTimeWatermarkExec, StateStoreWriter
}
import org.apache.spark.sql.execution.{LogicalRDD, QueryExecution, SparkPlan, UnaryExecNode}
import org.apache.spark.sql.sources.{
  BaseRelation, CreatableRelationProvider, DataSourceRegister, StreamSinkProvider
}
import org.apache.spark.sql.streaming.OutputMode
import org.apache.spark.sql.types.DataType
import org.apache.spark.sql.{DataFrame => AnyDataFrame, SQLContext, SaveMode}
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.LongAccumulator

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.RowKind.ChangeTypes
import org.apache.spark.sql.changelog.checkpoint.{Fence, QueryOrigin}
import org.apache.spark.sql.changelog.compat.RunningStream
import org.apache.spark.sql.changelog.errors.ChangelogErrors.{analysis, runtime}

/**
 * ChangelogSink: writes the changes of a query, batch by batch. Writing a batch twice has no further effect.
 *
 * Batches arrive through Spark's interface for sinks. The extension checks the query's changes
 * when the query starts. Without the extension, the sink checks the changes at the first batch.
 *
 * @param format
 *   the name of the sink's format, for errors
 */
abstract class ChangelogSink(val format: String) extends Sink {
  @volatile private var accepted: Option[SinkInput] = None

  /** Counts the changes since the creation of the sink. */
  val counts = new ChangeCounts

  /** Rejects input without support in this sink. Called before the first batch. */
  protected def check(input: SinkInput): Unit

  /** Writes a batch. The same batch may arrive again, even after a partial write. */
  def write(batch: ChangelogBatch): Unit

  /**
   * Whether the target already has the rows of the first batch, for example rows computed without
   * state. The query then computes only the state of that batch.
   */
  protected def hasFirstBatch(session: SparkSession, queryId: String): Boolean = false

  /** The name of the target, for errors. */
  protected def targetName: String = format

  /** Returns the last batch of a query in the target, if the target records batches. */
  protected def lastBatchOf(session: SparkSession, queryId: String): Option[Long] = None

  /**
   * Rejects a target with later rows than the batch from which a query continues. Rejects any
   * rows if the query starts from scratch.
   *
   * @param origins
   *   the queries from which the query descends, the nearest first
   */
  def checkOrigins(session: SparkSession, origins: Seq[QueryOrigin]): Unit = {
    val written = origins.iterator.flatMap { origin =>
      lastBatchOf(session, origin.queryId).map(origin -> _)
    }
    written.nextOption().foreach { case (QueryOrigin(origin, last), held) =>
      last match {
        case None =>
          throw runtime(
            "CHANGELOG_SINK_NOT_EMPTY",
            "sink" -> format,
            "table" -> targetName,
            "origin" -> origin,
            "held" -> held)
        // The target may not record a batch without changes.
        case Some(batch) if held > batch =>
          throw runtime(
            "CHANGELOG_SINK_NOT_AT_FORK",
            "sink" -> format,
            "table" -> targetName,
            "origin" -> origin,
            "forked" -> batch,
            "held" -> held)
        case _ =>
      }
    }
  }

  /** Accepts a query by its `output` columns and its `optimized` plan. */
  def accept(output: Seq[Attribute], optimized: LogicalPlan): SinkInput =
    accept(SinkInput(format, output, optimized))

  /** Records the properties of the query's changes before the first batch. */
  final def accept(input: SinkInput): SinkInput = {
    check(input)
    accepted = Some(input)
    input
  }

  final override def addBatch(batchId: Long, data: AnyDataFrame): Unit = {
    Fence.check("batch")
    val session = castToImpl(data.sparkSession)
    val execution = castToImpl(data).queryExecution
    // The optimizer assigns other ids to the columns of a batch.
    val optimized = execution.optimizedPlan
    val input = accepted.getOrElse(accept(optimized.output, optimized))
    val queryId = RunningStream.queryId(session.sparkContext)
    if (batchId == 0 && hasFirstBatch(session, queryId)) computeState(execution)
    else {
      // Spark's plan of a batch must run unchanged. The operations on its rows are planned
      // separately.
      val rows = execution.toRdd
      val changeType = data.schema.fieldIndex(input.changeType.name)
      val counted = counts.count(session, rows, changeType)
      val made = LogicalRDD.fromDataset(counted, data, isStreaming = false)
      // The ordering refers to former ids of columns, and persist() would not find the columns.
      val plan = LogicalRDD(made.output, made.rdd, made.outputPartitioning)(
        session,
        Some(made.stats),
        Some(made.constraints))
      val changes = Dataset.ofRows(session, plan)
      write(ChangelogBatch(queryId, batchId, input, changes, SinkInput.nettedBy(optimized)))
    }
  }

  /** Runs a batch without its rows: the plan up to the last operator with state. */
  private def computeState(execution: QueryExecution): Unit = {
    @tailrec
    def lastState(plan: SparkPlan): Option[SparkPlan] = plan match {
      case state: StateStoreWriter => Some(state)
      case unary: UnaryExecNode if !unary.isInstanceOf[EventTimeWatermarkExec] =>
        lastState(unary.child)
      case _ => None
    }
    // Prepares the whole plan.
    val rows = execution.toRdd
    val computed = lastState(execution.executedPlan).fold(rows)(_.execute())
    computed.foreachPartition(_.foreach(_ => ()))
  }

  /** Shown in the progress of the query. Options are left out, because they may be secrets. */
  override def toString: String = format
}

/**
 * Counts the rows written and retracted by a sink since its creation, over all batches. A
 * repeated task may count its rows again.
 */
class ChangeCounts {
  @volatile private var counters: Option[(LongAccumulator, LongAccumulator)] = None

  def written: Long = counters.fold(0L)(_._1.sum)

  def takenBack: Long = counters.fold(0L)(_._2.sum)

  /**
   * Returns the rows unchanged, and counts them during the read. `changeType` is the position of the change type.
   */
  def count(session: SparkSession, rows: RDD[InternalRow], changeType: Int): RDD[InternalRow] = {
    val (written, takenBack) = counters.getOrElse {
      val context = session.sparkContext
      val made = (context.longAccumulator, context.longAccumulator)
      counters = Some(made)
      made
    }
    val old = Seq(RowKind.UpdateBefore, RowKind.Delete).map(ChangeTypes(_))
    rows.mapPartitions { partition =>
      val names = old.map(UTF8String.fromString)
      partition.map { row =>
        (if (names.contains(row.getUTF8String(changeType))) takenBack else written).add(1L)
        row
      }
    }
  }
}

/** Creates the sink of `writeStream.format(format)`. */
abstract class ChangelogSinkProvider(format: String)
    extends StreamSinkProvider
    with CreatableRelationProvider
    with DataSourceRegister {

  protected def sink(session: SparkSession, options: SinkOptions): ChangelogSink

  final override def shortName(): String = format

  final override def createSink(
      sqlContext: SQLContext,
      parameters: Map[String, String],
      partitionColumns: Seq[String],
      outputMode: OutputMode): Sink =
    sink(castToImpl(sqlContext.sparkSession), new SinkOptions(format, parameters))

  /** Rejects every batch query. */
  final override def createRelation(
      sqlContext: SQLContext,
      mode: SaveMode,
      parameters: Map[String, String],
      data: AnyDataFrame): BaseRelation =
    throw analysis("CHANGELOG_SINK_NEEDS_STREAM", "sink" -> format)

  final override def supportsDataType(dt: DataType): Boolean = true
}

object ChangelogSinkProvider {

  /** Returns the formats of all changelog sinks. */
  def formats: Seq[String] =
    ServiceLoader
      .load(classOf[DataSourceRegister], classOf[ChangelogSinkProvider].getClassLoader)
      .asScala
      .collect { case provider: ChangelogSinkProvider => provider.shortName() }
      .toSeq
      .sorted
}
