// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.{ByteType, DataType, IntegerType}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.testing.ProcessorTest

class DifferenceIteratorSuite extends AnyFunSuite with ProcessorTest {
  private var metrics = newMetrics()

  private def row(value: Option[Int]): UnsafeRow = value match {
    case Some(number) =>
      UnsafeProjection
        .create(Array[DataType](IntegerType, ByteType))
        .apply(InternalRow(number, RowKind.Insert))
        .copy()
    case None => null
  }

  /** What is emitted for keys with these old and new values. */
  private def differences(keys: Seq[(Option[Int], Option[Int])], pairs: Boolean): Seq[String] = {
    metrics = newMetrics()
    val rows = new DifferenceIterator(1, pairs, metrics) {
      private val remaining = keys.iterator
      private var current: (Option[Int], Option[Int]) = _

      override protected def nextKey(): Boolean = remaining.hasNext && {
        current = remaining.next()
        true
      }

      override protected def before: UnsafeRow = row(current._1)

      override protected def after: UnsafeRow = row(current._2)
    }
    rows.map(row => s"${RowKind.Symbols(row.getByte(1))} ${row.getInt(0)}").toSeq
  }

  private val keys = Seq(
    None -> None,
    None -> Some(1),
    Some(2) -> Some(2),
    Some(3) -> Some(4),
    Some(5) -> None,
    None -> None,
    Some(6) -> Some(7),
    Some(8) -> Some(8))

  test("each key gives the difference of its rows") {
    assert(differences(keys, pairs = true) == Seq("+I 1", "-U 3", "+U 4", "-D 5", "-U 6", "+U 7"))
    assert(metrics.emitted.value == 6)
    assert(metrics.retracted.value == 3)
  }

  test("before images are left out where nobody asks for them") {
    assert(differences(keys, pairs = false) == Seq("+I 1", "+U 4", "-D 5", "+U 7"))
    assert(metrics.emitted.value == 4)
    assert(metrics.retracted.value == 1)
  }

  test("no key gives nothing") {
    assert(differences(Nil, pairs = true).isEmpty)
    assert(differences(Seq(None -> None), pairs = true).isEmpty)
  }
}
