// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.StatePartitionKeyExtractorFactory
import org.apache.spark.sql.execution.streaming.state.{
  ArrayIndexRange, KeyValueChecksum, KeyValueChecksumEncoder, KeyValueIntegrityVerifier,
  StatePartitionKeyExtractor, StateStore, StateStoreConf, StateStoreIterator, StateStoreProvider,
  UnsafeRowPair
}
import org.apache.spark.sql.types.StructType

/** Opens a version of a store as an empty store, whatever files the version has. */
private[compat] object EmptyStores {
  def open(
      provider: StateStoreProvider,
      version: Long,
      storeConf: StateStoreConf,
      hadoopConf: Configuration): StateStore =
    provider.getStore(version, None, forceSnapshotOnCommit = true, loadEmpty = true)
}

/** The shuffle columns of Spark's own operators, as far as their state keys contain them. */
private[compat] final class PlacementKeys private (extractor: StatePartitionKeyExtractor) {
  def columns: StructType = extractor.partitionKeySchema

  /** Returns the shuffle columns of a state key. */
  def of(key: UnsafeRow): UnsafeRow = extractor.partitionKey(key)
}

private[compat] object PlacementKeys {

  /** Throws an exception if the columns are unknown. */
  def apply(
      operator: String,
      store: String,
      key: StructType,
      joinFormat: Option[Int]): PlacementKeys =
    new PlacementKeys(
      StatePartitionKeyExtractorFactory
        .create(operator, key, store, stateFormatVersion = joinFormat))
}

/** Checksums of rows in state files, as written by Spark's in-memory provider if its setting is on. */
object RowChecksums {

  /** Returns whether checksums are on. */
  def areWanted(conf: StateStoreConf): Boolean = conf.rowChecksumEnabled

  /** The size of a checksum, before the bytes of the row. */
  val Size: Int = 4

  /** Returns the key of a removed entry, with its checksum. */
  def ofRemoved(key: Array[Byte]): Array[Byte] =
    KeyValueChecksumEncoder.encodeKeyRowWithChecksum(key, KeyValueChecksum.create(key, None))

  /** Returns the value of an entry, with the checksum of key and value. */
  def ofEntry(key: Array[Byte], value: Array[Byte]): Array[Byte] =
    KeyValueChecksumEncoder.encodeSingleValueRowWithChecksum(
      value,
      KeyValueChecksum.create(key, Some(value)))

  /**
   * Verifies checksums.
   *
   * @param store
   *   the name of the state store in errors
   */
  final class Verifier(store: String) {
    private val verifier = KeyValueIntegrityVerifier
      .create(store, rowChecksumEnabled = true, verificationRatio = 1)
      .get

    /** Fails if the key of a removed entry is damaged. The key's bytes range from `start` to `end`. */
    def checkRemoved(bytes: Array[Byte], start: Int, end: Int, sum: Int): Unit =
      verifier.verify(ArrayIndexRange(bytes, start, end), None, sum)

    /** Fails if the key or value of an entry is damaged. The value's bytes range from `start` to `end`. */
    def checkEntry(
        key: Array[Byte],
        keySize: Int,
        bytes: Array[Byte],
        start: Int,
        end: Int,
        sum: Int): Unit =
      verifier.verify(
        ArrayIndexRange(key, 0, keySize),
        Some(ArrayIndexRange(bytes, start, end)),
        sum)
  }
}

/** Returns whether Spark keeps state for a node. */
private[compat] object StatefulNode {
  def apply(node: LogicalPlan): Boolean = UnsupportedOperationChecker.isStatefulOperation(node)
}

/** Spark's methods to request a state store. */
trait VersionStateProvider extends StateStoreProvider {

  /** Returns the store of a version. */
  private[changelog] def openStore(
      version: Long,
      stateStoreCkptId: Option[String],
      forceSnapshotOnCommit: Boolean,
      loadEmpty: Boolean): StateStore

  override final def getStore(
      version: Long,
      stateStoreCkptId: Option[String],
      forceSnapshotOnCommit: Boolean,
      loadEmpty: Boolean): StateStore =
    openStore(version, stateStoreCkptId, forceSnapshotOnCommit, loadEmpty)
}

/** The operations of Spark's state stores since 4.2. */
trait VersionStateStore extends StateStore {

  /** Fails for operations with several values per key. */
  protected def oneValuePerKey(): Nothing

  override def multiGet(keys: Array[UnsafeRow], family: String): Iterator[UnsafeRow] =
    keys.iterator.map(get(_, family))

  override def prefixScanWithMultiValues(
      prefix: UnsafeRow,
      family: String): StateStoreIterator[UnsafeRowPair] = oneValuePerKey()

  override def iteratorWithMultiValues(family: String): StateStoreIterator[UnsafeRowPair] =
    oneValuePerKey()

  override def allColumnFamilyNames: Set[String] = Set(StateStore.DEFAULT_COL_FAMILY_NAME)
}
