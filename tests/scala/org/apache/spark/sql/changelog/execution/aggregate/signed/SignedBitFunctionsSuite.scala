// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate.signed

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.errors.ChangelogRuntimeException

class SignedBitFunctionsSuite extends AnyFunSuite {
  import SignedBitFunctions._

  private def counts(added: Seq[Long], removed: Seq[Long]): Seq[Long] = (0 until 32).map { bit =>
    added.map(countOfTwo(_, bit, bit + 32, 1)).sum +
      removed.map(countOfTwo(_, bit, bit + 32, -1)).sum
  }

  test("what is left after values go decides, in whatever order they come and go") {
    val random = new Random(1)
    for (_ <- 1 to 500) {
      val left = Seq.fill(1 + random.nextInt(4))(random.nextLong() | random.nextLong())
      val gone = Seq.fill(random.nextInt(9))(random.nextLong())
      // what goes may be counted before it comes
      val first = counts(Nil, gone)
      val words = counts(left ++ gone, Nil).zip(first).map { case (a, b) => a + b }
      val rows = left.size.toLong
      val any = words.indices.map(bit => bitsOfAny(words(bit), bit, bit + 32, rows))
      val all = words.indices.map(bit => bitsOfAll(words(bit), bit, bit + 32, rows))
      assert(any.reduce(_ | _) == left.reduce(_ | _))
      assert(all.reduce(_ | _) == left.reduce(_ & _))
    }
  }

  test("counts go as far as 32 bits do, and no farther") {
    val most = (1L << 32) - 1
    val full = countOfTwo(-1L, 0, 32, most)
    assert(bitsOfAll(full, 0, 32, most) == (1L | (1L << 32)))
    assert(bitsOfAny(full, 0, 32, most) == (1L | (1L << 32)))
    assert(bitsOfAny(full - countOfTwo(1L, 0, 32, most), 0, 32, most) == 1L << 32)
    for (read <- Seq[Long => Long](bitsOfAny(full, 0, 32, _), bitsOfAll(full, 0, 32, _))) {
      val error = intercept[ChangelogRuntimeException](read(most + 1))
      assert(error.getCondition == "CHANGELOG_GROUP_TOO_LARGE")
      assert(error.getMessageParameters.get("rows") == (most + 1).toString)
    }
  }
}
