// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import java.io.InterruptedIOException
import java.nio.channels.ClosedByInterruptException
import java.util.UUID

import scala.reflect.ClassTag
import scala.util.Try

import com.google.common.cache.{Cache, CacheBuilder}
import org.apache.hadoop.conf.Configuration
import org.rocksdb.RocksDBException

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.state.{StateStore, StateStoreConf, StateStoreId}
import org.apache.spark.util.SerializableConfiguration
import org.apache.spark.{Partition, SparkThrowable, TaskContext, TaskKilledException}

import org.apache.spark.sql.changelog.compat.{RunningStream, StateStores}
import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime
import org.apache.spark.sql.changelog.errors.ChangelogRuntimeException

/**
 * Opens the state store of each partition of `input` and runs `process` on the store and the rows.
 *
 * Spark's own RDD sends Hadoop's settings to executors again for each operator and batch. Spark also cleans the
 * operator's function, which reads class files. Here a run sends the settings once, and functions of operators
 * need no cleaning.
 */
private[execution] final class OperatorStateRDD[T: ClassTag](
    @transient session: SparkSession,
    input: RDD[T],
    state: StatefulOperatorStateInfo,
    columns: StateStores.Columns,
    process: (StateStore, Iterator[T]) => Iterator[InternalRow])
    extends RDD[InternalRow](input) {

  private val storeConf = new StateStoreConf(session.sessionState.conf)
  private val hadoopConf = OperatorStateRDD.hadoopConf(session, state.queryRunId)
  // Spark's maintenance runs once a minute, and rarely meets a query that ends by itself.
  private val isMaintained = RunningStream(session).exists(_.endsByItself) &&
    (state.storeVersion + 1) % (storeConf.minDeltasForSnapshot + 1) == 0
  @transient private val coordinator =
    RunningStream.stateStoreCoordinator(session.sparkContext)

  override protected def getPartitions: Array[Partition] = input.partitions

  /** Returns the executor that held the store in the previous batch. */
  override protected def getPreferredLocations(partition: Partition): Seq[String] =
    coordinator.getLocation(StateStores.idOf(state, partition.index)).toSeq

  override def compute(partition: Partition, context: TaskContext): Iterator[InternalRow] = {
    // operators further down in the task open their stores, and complete, before this operator
    val rows = input.iterator(partition, context)
    val id = StateStores.idOf(state, partition.index)
    val failures = new StateReadFailures(id.storeId, state.storeVersion, hadoopConf.value.value)
    val store = failures.whileOpening(
      StateStores.open(state, partition.index, columns, storeConf, hadoopConf.value.value))
    context.addTaskCompletionListener[Unit] { _ =>
      // after a failure, another attempt may use the store
      if (storeConf.unloadOnCommit || isMaintained && store.hasCommitted)
        StateStore.doMaintenanceAndUnload(id)
    }
    // called before the listener above
    context.addTaskCompletionListener[Unit](_ => if (!store.hasCommitted) store.abort())
    failures.whileReading(process(store, rows))
  }
}

private object OperatorStateRDD {

  // a weak value lives as long as the last batch of a run
  private val hadoopConfs: Cache[UUID, Broadcast[SerializableConfiguration]] =
    CacheBuilder.newBuilder().weakValues().build()

  /** Returns Hadoop's settings as they were at the start of a run. */
  def hadoopConf(session: SparkSession, run: UUID): Broadcast[SerializableConfiguration] =
    hadoopConfs.get(
      run,
      () =>
        SerializableConfiguration
          .broadcast(session.sparkContext, session.sessionState.newHadoopConf()))
}

/**
 * Turns errors from reading state into an error that names the operator, the files and the way out. Spark's own
 * providers throw the plain I/O or parser error.
 */
private[changelog] class StateReadFailures(
    id: StateStoreId,
    version: Long,
    hadoopConf: Configuration) {
  import StateReadFailures._

  def whileOpening[T](open: => T): T =
    try open
    catch { case error: Exception if isOfFiles(error) => throw notReadable(error) }

  /** Checks each row. RocksDB reads its files only while rows are iterated. */
  def whileReading[T](rows: => Iterator[T]): Iterator[T] = {
    val checked = checking(rows)
    new Iterator[T] {
      override def hasNext: Boolean = checking(checked.hasNext)
      override def next(): T = checking(checked.next())
    }
  }

  private def checking[T](body: => T): T =
    try body
    catch { case error: RocksDBException => throw notReadable(error) }

  private def notReadable(error: Exception): ChangelogRuntimeException = {
    val folder = id.storeCheckpointLocation()
    runtime(
      "CHANGELOG_STATE_NOT_READABLE",
      error,
      "id" -> id.operatorId,
      "folder" -> folder,
      "version" -> version,
      "files" -> Try(filesOfVersion).getOrElse(Nil),
      "cause" -> causes(error)
        .map(_.toString.takeWhile(_ != '\n').trim)
        .distinct
        .mkString("; "))
  }

  /**
   * Returns whether reading state files caused `error`. The project's own errors already name the file.
   * Interrupted and killed tasks, and tasks that waited too long for another task's store, have read no file.
   */
  private def isOfFiles(error: Exception): Boolean =
    causes(error).forall {
      case _: ChangelogRuntimeException | _: InterruptedException | _: InterruptedIOException |
          _: ClosedByInterruptException | _: TaskKilledException =>
        false
      case spark: SparkThrowable =>
        !Option(spark.getCondition).exists(_.contains("UNRELEASED_THREAD"))
      case _ => true
    }

  /** The newest snapshot not newer than the version, and the change files after the snapshot. */
  private def filesOfVersion: Seq[String] = {
    val folder = id.storeCheckpointLocation()
    val files =
      CheckpointFileManager.create(folder, hadoopConf).list(folder).map(_.getPath.getName)
    val versions = files.toSeq.collect {
      case name @ StateFile(number, kind) if number.toLong <= version =>
        (number.toLong, kind, name)
    }
    val (snapshots, changes) = versions.partition(file => Set("snapshot", "zip")(file._2))
    val start = snapshots.map(_._1).maxOption.getOrElse(0L)
    val read = snapshots.filter(_._1 == start) ++ changes.filter(_._1 > start)
    val names = read.sortBy(_._1).map {
      case (_, "zip", name) => s"$name with files in SSTs"
      case (_, _, name) => name
    }
    if (read.exists(_._1 == version)) names else names :+ s"$version.* (missing)"
  }
}

private object StateReadFailures {

  /** Returns an error and its causes. Often only one of these names a file. */
  def causes(error: Throwable): Seq[Throwable] =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(10).toSeq

  /** A file name may contain the id of the task attempt that wrote the file. */
  private val StateFile = """(\d+)(?:_.*)?\.(snapshot|zip|delta|changelog)""".r
}
