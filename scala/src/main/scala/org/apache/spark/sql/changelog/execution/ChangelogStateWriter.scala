// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import java.util.concurrent.TimeUnit.NANOSECONDS

import scala.reflect.ClassTag
import scala.util.Try

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.SparkException
import org.apache.spark.internal.LogKeys
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.plans.physical.{Distribution, Partitioning}
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.operators.stateful.{
  StateStoreWriter, StatefulOperatorCustomMetric, StatefulOperatorCustomSumMetric
}
import org.apache.spark.sql.execution.streaming.state.{
  KeyStateEncoderSpec, NoPrefixKeyStateEncoderSpec, OperatorStateMetadata,
  StateSchemaValidationResult, StateStore, UnsafeRowPair
}
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.streaming.StateOperatorProgress
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.CompletionIterator

import org.apache.spark.sql.changelog.checkpoint.NamingFile
import org.apache.spark.sql.changelog.compat.{SparkRDDs, StatePlacement, StateStores}
import org.apache.spark.sql.changelog.config.{ChangelogConf, UnmatchedRetraction}
import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime
import org.apache.spark.sql.changelog.execution.expiry.{EntryTimes, TimeIndexes, TimedStateStore}
import org.apache.spark.sql.changelog.identity.EntryPlacement
import org.apache.spark.sql.changelog.inference.times.EventTime
import org.apache.spark.sql.changelog.microbatch.{AssignStateInfo, BatchTime}
import org.apache.spark.sql.changelog.plans.StoredResult

/**
 * An operator with one state store per partition.
 *
 * Spark's own metrics, state schema, operator metadata and restart checks apply. An operator declares the
 * layout of its state and processes the rows of a partition. An operator with a single input is a
 * [[UnaryChangelogStateWriter]].
 */
trait ChangelogStateWriter extends StateStoreWriter { self: SparkPlan =>

  /** The columns by which a state entry is looked up. */
  def stateKeySchema: StructType

  /** The columns stored per entry. */
  def stateValueSchema: StructType

  /** How the store encodes keys. The encoder decides whether entries can be scanned by a prefix of the key. */
  def keyEncoder: KeyStateEncoderSpec = NoPrefixKeyStateEncoderSpec(stateKeySchema)

  /** Declares the partition of each state entry. */
  def placement: EntryPlacement

  /** The columns of the state's key that may include an event time with a watermark. */
  def timedColumns: Seq[Attribute] = Nil

  /** How a watermark bounds the state in the running batch. */
  protected final lazy val eventTimeBound: Option[EventTimeBound] =
    EventTimeBound(timedColumns, batchTime)

  protected final lazy val batchTime: BatchTime =
    AssignStateInfo.time(castToImpl(session), inputWatermark(_))

  /** Returns the watermark that bounds the state, in ms. `origin` is the query's watermark. */
  protected def inputWatermark(origin: Long): Option[Long] = OperatorWatermark.below(this, origin)

  /**
   * The state TTLs of the operator, in ms. 0 means for ever. A single TTL applies to all entries. With several,
   * each kind of entry has its own TTL, and the key's first column is the number of the kind. Entries bounded
   * by a watermark have no TTL.
   */
  protected lazy val ttls: Seq[Long] =
    Seq(
      if (EventTime.firstOf(timedColumns).isDefined) 0L
      else conf.getConf(ChangelogConf.STATE_TTL))

  private lazy val expiry: Option[StateExpiry] =
    if (ttls.forall(_ == 0)) None else Some(new StateExpiry(stateValueSchema, ttls))

  private def storedColumns: StateStores.Columns = StateStores.Columns(
    stateKeySchema,
    expiry.map(_.storedSchema).getOrElse(stateValueSchema),
    keyEncoder)

  /** The watermark that decides which rows an emit-on-close operator emits. */
  protected def closingBound: Option[EventTimeBound] = eventTimeBound

  /** Whether the operator emits rows once, after the watermark has passed them. */
  def emitsClosed: Boolean = false

  /**
   * Returns whether a batch without input has work to do. A watermark closes groups, and passing time expires
   * rows, without any change in the input.
   */
  final override def shouldRunAnotherBatch(newInputWatermark: Long): Boolean = {
    val watermark = inputWatermark(AssignStateInfo.nextWatermark(castToImpl(session)))
    watermark.exists(closesMoreAt) ||
    changesAt(AssignStateInfo.nextTimestamp(castToImpl(session)))
  }

  /** Returns whether the operator emits rows once the watermark reaches `watermark`, in ms. */
  protected def closesMoreAt(watermark: Long): Boolean =
    emitsClosed && closingBound.exists(watermark > _.eviction.getOrElse(0L))

  /** Returns whether the operator emits rows in a batch that starts at `time`, in ms, without input. */
  protected def changesAt(time: Long): Boolean = false

  /**
   * Whether a partition without input rows emits nothing and expires no state. Most partitions of a
   * small batch have no input.
   */
  protected def isNoOpWithoutInput: Boolean = false

  /** Drops late rows and counts them. */
  protected def withoutLate(
      rows: Iterator[InternalRow],
      columns: Seq[Attribute],
      bound: Option[EventTimeBound] = eventTimeBound): Iterator[InternalRow] =
    bound.flatMap(_.isLate(columns)) match {
      case Some(isLate) => applyRemovingRowsOlderThanWatermark(rows, isLate)
      case None => rows
    }

  /** Places the rows with equal `key` in one partition. With an empty `key`, all rows are in one partition. */
  protected def clusteredBy(key: Seq[Expression]): Distribution =
    StatePlacement.clusteredBy(key, getStateInfo.numPartitions, conf)

  /** When a watermark makes entries expire or need a check; None if no watermark does. */
  protected def entryTimes: Option[EntryTimes] = None

  /** Returns when entries expire, for a state whose key has the columns `key`. */
  protected def timesOfKey(key: Seq[Attribute]): Option[EntryTimes] =
    eventTimeBound.map(bound => EntryTimes.ofKey(bound.column, key))

  /** Removes expired entries, which no further change can reach. */
  protected def removeExpired(store: StateStore): Unit =
    expiredEntries(store).foreach { entry =>
      store.remove(entry.key)
      longMetric("numRemovedStateRows") += 1
    }

  /** Returns the expired entries, which no further change can reach. The caller may remove entries while iterating. */
  protected def expiredEntries(
      store: StateStore,
      bound: Option[EventTimeBound] = eventTimeBound): Iterator[UnsafeRowPair] =
    bound.flatMap(_.moved).map(entriesDue(store, _)).getOrElse(Iterator.empty)

  /**
   * Returns the entries to expire or check at the watermark `watermark`, in ms. The caller must exhaust the
   * iterator.
   */
  protected def entriesDue(store: StateStore, watermark: Long): Iterator[UnsafeRowPair] =
    store match {
      case timed: TimedStateStore => timed.due(DateTimeUtils.millisToMicros(watermark))
      case other => throw new IllegalStateException(s"no times of entries are known in $other")
    }

  /**
   * None, so that Spark leaves adaptive execution off for the query. Spark does the same for its own stateful
   * operators, because state lives in a fixed number of partitions.
   */
  override def logicalLink: Option[LogicalPlan] = None

  final override protected def customStatefulOperatorMetrics: Seq[StatefulOperatorCustomMetric] =
    counters.map { case (name, description) =>
      StatefulOperatorCustomSumMetric(name, description)
    }

  /** The names and descriptions of the operator's metrics. */
  protected def counters: Seq[(String, String)] = Seq(
    "numRetractions" -> "number of retractions emitted",
    "numUpdatePostimages" -> "number of after images emitted",
    "numDeletes" -> "number of deletes emitted",
    "numUnmatchedRetractions" -> "number of retractions of rows never inserted",
    "numExpiredStateRows" -> "number of state rows expired by the TTL")

  /** Adds the number of input rows, and of output rows by row kind, to Spark's progress. */
  override def getProgress(): StateOperatorProgress = {
    val progress = super.getProgress()
    val emitted = longMetric("numOutputRows").value
    val retracted = longMetric("numRetractions").value
    val updates = longMetric("numUpdatePostimages").value
    val counts = Seq(
      "numOutputRows" -> emitted,
      "numInserts" -> (emitted - retracted - updates),
      "numUpdatePreimages" -> (retracted - longMetric("numDeletes").value))
    (counts ++ InputRows(this).map("numInputRows" -> _)).foreach { case (name, count) =>
      progress.customMetrics.put(name, count)
    }
    progress
  }

  protected def inputRows: Seq[RDD[InternalRow]] = children.map(_.execute())

  override def validateAndMaybeEvolveStateSchema(
      hadoopConf: Configuration,
      batchId: Long,
      stateSchemaVersion: Int): List[StateSchemaValidationResult] = {
    checkColumnsFile(hadoopConf, batchId)
    notePlacement(hadoopConf)
    List(
      StateStores.validate(
        getStateInfo,
        storedColumns,
        hadoopConf,
        session.sessionState,
        stateSchemaVersion))
  }

  /**
   * Fails if the file with the state's columns cannot be read. In batch 0 the file comes from an uncommitted
   * attempt and is deleted.
   */
  private def checkColumnsFile(hadoopConf: Configuration, batchId: Long): Unit = {
    val file = StateStores.columnsFile(getStateInfo)
    val files = CheckpointFileManager.create(file, hadoopConf)
    if (files.exists(file.getParent) && files.exists(file)) {
      if (batchId == 0) files.delete(file)
      else NamingFile(file)(file => StateStores.readColumns(files.open(file)))
    }
  }

  /** Records the partition of each entry in the checkpoint, for moving the state to another number of partitions. */
  private def notePlacement(hadoopConf: Configuration): Unit = {
    val folder = new Path(getStateInfo.checkpointLocation)
    val file = EntryPlacement.file(folder, getStateInfo.operatorId, hadoopConf)
    val text = placement.toJson
    // an unreadable file is written again
    if (!Try(file.find()).toOption.flatten.contains(text)) file.write(text)
  }

  /** Tells Spark's `statestore` reader how keys are encoded. */
  override def operatorStateMetadata(
      stateSchemaPaths: List[List[String]] = Nil): OperatorStateMetadata =
    StateStores.metadata(getStateInfo, shortName, keyEncoder)

  /** Returns the rows of several inputs by partition, one iterator per input. */
  protected def zipped(inputs: Seq[RDD[InternalRow]]): RDD[Seq[Iterator[InternalRow]]] = {
    val firstTwo: RDD[Seq[Iterator[InternalRow]]] =
      SparkRDDs.zip(inputs(0), inputs(1))((first, second) =>
        Iterator.single(Vector(first, second)))
    inputs.drop(2).foldLeft(firstTwo) { (zipped, input) =>
      SparkRDDs.zip(zipped, input)((before, rows) => before.map(_ :+ rows))
    }
  }

  /**
   * Passes each partition of `input` its state store. At the end of the partition the store is committed and
   * the metrics are set.
   */
  protected def executeWithStore[T: ClassTag](input: RDD[T])(
      process: (StateStore, Iterator[T]) => Iterator[InternalRow]): RDD[InternalRow] = {
    // initialized here, on the driver
    metrics
    eventTimeBound
    closingBound
    val time = if (expiry.isDefined) Some(batchTime) else None
    val emitsAll = StoredResult.isWanted(this)
    val processAndCommit = (store: StateStore, rows: Iterator[T]) => {
      val started = System.nanoTime()
      val expiring = expiry.zip(time).map { case (expiry, time) =>
        new ExpiringStateStore(store, expiry, time, longMetric("numExpiredStateRows"))
      }
      val timed = entryTimes.map(TimeIndexes.open(expiring.getOrElse(store), _, getStateInfo))
      val used = timed.orElse(expiring).getOrElse(store)
      val changes = process(used, rows)
      val output =
        if (emitsAll) {
          changes.foreach(_ => ())
          storedResult(used)
        } else changes
      CompletionIterator[InternalRow, Iterator[InternalRow]](
        output, {
          longMetric("allUpdatesTimeMs") += NANOSECONDS.toMillis(System.nanoTime() - started)
          longMetric("allRemovalsTimeMs") += timeTakenMs(expiring.foreach(_.forgetExpired()))
          longMetric("commitTimeMs") += timeTakenMs(store.commit())
          timed.foreach(TimeIndexes.keep(_, getStateInfo))
          setStoreMetrics(timed.getOrElse(store))
          setOperatorMetrics()
        })
    }
    new OperatorStateRDD(
      castToImpl(session),
      input,
      getStateInfo,
      storedColumns,
      processAndCommit)
  }

  /**
   * Returns all rows of the result, read from the state, as inserts. Called on executors, and only for
   * operators that [[org.apache.spark.sql.changelog.optimizer.rewrite.KnownResult]] accepts.
   */
  protected def storedResult(store: StateStore): Iterator[InternalRow] =
    throw SparkException.internalError(s"$shortName does not keep its result")

  /** Returns the counters of emitted changes and changed state. */
  protected def changeMetrics: ChangeMetrics = ChangeMetrics(
    longMetric("numOutputRows"),
    longMetric("numRetractions"),
    longMetric("numUpdatePostimages"),
    longMetric("numDeletes"),
    longMetric("numUpdatedStateRows"),
    longMetric("numRemovedStateRows"))

  /** Applies the session's policy to unmatched retractions. */
  protected def unmatchedRetractions(): UnmatchedRetractions = {
    val policy = UnmatchedRetraction.fromConf(conf)
    val counter = longMetric("numUnmatchedRetractions")
    val operator = shortName
    new UnmatchedRetractions {
      private var warned = false

      override def apply(count: Long, key: => String): Unit = {
        counter += count
        policy match {
          case UnmatchedRetraction.Fail =>
            throw runtime(
              "CHANGELOG_UNMATCHED_RETRACTION",
              "operator" -> operator,
              "key" -> key,
              "conf" -> ChangelogConf.UNMATCHED_RETRACTION.key)
          case UnmatchedRetraction.Warn if !warned =>
            warned = true
            logWarning(
              log"${MDC(LogKeys.OP_TYPE, operator)} got a retraction of a row never " +
                log"inserted; the metric numUnmatchedRetractions counts further " +
                log"unmatched retractions of this task")
          case _ =>
        }
      }
    }
  }
}

/** An operator with one input and one state store per partition. */
trait UnaryChangelogStateWriter extends UnaryExecNode with ChangelogStateWriter {

  /** The columns that distribute rows. With no columns, all rows are in one partition. */
  def placedBy: Seq[Attribute]

  override def requiredChildDistribution: Seq[Distribution] = Seq(clusteredBy(placedBy))

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def placement: EntryPlacement = EntryPlacement.byColumns(placedBy, first = 0)

  /** Processes a partition's rows of one batch and returns the changes to emit. Called on executors. */
  protected def processPartition(
      store: StateStore,
      rows: Iterator[InternalRow]): Iterator[InternalRow]

  override protected def doExecute(): RDD[InternalRow] = {
    val isNoOp = isNoOpWithoutInput
    executeWithStore(inputRows.head) { (store, rows) =>
      if (isNoOp && !rows.hasNext) Iterator.empty else processPartition(store, rows)
    }
  }
}
