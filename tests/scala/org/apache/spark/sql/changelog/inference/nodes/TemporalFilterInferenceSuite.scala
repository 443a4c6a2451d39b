// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.changelog.inference.{CheckExecutable, InferenceTest}
import org.apache.spark.sql.changelog.plans.StateTable

class TemporalFilterInferenceSuite extends InferenceTest {

  private def declareTables(): Unit = {
    changelog("t", "id INT, at TIMESTAMP, d DATE", All, key = Seq("id"))
    appends("e", "id INT, at TIMESTAMP, d DATE")
  }

  test("rows come and leave, whatever the input does") {
    declareTables()
    val hour = "at > now() - INTERVAL 1 HOUR"
    assert(modes(infer(s"SELECT * FROM e WHERE $hour")) == "TemporalFilter[I,D] < Source[I]")
    assert(
      modes(infer(s"SELECT * FROM t WHERE $hour")) ==
        "TemporalFilter[I,UB,UA,D] < Source[I,UB,UA,D]")
    assert(modes(infer("SELECT * FROM e WHERE at <= now()")) == "TemporalFilter[I] < Source[I]")
    checkRefused("CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES", Map("kinds" -> "delete")) {
      infer(s"SELECT * FROM e WHERE $hour", Append)
    }
  }

  test("which way conditions go that are joined by OR") {
    declareTables()
    def of(condition: String) = {
      val root = infer(s"SELECT * FROM e WHERE $condition")
      find(root, "ChangelogTemporalFilter").reasons.map(_.takeWhile(_ != '(').trim)
    }
    assert(of("at <= now() OR id > 3") == Seq("rows appear once"))
    assert(of("at > now() OR id > 3") == Seq("rows disappear once"))
    assert(of("d <> current_date()") == Seq("rows appear and disappear as time changes"))
    assert(of("at > now() AND (id > 3 OR d < current_date())").size == 2)
    for (other <- Seq("coalesce(at > now(), true)", "(at > now()) = (id > 3)"))
      checkRefused("CHANGELOG_PASSING_TIME", Map.empty)(infer(s"SELECT * FROM e WHERE $other"))
  }

  test("keys are kept, and the old row is asked for") {
    declareTables()
    val root = infer("SELECT * FROM t WHERE d = current_date()", Upsert)
    assert(keys(root) == "(id)")
    val filter = find(root, "ChangelogTemporalFilter")
    assert(
      filter.state == Seq(StateTable("rows", Seq("time", "row"), "count, shown", "the time")))
    assert(filter.children.head.mode.sendsUpdateBefore)
  }

  test("what does not depend on the time is filtered below, and only what is read is kept") {
    declareTables()
    val root = infer("SELECT id FROM e WHERE at > now() AND id > 3")
    val filter = find(root, "ChangelogTemporalFilter")
    assert(filter.plan.output.map(_.name) == Seq("id", "at"))
  }

  test("it is not executed over what a watermark closes") {
    appends("timed", "id INT, at TIMESTAMP", watermark = Some("at"))
    checkRefused(
      "CHANGELOG_NOT_EXECUTABLE_YET",
      Map("node" -> "ChangelogTemporalFilter (at > now())")) {
      CheckExecutable(infer("SELECT * FROM timed WHERE at > now()"))
    }
  }
}
