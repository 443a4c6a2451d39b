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
  REQUIRED_BY_STATEFUL_OPERATOR,
  ShuffleExchangeExec
}
import org.apache.spark.sql.execution.streaming.operators.stateful.{
  StatefulOperatorPartitioning,
  StatefulOperatorStateInfo
}
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.{SQLConf, SessionState}
import org.apache.spark.sql.types.StructType

/** One state store of each partition of an operator, and what Spark notes of it. */
object StateStores {

  /** Writes the state schema before a store is opened. */
  final case class Columns(key: StructType, value: StructType, keyEncoder: KeyStateEncoderSpec)

  def idOf(state: StatefulOperatorStateInfo, partition: Int): StateStoreProviderId =
    StateStoreProviderId(
      StateStoreId(state.checkpointLocation, state.operatorId, partition),
      state.queryRunId)

  /** The state of a partition as the batch before has left it. Called within a task. */
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

  /** Where Spark has noted the columns of an operator's state. */
  def columnsFile(state: StatefulOperatorStateInfo): Path =
    StateSchemaCompatibilityChecker.schemaFile(
      StateStoreId(state.checkpointLocation, state.operatorId, 0).storeCheckpointLocation())

  /** The columns of keys and of values that stand in such a file, if it tells of any. */
  def readColumns(file: FSDataInputStream): Option[(StructType, StructType)] =
    StateSchemaCompatibilityChecker
      .readSchemaFile(file)
      .find(_.colFamilyName == StateStore.DEFAULT_COL_FAMILY_NAME)
      .map(stored => (stored.keySchema, stored.valueSchema))

  /** Lets Spark compare the columns with those it has noted, and note them. */
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
   * Tells Spark's coordinator of a snapshot. Of a store that it takes to be behind it wants one with every
   * batch.
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

/** How rows are placed where state is kept of them, which must be the same in every batch. */
object StatePlacement {

  /** Rows that agree on `key` together; all of them, if it has no columns. */
  def clusteredBy(key: Seq[Expression], numPartitions: Int, conf: SQLConf): Distribution =
    if (key.isEmpty) AllTuples
    else StatefulOperatorPartitioning.getCompatibleDistribution(key, numPartitions, conf)

  /** A shuffle that Spark leaves as it is, though the rows may be so placed already. */
  def shuffle(partitioning: Partitioning, rows: SparkPlan): SparkPlan =
    ShuffleExchangeExec(partitioning, rows, REQUIRED_BY_STATEFUL_OPERATOR)
}
