// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.scalatest.funsuite.AnyFunSuite

/** `JOIN ... NEAREST BY`, which picks by chance among rows that are as near. */
class CheckNearestBySuite extends AnyFunSuite with RefusedChanges {

  test("a join with the nearest rows is refused with what to write instead") {
    views()
    val nearest =
      "SELECT a.id, b.v FROM t a JOIN fixed b APPROX NEAREST 1 BY DISTANCE abs(a.v - b.v)"
    for (sql <- Seq(nearest, s"SELECT id FROM events WHERE id IN (SELECT id FROM ($nearest))")) {
      val error =
        checkError("CHANGELOG_NODE_NOT_SUPPORTED", "node" -> "JOIN ... NEAREST BY")(changes(sql))
      assert(error.getMessage.contains("LATERAL") && !error.getMessage.contains("uuid"))
    }
    // over rows that never change
    changes(
      "SELECT t.id FROM t JOIN (" + nearest.replace("t a", "fixed a").replace("a.id", "a.g") +
        ") f ON t.g = f.g")
  }
}
