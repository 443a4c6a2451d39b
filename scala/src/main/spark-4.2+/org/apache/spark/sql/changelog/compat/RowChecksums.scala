// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.execution.streaming.state.{
  ArrayIndexRange,
  KeyValueChecksum,
  KeyValueChecksumEncoder,
  KeyValueIntegrityVerifier,
  StateStoreConf
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
