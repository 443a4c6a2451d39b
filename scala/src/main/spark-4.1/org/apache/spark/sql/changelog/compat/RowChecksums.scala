// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.SparkException
import org.apache.spark.sql.execution.streaming.state.StateStoreConf

/** Checksums of rows in files of state, which this version does not know. */
object RowChecksums {

  /** Whether they are wanted. */
  def areWanted(conf: StateStoreConf): Boolean = false

  /** How many bytes a checksum takes, before those of the row. */
  val Size: Int = 0

  def ofRemoved(key: Array[Byte]): Array[Byte] = none()

  def ofEntry(key: Array[Byte], value: Array[Byte]): Array[Byte] = none()

  final class Verifier(store: String) {
    def checkRemoved(bytes: Array[Byte], start: Int, end: Int, sum: Int): Unit = none()

    def checkEntry(
        key: Array[Byte],
        keySize: Int,
        bytes: Array[Byte],
        start: Int,
        end: Int,
        sum: Int): Unit = none()
  }

  private def none(): Nothing =
    throw SparkException.internalError("There are no checksums of rows in Spark 4.1")
}
