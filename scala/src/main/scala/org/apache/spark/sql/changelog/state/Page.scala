// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import java.io.OutputStream
import java.lang.ref.Reference

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state.{
  StateStoreConf, StateStoreId, StateStoreProvider
}
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.array.ByteArrayMethods

/**
 * A page: bytes on the heap or in a file. A page keeps its file open.
 *
 * @param base
 *   the array; null for a page in a file
 * @param start
 *   the offset of the first byte for Platform
 * @param file
 *   null for a page on the heap
 */
private[state] final class Page private (
    val base: Array[Byte],
    start: Long,
    val size: Int,
    val file: PageFile) {

  def isInFile: Boolean = file != null

  /** Returns the offset of a record's header. */
  def headerOf(address: Long): Long = start + (address & 0xffffffffL)

  def intAt(address: Long, field: Int): Int = {
    val value = Platform.getInt(base, headerOf(address) + field)
    Reference.reachabilityFence(this)
    value
  }

  def bytes(address: Long, first: Int, size: Int): Array[Byte] = {
    val copy = new Array[Byte](size)
    Platform.copyMemory(base, headerOf(address) + first, copy, Platform.BYTE_ARRAY_OFFSET, size)
    Reference.reachabilityFence(this)
    copy
  }

  /** Points `row` to bytes of a record. The row stays valid; for a page in a file it points to a copy. */
  def read(address: Long, first: Int, size: Int, row: UnsafeRow): UnsafeRow = {
    if (isInFile) row.pointTo(bytes(address, first, size), size)
    else row.pointTo(base, headerOf(address) + first, size)
    row
  }

  def holds(address: Long, first: Int, size: Int, row: UnsafeRow): Boolean = {
    val isEqual = row.getSizeInBytes == size && ByteArrayMethods.arrayEquals(
      base,
      headerOf(address) + first,
      row.getBaseObject,
      row.getBaseOffset,
      size)
    Reference.reachabilityFence(this)
    isEqual
  }

  def write(address: Long, first: Int, size: Int, output: OutputStream): Unit =
    if (isInFile) output.write(bytes(address, first, size))
    else output.write(base, (address & 0xffffffffL).toInt + first, size)

  /** Appends the bytes to a file and returns them as a page. */
  def movedTo(file: PageFile, size: Int): Page = {
    val all = if (isInFile) bytes(0, 0, size) else base
    new Page(null, file.append(all, size), size, file)
  }
}

private[state] object Page {

  def onHeap(size: Int): Page =
    new Page(new Array[Byte](size), Platform.BYTE_ARRAY_OFFSET.toLong, size, null)
}

/** The layout of a store's rows, to check whether bytes in a file can be its rows. */
private[state] final class RowLayout(
    val storeId: StateStoreId,
    keySchema: StructType,
    valueSchema: StructType,
    storeConf: StateStoreConf) {
  private val smallestKey = smallest(keySchema.length)
  private val smallestValue = smallest(valueSchema.length)

  def newKey(): UnsafeRow = new UnsafeRow(keySchema.length)

  def newValue(): UnsafeRow = new UnsafeRow(valueSchema.length)

  def canBeKey(size: Int): Boolean = size >= smallestKey && size % 8 == 0

  def canBeValue(size: Int): Boolean = size >= smallestValue && size % 8 == 0

  /** Throws Spark's error if the rows have another schema. */
  def check(key: UnsafeRow, value: UnsafeRow): Unit = StateStoreProvider.validateStateRowFormat(
    key,
    keySchema,
    value,
    valueSchema,
    storeId,
    storeConf)

  private def smallest(numColumns: Int): Int =
    UnsafeRow.calculateBitSetWidthInBytes(numColumns) + 8 * numColumns
}
