// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import java.io.FileNotFoundException

import scala.util.{Try, Using}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution.datasources.v2.state.metadata.StateMetadataPartitionReader
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.SerializableConfiguration

/**
 * The stateful operators of a query, read from its checkpoint.
 *
 * @param state
 *   the folder with the state of the query's operators
 */
final class StoredOperators(state: Path, hadoopConf: Configuration) {

  /** Returns the operators after a batch. Throws an exception if they cannot be read. */
  def all(batch: Long): Seq[StoredOperator] = {
    val confs = new SerializableConfiguration(hadoopConf)
    val known = new StateMetadataPartitionReader(
      state.getParent.toString,
      confs,
      batch).allOperatorStateMetadata.toSeq
    // Spark reads a missing file as a query without state
    val files = state.getFileSystem(hadoopConf)
    val folders = if (files.exists(state)) files.listStatus(state).toSeq else Nil
    val numbers = folders.flatMap(_.getPath.getName.toLongOption)
    if (known.size < numbers.size)
      throw new FileNotFoundException("the metadata of an operator is missing")
    known.map(new StoredOperator(_))
  }

  /** Returns the columns of a store. */
  def columnsOf(operator: StoredOperator, store: StoredStore): StateStores.Columns = {
    val id = StateStoreId(state.toString, operator.id, 0, store.name)
    val file = StateSchemaCompatibilityChecker.schemaFile(id.storeCheckpointLocation())
    val (key, value) = Using
      .resource(file.getFileSystem(hadoopConf).open(file))(StateStores.readColumns)
      .getOrElse(throw new NoSuchElementException(s"no columns of $id are known"))
    StateStores.Columns(
      key,
      value,
      if (store.numPrefixColumns == 0) NoPrefixKeyStateEncoderSpec(key)
      else PrefixKeyScanStateEncoderSpec(key, store.numPrefixColumns))
  }

  /** Returns the folder of a store's first partition, relative to the state folder. */
  def folderOf(operator: StoredOperator, store: StoredStore): String =
    if (store.name == StateStoreId.DEFAULT_STORE_NAME) s"${operator.id}/0"
    else s"${operator.id}/0/${store.name}"

  /** Writes the metadata of an operator with a new number of partitions. */
  def write(operator: StoredOperator, numPartitions: Int): Unit = operator.metadata match {
    case first: OperatorStateMetadataV1 =>
      val stores = first.stateStoreInfo.map(_.copy(numPartitions = numPartitions))
      OperatorStateMetadataWriter
        .createWriter(new Path(state, operator.id.toString), hadoopConf, first.version)
        .write(first.copy(stateStoreInfo = stores))
    case other => throw new IllegalArgumentException(s"metadata of version ${other.version}")
  }
}

/** A stateful operator in a checkpoint. */
final class StoredOperator private[compat] (private[compat] val metadata: OperatorStateMetadata) {
  def id: Long = metadata.operatorInfo.operatorId

  /** The operator's name in a query's progress. */
  def name: String = metadata.operatorInfo.operatorName

  /** Whether the operator's stores have several column families with separate schemas. */
  def hasColumnFamilies: Boolean = !metadata.isInstanceOf[OperatorStateMetadataV1]

  val stores: Seq[StoredStore] = {
    val stores: Seq[StateStoreMetadata] = metadata match {
      case first: OperatorStateMetadataV1 => first.stateStoreInfo.toSeq
      case second: OperatorStateMetadataV2 => second.stateStoreInfo.toSeq
      case other => throw new IllegalArgumentException(s"metadata of version ${other.version}")
    }
    stores.map { store =>
      StoredStore(store.storeName, store.numPartitions, store.numColsPrefixKey)
    }
  }
}

/** A store of an operator, with one instance per partition. */
final case class StoredStore(name: String, numPartitions: Int, numPrefixColumns: Int)

/** The partition of each entry in a store of a Spark operator, if Spark exposes it. */
final class SparkPlacement(
    operator: String,
    store: String,
    columns: StateStores.Columns,
    settings: Map[String, String])
    extends Serializable {

  def isKnown: Boolean = Try(keys).isSuccess

  /** Returns the function from a state key to its partition, for a number of partitions. */
  def partitionOf(numPartitions: Int): UnsafeRow => Int = {
    val shuffled = keys
    val columns = shuffled.columns
    if (columns.isEmpty) _ => 0
    else {
      val by = columns.zipWithIndex.map { case (column, index) =>
        BoundReference(index, column.dataType, nullable = true)
      }
      val number = HashPartitioning(by, numPartitions).partitionIdExpression
      val numberOf = UnsafeProjection.create(Seq(number))
      key => numberOf(shuffled.of(key)).getInt(0)
    }
  }

  private def keys: PlacementKeys = PlacementKeys(
    operator,
    store,
    columns.key,
    settings.get(SQLConf.STREAMING_JOIN_STATE_FORMAT_VERSION.key).map(_.toInt))
}
