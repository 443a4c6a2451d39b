// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.StatePartitionKeyExtractorFactory
import org.apache.spark.sql.execution.streaming.state.{
  ArrayIndexRange,
  KeyValueChecksum,
  KeyValueChecksumEncoder,
  KeyValueIntegrityVerifier,
  StatePartitionKeyExtractor,
  StateStore,
  StateStoreConf,
  StateStoreIterator,
  StateStoreProvider,
  UnsafeRowPair
}
import org.apache.spark.sql.types.StructType

/** Opens a version of a store as one that holds nothing, whatever there is of it. */
private[compat] object EmptyStores {
  def open(
      provider: StateStoreProvider,
      version: Long,
      storeConf: StateStoreConf,
      hadoopConf: Configuration): StateStore =
    provider.getStore(version, None, forceSnapshotOnCommit = true, loadEmpty = true)
}

/** By what rows of one of Spark's own operators are shuffled, as far as the keys of its state tell. */
private[compat] final class PlacementKeys private (extractor: StatePartitionKeyExtractor) {
  def columns: StructType = extractor.partitionKeySchema

  /** What belongs to a key of the state. */
  def of(key: UnsafeRow): UnsafeRow = extractor.partitionKey(key)
}

private[compat] object PlacementKeys {

  /** Throws whatever makes that unknown. */
  def apply(
      operator: String,
      store: String,
      key: StructType,
      joinFormat: Option[Int]): PlacementKeys =
    new PlacementKeys(
      StatePartitionKeyExtractorFactory
        .create(operator, key, store, stateFormatVersion = joinFormat))
}

/** Checksums of rows in files of state, as Spark's in-memory provider writes them if it is told to. */
object RowChecksums {

  /** Whether they are wanted. */
  def areWanted(conf: StateStoreConf): Boolean = conf.rowChecksumEnabled

  /** How many bytes a checksum takes, before those of the row. */
  val Size: Int = 4

  /** The key of an entry that is removed, with its checksum. */
  def ofRemoved(key: Array[Byte]): Array[Byte] =
    KeyValueChecksumEncoder.encodeKeyRowWithChecksum(key, KeyValueChecksum.create(key, None))

  /** The value of an entry, with the checksum of both. */
  def ofEntry(key: Array[Byte], value: Array[Byte]): Array[Byte] =
    KeyValueChecksumEncoder.encodeSingleValueRowWithChecksum(
      value,
      KeyValueChecksum.create(key, Some(value)))

  /**
   * What checks them.
   *
   * @param store
   *   what the state store is called in errors
   */
  final class Verifier(store: String) {
    private val verifier = KeyValueIntegrityVerifier
      .create(store, rowChecksumEnabled = true, verificationRatio = 1)
      .get

    /** Fails if an entry that is removed had another key. The row stands from `start` to `end`. */
    def checkRemoved(bytes: Array[Byte], start: Int, end: Int, sum: Int): Unit =
      verifier.verify(ArrayIndexRange(bytes, start, end), None, sum)

    /** Fails if an entry had another key or value. */
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

/** Whether Spark keeps state for a node, as it says itself. */
private[compat] object StatefulNode {
  def apply(node: LogicalPlan): Boolean = UnsupportedOperationChecker.isStatefulOperation(node)
}

/** How this version asks for a state store. */
trait VersionStateProvider extends StateStoreProvider {

  /** The store of a version. */
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

/** What only this version's state stores can do. */
trait VersionStateStore extends StateStore {

  /** Refuses what is for several values. */
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
