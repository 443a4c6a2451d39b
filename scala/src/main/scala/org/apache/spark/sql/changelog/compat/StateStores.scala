// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, Path}

import org.apache.spark.SparkEnv
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.physical.{AllTuples, Distribution, Partitioning}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.{
  REQUIRED_BY_STATEFUL_OPERATOR, ShuffleExchangeExec
}
import org.apache.spark.sql.execution.streaming.operators.stateful.{
  StatefulOperatorPartitioning, StatefulOperatorStateInfo
}
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.{SQLConf, SessionState}
import org.apache.spark.sql.types.StructType

/** The state stores of an operator, one per partition, and Spark's metadata of them. */
object StateStores {

  /** The state schema, which is written before a store is opened. */
  final case class Columns(key: StructType, value: StructType, keyEncoder: KeyStateEncoderSpec)

  def idOf(state: StatefulOperatorStateInfo, partition: Int): StateStoreProviderId =
    StateStoreProviderId(
      StateStoreId(state.checkpointLocation, state.operatorId, partition),
      state.queryRunId)

  /** Opens the state that the previous batch left in a partition. Called within a task. */
  def open(
      state: StatefulOperatorStateInfo,
      partition: Int,
      columns: Columns,
      storeConf: StateStoreConf,
      hadoopConf: Configuration): StateStore =
    StateStore.get(
      idOf(state, partition),
      columns.key,
      columns.value,
      columns.keyEncoder,
      state.storeVersion,
      state.stateStoreCkptIds.map(_(partition).head),
      state.stateSchemaMetadata,
      useColumnFamilies = false,
      storeConf,
      hadoopConf)

  /** Returns the path of Spark's schema file for an operator's state. */
  def columnsFile(state: StatefulOperatorStateInfo): Path =
    StateSchemaCompatibilityChecker.schemaFile(
      StateStoreId(state.checkpointLocation, state.operatorId, 0).storeCheckpointLocation())

  /** Returns the key and value columns in a schema file, if any. */
  def readColumns(file: FSDataInputStream): Option[(StructType, StructType)] =
    StateSchemaCompatibilityChecker
      .readSchemaFile(file)
      .find(_.colFamilyName == StateStore.DEFAULT_COL_FAMILY_NAME)
      .map(stored => (stored.keySchema, stored.valueSchema))

  /** Lets Spark compare the columns with its schema file, and write the file. */
  def validate(
      state: StatefulOperatorStateInfo,
      columns: Columns,
      hadoopConf: Configuration,
      session: SessionState,
      stateSchemaVersion: Int): StateSchemaValidationResult =
    StateSchemaCompatibilityChecker.validateAndMaybeEvolveStateSchema(
      state,
      hadoopConf,
      List(
        StateStoreColFamilySchema(
          StateStore.DEFAULT_COL_FAMILY_NAME,
          0,
          columns.key,
          0,
          columns.value,
          Some(columns.keyEncoder))),
      session,
      stateSchemaVersion)

  /** Tells Spark's `statestore` reader how keys are encoded. */
  def metadata(
      state: StatefulOperatorStateInfo,
      operator: String,
      keyEncoder: KeyStateEncoderSpec): OperatorStateMetadata = {
    val numColsPrefixKey = keyEncoder match {
      case PrefixKeyScanStateEncoderSpec(_, columns) => columns
      case _ => 0
    }
    val store =
      StateStoreMetadataV1(StateStoreId.DEFAULT_STORE_NAME, numColsPrefixKey, state.numPartitions)
    OperatorStateMetadataV1(OperatorInfoV1(state.operatorId, operator), Array(store))
  }

  /**
   * Reports a snapshot to Spark's coordinator. If the coordinator regards a store as lagging, it requests a
   * snapshot with every batch.
   */
  def reportSnapshot(store: StateStoreId, version: Long, hadoopConf: Configuration): Unit =
    for {
      env <- Option(SparkEnv.get)
      run: UUID <- RunningStream.runId(hadoopConf)
    } {
      StateStoreCoordinatorRef
        .forExecutor(env)
        .snapshotUploaded(StateStoreProviderId(store, run), version, System.currentTimeMillis())
    }
}

/** The placement of rows for stateful operators, which must be the same in every batch. */
object StatePlacement {

  /** Places the rows with equal `key` in one partition. With an empty `key`, all rows are in one partition. */
  def clusteredBy(key: Seq[Expression], numPartitions: Int, conf: SQLConf): Distribution =
    if (key.isEmpty) AllTuples
    else StatefulOperatorPartitioning.getCompatibleDistribution(key, numPartitions, conf)

  /** Returns a shuffle that Spark keeps even if the rows are already placed accordingly. */
  def shuffle(partitioning: Partitioning, rows: SparkPlan): SparkPlan =
    ShuffleExchangeExec(partitioning, rows, REQUIRED_BY_STATEFUL_OPERATOR)
}
