// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import java.util.UUID

import scala.reflect.ClassTag

import com.google.common.cache.{Cache, CacheBuilder}

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.state.{StateStore, StateStoreConf}
import org.apache.spark.util.SerializableConfiguration
import org.apache.spark.{Partition, TaskContext}

import org.apache.spark.sql.changelog.compat.{RunningStream, StateStores}

/**
 * Gives each partition of `input` its state store of the batch, and what `process` makes of both.
 *
 * In Spark's own one each operator sends Hadoop's settings to executors again in each batch, and has
 * its function cleaned, for which Spark reads class files. Here a run sends the settings once, and
 * functions of operators need no cleaning.
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
  @transient private val coordinator =
    RunningStream.stateStoreCoordinator(session.sparkContext)

  override protected def getPartitions: Array[Partition] = input.partitions

  /** Where the store was in the batch before. */
  override protected def getPreferredLocations(partition: Partition): Seq[String] =
    coordinator.getLocation(StateStores.idOf(state, partition.index)).toSeq

  override def compute(partition: Partition, context: TaskContext): Iterator[InternalRow] = {
    // operators below it in the task open their stores, and end, before it
    val rows = input.iterator(partition, context)
    val id = StateStores.idOf(state, partition.index)
    val failures = new StateReadFailures(id.storeId, state.storeVersion, hadoopConf.value.value)
    val store = failures.whileOpening(
      StateStores.open(state, partition.index, columns, storeConf, hadoopConf.value.value))
    if (storeConf.unloadOnCommit) {
      context.addTaskCompletionListener[Unit](_ => StateStore.doMaintenanceAndUnload(id))
    }
    // called before the one above
    context.addTaskCompletionListener[Unit](_ => if (!store.hasCommitted) store.abort())
    failures.whileReading(process(store, rows))
  }
}

private object OperatorStateRDD {

  // kept as long as the last batch of a run is
  private val hadoopConfs: Cache[UUID, Broadcast[SerializableConfiguration]] =
    CacheBuilder.newBuilder().weakValues().build()

  /** Hadoop's settings, as a run of a query has them from its start. */
  def hadoopConf(session: SparkSession, run: UUID): Broadcast[SerializableConfiguration] =
    hadoopConfs.get(
      run,
      () =>
        SerializableConfiguration
          .broadcast(session.sparkContext, session.sessionState.newHadoopConf()))
}
