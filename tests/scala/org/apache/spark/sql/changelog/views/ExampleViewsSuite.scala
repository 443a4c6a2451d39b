// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.nio.file.{Files, Path}

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing.TextChangelog

/** The example of views over plain tables runs, and shows what it should. */
class ExampleViewsSuite extends AnyFunSuite with ViewSession {
  private val home = Path.of(sys.props("spark.changelog.test.home"))

  test("examples/views.sql") {
    val text = Files.readString(home.resolve("examples/views.sql"))
    val statements = text
      .replaceAll("(?m)^--.*$", "")
      .split(";")
      .map(_.trim)
      .filter(_.nonEmpty)
    val shown = statements.toSeq.map(sql => sql.takeWhile(_ != '\n') -> run(sql))
    def of(beginning: String) = shown.filter(_._1.startsWith(beginning)).map(_._2)
    val plan = of("EXPLAIN").head.head.getString(0)
    assert(plan.contains("`orders` is followed by its change data feed"), plan)
    assert(plan.contains("`customers` is followed by the files"), plan)
    assert(
      of("SELECT * FROM revenue").map(_.map(TextChangelog.format)) == Seq(
        Seq("Italy 2 25", "Norway 1 30"),
        Seq("Iceland 1 30", "Italy 1 50")))
    assert(of("VERIFY").head.isEmpty)
    assert(of("SHOW REFRESHES").head.map(_.getString(2)) == Seq("incremental", "full"))
    assert(of("SELECT * FROM changes").head.size > 4)
  }
}
