// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

import org.apache.spark.sql.changelog.RowKind._

class SignedRowsSuite extends AnyFunSuite {
  private val row = new UnsafeRow(1)
  row.pointTo(new Array[Byte](16), 16)

  /** The same object for each value, as readers of shuffles give it. */
  private def rowOf(value: Int): UnsafeRow = {
    row.setInt(0, value)
    row
  }

  private def left(changes: (Int, Byte)*): Seq[(Int, Long, Byte, Byte)] = {
    val rows = new SignedRows
    changes.foreach { case (value, kind) => rows(rowOf(value)).add(kind) }
    rows.left.map(net => (net.row.getInt(0), net.count, net.insertKind, net.retractionKind)).toSeq
  }

  test(
    "equal rows of opposite signs cancel out, and the others keep the order of their arrival") {
    assert(left(1 -> Insert, 1 -> Delete).isEmpty)
    assert(
      left(2 -> Insert, 1 -> Delete, 2 -> Insert, 3 -> Insert, 3 -> UpdateBefore) ==
        Seq((2, 2, Insert, Delete), (1, -1, Insert, Delete)))
  }

  test("the kind of a row is the same in any order of its changes") {
    val changes = Seq(1 -> Insert, 1 -> UpdateAfter, 1 -> Delete)
    changes.permutations.foreach { ordered =>
      assert(left(ordered: _*) == Seq((1, 1, UpdateAfter, Delete)))
    }
    assert(left(1 -> UpdateBefore) == Seq((1, -1, Insert, UpdateBefore)))
  }

  test("a cleared multiset is empty") {
    val rows = new SignedRows
    rows(rowOf(1)).count += 2
    rows.clear()
    rows(rowOf(1)).count += 1
    assert(rows.left.map(_.count).toSeq == Seq(1))
  }
}
