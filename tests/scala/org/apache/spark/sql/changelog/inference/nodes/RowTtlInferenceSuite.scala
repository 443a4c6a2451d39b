// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.changelog.OutputMode
import org.apache.spark.sql.changelog.inference.{AnnotatedPlan, CheckExecutable, InferenceTest}
import org.apache.spark.sql.changelog.plans.RowTtl

class RowTtlInferenceSuite extends InferenceTest {

  private def inferHinted(name: String, mode: OutputMode = Retract): AnnotatedPlan =
    inferPlan(RowTtl(3600000, table(name)), mode)

  test("rows leave, whatever the input does, and keys are kept") {
    changelog("t", "id INT, v INT", All, key = Seq("id"))
    appends("e", "id INT, v INT")
    assert(modes(inferHinted("e")) == "RowTtl[I,D] < Source[I]")
    val root = inferHinted("t", Upsert)
    assert(keys(root) == "(id)")
    val node = find(root, "ChangelogRowTtl")
    assert(node.children.head.mode.sendsUpdateBefore)
    assert(
      node.state.map(_.toString) ==
        Seq("rows: (time, row) → count, retracted 1.00 h after the last change"))
    checkRefused("CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES", Map("kinds" -> "delete")) {
      inferHinted("e", Append)
    }
  }

  test("it is not executed over what a watermark closes") {
    appends("t", "id INT, v TIMESTAMP", watermark = Some("v"))
    checkRefused("CHANGELOG_NOT_EXECUTABLE_YET", Map("node" -> "ChangelogRowTtl 1.00 h")) {
      CheckExecutable(inferHinted("t"))
    }
  }
}
