// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.DataFrame

import org.apache.spark.sql.changelog.testing._

/** Limits and offsets one above the other keep the order of the sort below them. */
class LimitAndOffsetSuite extends AnyFunSuite with ChangelogSession {
  private lazy val oracle = new Oracle(spark)
  private val rides = Feed("rides", "id INT, city STRING", key = Seq("id"))

  private def check(query: DataFrame => DataFrame): Unit = {
    oracle.check(
      Program(
        Seq(rides),
        "SELECT city FROM some",
        Seq(
          Step(rides, "+I 5 Oslo", "+I 10 Rome", "+I 3 Bern"),
          Step(rides, "+I 4 Graz", "+I 1 Kiel", "-D 3 Bern")),
        Map("some" -> (session => query(session.table("rides").orderBy("id"))))))
    ()
  }

  test("an offset above a limit")(check(_.limit(4).offset(1)))

  test("an offset above columns of a limit")(check(_.limit(4).select("city").offset(1)))

  test("a limit above an offset above a limit")(check(_.limit(4).offset(1).limit(2)))

  test("an offset that leaves nothing of a limit")(check(_.limit(1).offset(2)))
}
