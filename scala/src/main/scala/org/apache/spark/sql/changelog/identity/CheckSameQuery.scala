// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import scala.util.Try

import org.apache.hadoop.fs.Path

import org.apache.spark.SPARK_VERSION
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.EvalMode
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
 * Rejects a query whose meaning differs from the recorded query of the checkpoint.
 *
 * The plan below `to_changelog` must be equal. Differences without effect on rows and state are
 * allowed: names, the order of conditions, the location of a source, and the handling of
 * failures.
 */
private[changelog] object CheckSameQuery {

  def apply(checkpoint: String, was: QueryRecord, is: QueryRecord): Unit = {
    if (!haveEqualMeaning(was.lines, is.lines)) {
      val settings = changed(was.settings, is.settings)
      throw runtime(
        "CHANGELOG_QUERY_CHANGED",
        "checkpoint" -> checkpoint,
        "difference" -> (difference(was.lines, is.lines) ++ settings ++ versions(was))
          .mkString("\n"))
    }
    val moved = was.sources.zip(is.sources).exists { case (old, now) =>
      old != now && was.sources.contains(now)
    }
    if (moved)
      throw runtime(
        "CHANGELOG_SOURCES_CHANGED",
        "checkpoint" -> checkpoint,
        "was" -> was.sources,
        "is" -> is.sources)
  }

  /** Rejects changed snapshots, if a batch still has to read the recorded snapshots. */
  def snapshots(checkpoint: String, was: QueryRecord, is: QueryRecord): Unit =
    if (was.snapshots != is.snapshots)
      throw runtime("CHANGELOG_SNAPSHOT_CHANGED", "checkpoint" -> checkpoint)

  /** Rejects a query with operators different from the record. */
  def operators(checkpoint: String, was: QueryRecord, is: Seq[OperatorRecord]): Unit = {
    val (old, now) = (was.operators.map(_.line), is.map(_.line))
    if (!haveEqualMeaning(old, now))
      throw runtime(
        "CHANGELOG_QUERY_PLANNED_OTHERWISE",
        "checkpoint" -> checkpoint,
        "difference" -> (difference(old, now) ++ versions(was)).mkString("\n"))
    // The node is equal, but the current version of the extension stores different tables for the
    // node.
    val others = was.operators.zip(is).filter { case (old, now) => old.kinds != now.kinds }
    if (others.nonEmpty) {
      val (kept, keeps) = others.unzip
      throw runtime(
        "CHANGELOG_QUERY_PLANNED_OTHERWISE",
        "checkpoint" -> checkpoint,
        "difference" -> (difference(kept.map(_.kept), keeps.map(_.kept)) ++ versions(was))
          .mkString("\n"))
    }
  }

  private def haveEqualMeaning(was: Seq[String], is: Seq[String]): Boolean =
    was.size == is.size && was.zip(is).forall { case (old, now) => means(old, now) }

  /**
   * Whether two texts are equal, except for expressions that now return a value instead of
   * failing. The expressions have not failed so far, so results are equal.
   */
  private def means(was: String, is: String): Boolean = was == is || {
    val modes = Mode.findAllIn(was).toSeq.zip(Mode.findAllIn(is).toSeq)
    Mode.split(was).sameElements(Mode.split(is)) && modes.forall { case (old, now) =>
      old == now || old == s"mode=${EvalMode.ANSI}"
    }
  }

  /** The form of an evaluation mode in [[CanonicalExpression]], outside quoted texts. */
  private val Mode = EvalMode.values.mkString("(?<=[( ])mode=(", "|", ")(?=[,)])").r

  private def changed(was: Map[String, String], is: Map[String, String]): Seq[String] =
    RecordedSettings.changed(was, is).map { key =>
      s"$key: was ${was.getOrElse(key, "not set")}, is ${is.getOrElse(key, "not set")}"
    }

  /** Another version of Spark may optimize a query to another plan, because its rules differ. */
  private def versions(was: QueryRecord): Seq[String] =
    if (was.spark == SPARK_VERSION) Nil
    else Seq(s"Spark: was ${was.spark}, is $SPARK_VERSION")

  /** Returns the lines from the first to the last difference. */
  private def difference(was: Seq[String], is: Seq[String]): Seq[String] = {
    val numSame = was.zip(is).takeWhile { case (old, now) => old == now }.size
    val (old, now) = (was.drop(numSame), is.drop(numSame))
    val numEnd =
      old.reverse.zip(now.reverse).takeWhile { case (left, right) => left == right }.size
    val pairs = old.dropRight(numEnd).zipAll(now.dropRight(numEnd), "", "")
    def lines(label: String, line: ((String, String)) => (String, String)) =
      pairs.map(line).collect { case (text, other) if text.nonEmpty => label + part(text, other) }
    lines("was ", identity) ++ lines("is  ", _.swap)
  }

  /** Returns the differing part of a long line. */
  private def part(line: String, other: String): String =
    if (line.length <= LongestLine) line
    else {
      val numSame = line.zip(other).takeWhile { case (one, two) => one == two }.size
      val start = math.max(0, numSame - LongestLine / 4)
      val end = if (start + LongestLine < line.length) "…" else ""
      s"${if (start > 0) "…" else ""}${line.slice(start, start + LongestLine)}$end"
    }

  private val LongestLine = 400
}

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
    new CheckBatchLogs(classic, checkpoint, logs)()
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
