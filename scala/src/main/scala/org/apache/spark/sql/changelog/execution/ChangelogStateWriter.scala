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
import org.apache.spark.sql.catalyst.plans.physical.Distribution
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.operators.stateful.{
  StateStoreWriter,
  StatefulOperatorCustomMetric,
  StatefulOperatorCustomSumMetric
}
import org.apache.spark.sql.execution.streaming.state.{
  KeyStateEncoderSpec,
  NoPrefixKeyStateEncoderSpec,
  OperatorStateMetadata,
  StateSchemaValidationResult,
  StateStore,
  UnsafeRowPair
}
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.streaming.StateOperatorProgress
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.CompletionIterator

import org.apache.spark.sql.changelog.checkpoint.ReadableFile
import org.apache.spark.sql.changelog.compat.{SparkRDDs, StatePlacement, StateStores}
import org.apache.spark.sql.changelog.config.{ChangelogConf, UnmatchedRetraction}
import org.apache.spark.sql.changelog.errors.ChangelogErrors
import org.apache.spark.sql.changelog.execution.expiry.{EntryTimes, TimeIndexes, TimedStateStore}
import org.apache.spark.sql.changelog.identity.EntryPlacement
import org.apache.spark.sql.changelog.inference.times.EventTime
import org.apache.spark.sql.changelog.microbatch.{AssignStateInfo, BatchTime}
import org.apache.spark.sql.changelog.plans.StoredResult

/**
 * An operator that keeps one state store per partition.
 *
 * Spark's own metrics, state schema, operator metadata and restart checks apply. An operator only
 * says how its state looks and what to do with the rows of a partition. One with a single input is
 * a [[UnaryChangelogStateWriter]].
 */
trait ChangelogStateWriter extends StateStoreWriter { self: SparkPlan =>

  /** Columns a state entry is looked up by. */
  def stateKeySchema: StructType

  /** Columns kept per entry. */
  def stateValueSchema: StructType

  /** Whether entries are also scanned by a prefix of their key. */
  def keyEncoder: KeyStateEncoderSpec = NoPrefixKeyStateEncoderSpec(stateKeySchema)

  /** In which partition each entry of the state is. */
  def placement: EntryPlacement

  /** The columns of the state's key that an event time, and so a watermark, can be among. */
  def timedColumns: Seq[Attribute] = Nil

  /** How a watermark bounds the state, in the batch that runs. */
  protected final lazy val eventTimeBound: Option[EventTimeBound] =
    EventTimeBound(timedColumns, batchTime)

  protected final lazy val batchTime: BatchTime =
    AssignStateInfo.time(castToImpl(session), inputWatermark(_))

  /** The watermark that bounds the state, in ms, where that of the query is `origin`. */
  protected def inputWatermark(origin: Long): Option[Long] = OperatorWatermark.below(this, origin)

  /** How long a hint lets entries be kept that nothing changes, in ms. */
  def ttl: Option[Long] = None

  /**
   * How long entries are kept that nothing changes, in ms, 0 for ever: all of them, or each kind,
   * whose number the key begins with. Not for those that a watermark bounds.
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

  /** The watermark by which it is decided what is emitted once, as it is closed. */
  protected def closingBound: Option[EventTimeBound] = eventTimeBound

  /** Whether something is emitted once, when the watermark has passed it. */
  def emitsClosed: Boolean = false

  /** A watermark that moves on closes groups, and time does what it does, without any change. */
  final override def shouldRunAnotherBatch(newInputWatermark: Long): Boolean = {
    val watermark = inputWatermark(AssignStateInfo.nextWatermark(castToImpl(session)))
    watermark.exists(closesMoreAt) ||
    changesAt(AssignStateInfo.nextTimestamp(castToImpl(session)))
  }

  /** Whether something is emitted when the watermark has come to `watermark`. */
  protected def closesMoreAt(watermark: Long): Boolean =
    emitsClosed && closingBound.exists(watermark > _.over.getOrElse(0L))

  /** Whether something is emitted when the next batch is begun at `time`, in ms, for that alone. */
  protected def changesAt(time: Long): Boolean = false

  /** Whether a partition without input rows emits nothing and expires no state, as most of a small batch. */
  protected def isNoOpWithoutInput: Boolean = false

  /** Leaves out rows that come too late for the watermark, and counts them. */
  protected def withoutLate(
      rows: Iterator[InternalRow],
      columns: Seq[Attribute],
      bound: Option[EventTimeBound] = eventTimeBound): Iterator[InternalRow] =
    bound.flatMap(_.isLate(columns)) match {
      case Some(isLate) => applyRemovingRowsOlderThanWatermark(rows, isLate)
      case None => rows
    }

  /** Rows that agree on `key` together; all of them, if it has no columns. */
  protected def clusteredBy(key: Seq[Expression]): Distribution =
    StatePlacement.clusteredBy(key, getStateInfo.numPartitions, conf)

  /** When entries of the state are over, or are to be looked at, if a watermark says so. */
  protected def entryTimes: Option[EntryTimes] = None

  /** When entries are over whose key has the columns `key`. */
  protected def timesOfKey(key: Seq[Attribute]): Option[EntryTimes] =
    eventTimeBound.map(bound => EntryTimes.ofKey(bound.column, key))

  /** Removes what no further change can reach. */
  protected def removeOver(store: StateStore): Unit =
    entriesOver(store).foreach { entry =>
      store.remove(entry.key)
      longMetric("numRemovedStateRows") += 1
    }

  /** The entries no further change can reach; removing them meanwhile is fine. */
  protected def entriesOver(
      store: StateStore,
      bound: Option[EventTimeBound] = eventTimeBound): Iterator[UnsafeRowPair] =
    bound.flatMap(_.moved).map(entriesDue(store, _)).getOrElse(Iterator.empty)

  /**
   * The entries that are due when the watermark has come to `watermark`, in ms; all have to be gone
   * through.
   */
  protected def entriesDue(store: StateStore, watermark: Long): Iterator[UnsafeRowPair] =
    store match {
      case timed: TimedStateStore => timed.due(DateTimeUtils.millisToMicros(watermark))
      case other => throw new IllegalStateException(s"no times of entries are known in $other")
    }

  /**
   * Without a logical plan to lean on, Spark leaves adaptive execution off for the query, as it
   * does for its own stateful operators: state lives in a fixed number of partitions.
   */
  override def logicalLink: Option[LogicalPlan] = None

  override protected def customStatefulOperatorMetrics: Seq[StatefulOperatorCustomMetric] = Seq(
    StatefulOperatorCustomSumMetric("numRetractions", "number of retractions emitted"),
    StatefulOperatorCustomSumMetric(
      "numUpdatePostimages",
      "number of new rows of updates emitted"),
    StatefulOperatorCustomSumMetric("numDeletes", "number of deletes emitted"),
    StatefulOperatorCustomSumMetric(
      "numUnmatchedRetractions",
      "number of retractions of rows never given"),
    StatefulOperatorCustomSumMetric(
      "numExpiredStateRows",
      "number of state rows forgotten for their age"))

  /** Spark's numbers, and how many rows have come and of which kinds others have gone on. */
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

  /** Fails if the file with the columns of the state can't be read. An attempt that was never committed leaves one. */
  private def checkColumnsFile(hadoopConf: Configuration, batchId: Long): Unit = {
    val file = StateStores.columnsFile(getStateInfo)
    val files = CheckpointFileManager.create(file, hadoopConf)
    if (files.exists(file.getParent) && files.exists(file)) {
      if (batchId == 0) files.delete(file)
      else ReadableFile(file)(file => StateStores.readColumns(files.open(file)))
    }
  }

  /** Lets whoever spreads the state over another number of partitions know where its entries belong. */
  private def notePlacement(hadoopConf: Configuration): Unit = {
    val folder = new Path(getStateInfo.checkpointLocation)
    val file = EntryPlacement.file(folder, getStateInfo.operatorId, hadoopConf)
    val text = placement.toJson
    // one that can't be read is as good as none
    if (!Try(file.find()).toOption.flatten.contains(text)) file.write(text)
  }

  /** Tells Spark's `statestore` reader how keys are encoded. */
  override def operatorStateMetadata(
      stateSchemaPaths: List[List[String]] = Nil): OperatorStateMetadata =
    StateStores.metadata(getStateInfo, shortName, keyEncoder)

  /** The rows of several inputs, with those of one partition together. */
  protected def zipped(inputs: Seq[RDD[InternalRow]]): RDD[Seq[Iterator[InternalRow]]] = {
    val firstTwo: RDD[Seq[Iterator[InternalRow]]] =
      SparkRDDs.zip(inputs(0), inputs(1))((first, second) =>
        Iterator.single(Vector(first, second)))
    inputs.drop(2).foldLeft(firstTwo) { (zipped, input) =>
      SparkRDDs.zip(zipped, input)((before, rows) => before.map(_ :+ rows))
    }
  }

  /** Gives each partition of `input` its store, commits that and notes metrics at the end. */
  protected def executeWithStore[T: ClassTag](input: RDD[T])(
      process: (StateStore, Iterator[T]) => Iterator[InternalRow]): RDD[InternalRow] = {
    // initialized on the driver
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
   * All rows of the result there are, as the state tells it, each as an insert. Called on executors, of
   * operators of which [[org.apache.spark.sql.changelog.optimizer.rewrite.KnownResult]] says that it can.
   */
  protected def storedResult(store: StateStore): Iterator[InternalRow] =
    throw SparkException.internalError(s"$shortName does not keep its result")

  /** Counts what the operator emits and what it does to its state. */
  protected def changeMetrics: ChangeMetrics = ChangeMetrics(
    longMetric("numOutputRows"),
    longMetric("numRetractions"),
    longMetric("numUpdatePostimages"),
    longMetric("numDeletes"),
    longMetric("numUpdatedStateRows"),
    longMetric("numRemovedStateRows"))

  /** Applies the session's policy to retractions of rows that were never given. */
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
            throw ChangelogErrors.unmatchedRetraction(
              operator,
              key,
              ChangelogConf.UNMATCHED_RETRACTION.key)
          case UnmatchedRetraction.Warn if !warned =>
            warned = true
            logWarning(
              log"${MDC(LogKeys.OP_TYPE, operator)} was told to take back a row it has " +
                log"never been given; further ones in this task are only counted in " +
                log"numUnmatchedRetractions")
          case _ =>
        }
      }
    }
  }
}

/** An operator with one input that keeps one state store per partition. */
trait UnaryChangelogStateWriter extends UnaryExecNode with ChangelogStateWriter {

  /** Turns a partition's rows of one batch into the changes to emit. Called on executors. */
  protected def processPartition(
      store: StateStore,
      rows: Iterator[InternalRow]): Iterator[InternalRow]

  override protected def doExecute(): RDD[InternalRow] = {
    val rests = isNoOpWithoutInput
    executeWithStore(inputRows.head) { (store, rows) =>
      if (rests && !rows.hasNext) Iterator.empty else processPartition(store, rows)
    }
  }
}
