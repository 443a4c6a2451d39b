// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.microbatch

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning

/** As many salts as tasks can work on, each in a partition of its own. */
class SpreadingSaltsSuite extends AnyFunSuite {

  private def placesOf(salts: Seq[Int], partitions: Int): Seq[Any] = salts.map { salt =>
    HashPartitioning(Seq(Literal(salt)), partitions).partitionIdExpression.eval()
  }

  test("each salt is shuffled to another partition") {
    for ((partitions, ways) <- Seq(2 -> 16, 4 -> 16, 16 -> 16, 200 -> 16, 7 -> 3)) {
      val salts = SpreadingSalts.among(partitions, ways)
      assert(salts.size == math.min(partitions, ways))
      assert(placesOf(salts, partitions).distinct.size == salts.size, s"$salts in $partitions")
    }
  }

  test("there are none where there is one partition") {
    assert(SpreadingSalts.among(1, 16).isEmpty)
  }
}
