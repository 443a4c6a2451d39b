// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.microbatch

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.TaskContext
import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.streaming.StreamingQueryListener.{
  QueryProgressEvent, QueryTerminatedEvent
}
import org.apache.spark.sql.streaming.StreamingQueryProgress
import org.apache.spark.util.CollectionAccumulator

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.compat.RunningStream
import org.apache.spark.sql.changelog.config.ChangelogConf

/**
 * KeySamples: warns, once per run, of a source with several rows of one key. The driver counts a sample of the keys
 * from the beginning of the run. If a key already has a row at the beginning, the count is too low by one. A key has
 * had two rows if the count at the end of a batch exceeds the minimum count by two.
 */
object KeySamples extends Logging {
  private val runs = new ConcurrentHashMap[UUID, SampledRun]

  /** Creates the samples of the batch being planned, if the setting is on. */
  def ofBatch(session: SparkSession): Option[SampledBatch] =
    RunningStream(session)
      .filter(_ => session.sessionState.conf.getConf(ChangelogConf.KEY_SAMPLE_ENABLED))
      .map { stream =>
        val run = stream.handle.runId
        val known = runs.computeIfAbsent(
          run,
          _ => {
            listen(session, run)
            new SampledRun
          })
        new SampledBatch(known, stream.batchId, session)
      }

  /** Returns the warnings of a run, until the run ends. */
  def warnings(run: UUID): Seq[String] = Option(runs.get(run)).toSeq.flatMap(_.warnings)

  private def isBatch(run: UUID, progress: StreamingQueryProgress): Boolean =
    progress.runId == run && progress.durationMs.containsKey("addBatch")

  private def listen(session: SparkSession, run: UUID): Unit = {
    val context = session.sparkContext
    context.addSparkListener(new SparkListener {
      override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
        case done: QueryProgressEvent if isBatch(run, done.progress) =>
          val warnings = runs.get(run).end(done.progress.batchId)
          warnings.foreach(warning => logWarning(s"$warning Run $run is not warned again."))
        case ended: QueryTerminatedEvent if ended.runId == run =>
          runs.remove(run)
          context.removeSparkListener(this)
        case _ =>
      }
    })
  }
}

/**
 * KeySample: counts the rows of sampled keys of a source in one batch. Each task has its own copy.
 *
 * @param source
 *   the number of the source
 * @param mask
 *   the mask of the sample so far
 */
final class KeySample private[microbatch] (
    val batch: Long,
    val source: Int,
    mask: Long,
    tasks: CollectionAccumulator[SampledTask])
    extends Serializable {
  @transient private var task: SampledTask = _

  /** Counts a change of the key with this hash, and returns the kind of the change. Called from generated code. */
  def note(kind: Byte, hash: Long): Byte = {
    if (task == null) task = begun()
    if (kind >= 0) {
      task.numRows += 1
      task.keys.add(hash, if (RowKind.retracts(kind)) -1 else 1)
    }
    kind
  }

  /** Counts an inserted row, and returns true. Called from generated code. */
  def isNoted(hash: Long): Boolean = note(RowKind.Insert, hash) == RowKind.Insert

  private def begun(): SampledTask = {
    val keys = new SampledKeys(mask)
    Option(TaskContext.get()).fold(new SampledTask(-1, keys)) { context =>
      val begun = new SampledTask(context.partitionId(), keys)
      context.addTaskCompletionListener[Unit](_ => tasks.add(begun))
      begun
    }
  }

  /**
   * Returns the sum of the counts of the batch's tasks. For a task with several attempts, the attempt with the most
   * rows counts.
   */
  private[microbatch] def counted: SampledTask = {
    val all = new SampledTask(-1, new SampledKeys(mask))
    tasks.value.asScala.groupBy(_.partition).values.map(_.maxBy(_.numRows)).foreach { task =>
      all.numRows += task.numRows
      all.keys.restrict(task.keys.mask)
      task.keys.counts.foreach { case (hash, count) => all.keys.add(hash, count(0)) }
    }
    all
  }

  // Plans that read the same source are equal.
  override def equals(other: Any): Boolean = other match {
    case that: KeySample => batch == that.batch && source == that.source
    case _ => false
  }

  override def hashCode: Int = (batch, source).hashCode
}

/**
 * SampledKeys: the counts of sampled keys, by hash. A key is in the sample if its hash has no bit of the mask. The mask
 * grows with the number of keys.
 *
 * @param mask
 *   some of the lowest bits
 */
private[microbatch] final class SampledKeys(var mask: Long) extends Serializable {

  /** The net number of rows per key, and the minimum so far. */
  val counts: mutable.LongMap[Array[Int]] = mutable.LongMap.empty

  def add(hash: Long, rows: Int): Unit = if ((hash & mask) == 0) {
    val known = counts.getOrNull(hash)
    if (known != null) known(0) += rows
    else {
      counts(hash) = Array(rows, 0)
      while (counts.size > SampledKeys.Limit) restrict((mask << 1) | 1)
    }
  }

  /** Removes the keys whose hash has one of the bits. */
  def restrict(bits: Long): Unit = if ((bits & ~mask) != 0) {
    mask |= bits
    counts.filterInPlace((hash, _) => (hash & mask) == 0)
  }

  /** Ends a batch. Returns whether a key has had two rows. */
  def findsRepeated(): Boolean = counts.values.exists { count =>
    count(1) = math.min(count(0), count(1))
    count(0) - count(1) > 1
  }
}

private[microbatch] object SampledKeys {
  val Limit = 10000
}

/** The counts of one task. */
private[microbatch] final class SampledTask(val partition: Int, val keys: SampledKeys)
    extends Serializable {
  var numRows = 0L
}

/** Creates the samples of one batch. */
final class SampledBatch private[microbatch] (
    run: SampledRun,
    batch: Long,
    session: SparkSession) {

  /**
   * Returns a sample of a source's keys. Returns None if a repeated key is already known.
   *
   * @param key
   *   the columns of the key, as text
   */
  def of(source: Int, key: String): Option[KeySample] = run.begin(source, key) { mask =>
    val tasks = session.sparkContext.collectionAccumulator[SampledTask]
    new KeySample(batch, source, mask, tasks)
  }
}

/** The counts of a run's sources. */
private[microbatch] final class SampledRun {
  private final class Source(val key: String) {
    val keys = new SampledKeys(0L)
    var isRepeated = false
  }

  private val sources = mutable.SortedMap.empty[Int, Source]
  private var samples = Vector.empty[KeySample]

  def begin(source: Int, key: String)(sample: Long => KeySample): Option[KeySample] =
    synchronized {
      val known = sources.getOrElseUpdate(source, new Source(key))
      val begun = Option.when(!known.isRepeated)(sample(known.keys.mask))
      samples ++= begun
      begun
    }

  def warnings: Seq[String] = synchronized {
    sources.values.filter(_.isRepeated).map(warning).toSeq
  }

  /** Adds the counts of a batch. Returns new warnings. */
  def end(batch: Long): Seq[String] = synchronized {
    val (done, later) = samples.partition(_.batch <= batch)
    samples = later
    // Each reader of a source counts all rows of the source.
    val counted = done.groupBy(_.source).view.mapValues(_.map(_.counted).maxBy(_.numRows))
    sources.toSeq.flatMap { case (number, source) =>
      counted.get(number).filterNot(_ => source.isRepeated).flatMap { batch =>
        source.keys.restrict(batch.keys.mask)
        batch.keys.counts.foreach { case (hash, count) => source.keys.add(hash, count(0)) }
        source.isRepeated = source.keys.findsRepeated()
        Option.when(source.isRepeated)(warning(source))
      }
    }
  }

  private def warning(source: Source): String =
    s"A source has several rows of one key ${source.key}, and each counts. A sample of its keys was " +
      "looked at. To look at all keys, use the argument duplicates => 'warn' or 'fail'."
}
