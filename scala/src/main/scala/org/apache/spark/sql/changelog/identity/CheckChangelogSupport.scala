// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import scala.util.Try

import org.apache.hadoop.fs.Path

import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.{AnalysisHelper, LogicalPlan, WithCTE}
import org.apache.spark.sql.catalyst.streaming.WriteToStream
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.analysis.LowerSources
import org.apache.spark.sql.changelog.checkpoint.{BatchLogs, CheckBatchLogs, QueryOrigin}
import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime
import org.apache.spark.sql.changelog.microbatch.AssignStateInfo
import org.apache.spark.sql.changelog.plans.{ChangelogOutput, KeepsState, ToChangelog}
import org.apache.spark.sql.changelog.sinks.ChangelogSink
import org.apache.spark.sql.changelog.sources.KafkaBrokers
import org.apache.spark.sql.changelog.state.PagedStateProvider

/**
 * Rejects unsupported queries at `start()`, naming the unsupported node.
 *
 * A node's changes are known only after Spark has optimized the query. The check therefore
 * optimizes the query as in each batch.
 */
class CheckChangelogSupport(session: SparkSession) extends (LogicalPlan => Unit) with Logging {

  override def apply(plan: LogicalPlan): Unit = plan match {
    case write: WriteToStream =>
      AnalysisHelper.allowInvokingTransformsInAnalyzer {
        // Common tables are already inlined during Spark's check, and unread ones remain in the
        // plan.
        val query = write.inputQuery.transformUpWithSubqueries { case common: WithCTE =>
          common.plan
        }
        val changes = query.exists(_.isInstanceOf[ToChangelog])
        val classic = castToImpl(session)
        def optimized = AssignStateInfo.outsideOfQuery(classic) {
          classic.sessionState.optimizer.execute(LowerSources(query))
        }
        if (changes) {
          val checkpoint = new Path(write.resolvedCheckpointLocation)
          val logs = new BatchLogs(classic, checkpoint)
          checkCheckpoint(checkpoint, logs, query)
          val running = optimized
          CheckStateProvider(running, logs.settings, classic.sessionState.conf)
          if (logs.lastDone.isEmpty) warn(running)
          KafkaBrokers.check(query)
          checkSink(write, running)
        } else checkSink(write, query)
      }
    case _ =>
  }

  /** Logs the risks of a query once, before the first batch. */
  private def warn(query: LogicalPlan): Unit = {
    val warnings = query.collect { case output: ChangelogOutput => output.explained.allWarnings }
    if (warnings.flatten.nonEmpty) {
      logWarning(s"Risks of the started query:\n${warnings.flatten.distinct.mkString("\n")}")
    }
  }

  /**
   * Checks the completeness of the checkpoint and, after the first batch, whether the query
   * equals the recorded one.
   */
  private def checkCheckpoint(checkpoint: Path, logs: BatchLogs, query: LogicalPlan): Unit = {
    val classic = castToImpl(session)
    new CheckBatchLogs(classic, checkpoint)()
    val hadoopConf = classic.sessionState.newHadoopConf()
    val file = new QueryRecordFile(checkpoint, hadoopConf)
    lazy val current = QueryRecord(query, classic.sessionState.conf)
    if (logs.lastDone.isDefined) {
      CheckSameQuery(checkpoint.toString, file.read(), current)
    } else if (logs.lastBegun.isEmpty && file.exists) {
      throw runtime(
        "CHANGELOG_CHECKPOINT_LOG_INCOMPLETE",
        "file" -> new Path(checkpoint, "offsets").toString,
        "evidence" -> "the query has started according to changelog/plan.json")
    }
    if (logs.lastBegun != logs.lastDone && current.snapshots.nonEmpty) {
      val inherited =
        InheritedState.file(checkpoint, hadoopConf).find().map(InheritedState.fromJson)
      // Only the first batch reads snapshots.
      val first = inherited.fold(0L)(_.batch)
      if (logs.lastBegun.contains(first) && file.exists)
        CheckSameQuery.snapshots(checkpoint.toString, file.read(), current)
    }
  }

  /** Checks the requirements of a changelog sink. */
  private def checkSink(write: WriteToStream, query: LogicalPlan): Unit = write.sink match {
    case sink: ChangelogSink =>
      sink.accept(write.inputQuery.output, query)
      val classic = castToImpl(session)
      val checkpoint = new Path(write.resolvedCheckpointLocation)
      val origins = QueryOrigin.read(checkpoint, classic.sessionState.newHadoopConf())
      sink.checkOrigins(classic, origins)
    case _ =>
  }
}

/** Rejects paged state in checkpoint format 2, where each attempt of a task has its own files. */
private object CheckStateProvider {

  /**
   * @param query
   *   the optimized query
   * @param recorded
   *   the settings in the checkpoint
   */
  def apply(query: LogicalPlan, recorded: Map[String, String], conf: SQLConf): Unit = {
    val format = conf.stateStoreCheckpointFormatVersion
    val provider =
      recorded.getOrElse(SQLConf.STATE_STORE_PROVIDER_CLASS.key, conf.stateStoreProviderClass)
    if (format > 1 && isPaged(provider) && query.exists(_.isInstanceOf[KeepsState])) {
      throw runtime("CHANGELOG_CHECKPOINT_FORMAT_NOT_SUPPORTED", "version" -> format)
    }
  }

  private def isPaged(provider: String): Boolean =
    Try(Utils.classForName[Any](provider)).toOption
      .exists(classOf[PagedStateProvider].isAssignableFrom(_))
}
