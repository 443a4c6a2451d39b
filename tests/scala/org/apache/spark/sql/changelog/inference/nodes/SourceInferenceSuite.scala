// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.AttributeReference
import org.apache.spark.sql.types.IntegerType

import org.apache.spark.sql.changelog.ModifyKindSet
import org.apache.spark.sql.changelog.inference.InferenceTest
import org.apache.spark.sql.changelog.plans.{InputMode, StateTable}

class SourceInferenceSuite extends InferenceTest {

  test("a source sends what was declared") {
    Seq(
      InsertOnly -> "[I]",
      InsertUpdate -> "[I,UB,UA]",
      ModifyKindSet(insert = true, update = false, delete = true) -> "[I,D]",
      All -> "[I,UB,UA,D]").foreach { case (kinds, mode) =>
      changelog("t", "id INT, v INT", kinds)
      assert(modes(infer("SELECT * FROM t")) == s"Source$mode")
    }
  }

  test("a feed with before images leaves them out where nobody needs them") {
    changelog("t", "id INT, v INT", All, key = Seq("id"))
    val source = find(infer("SELECT * FROM t", Upsert), "ChangelogSource")
    assert(source.mode.toString == "[I,UA,D]")
    assert(source.strategy.contains("net updates by key at the root") && source.state.isEmpty)
    assert(find(infer("SELECT * FROM t"), "ChangelogSource").strategy.isEmpty)
  }

  test("a feed without before images is normalized, whatever is asked of it") {
    changelog("t", "id INT, v INT", All, key = Seq("id"), input = InputMode.Upsert)
    Seq(Retract -> "[I,UB,UA,D]", Upsert -> "[I,UA,D]").foreach { case (reader, mode) =>
      val source = find(infer("SELECT * FROM t", reader), "ChangelogNormalize")
      assert(source.mode.toString == mode)
      assert(source.strategy.contains("normalize"))
      assert(source.state == Seq(StateTable("rows", Seq("id"), "row", "unbounded")))
      assert(
        source.reasons.last == "keeps the last row of each key: the feed has no before images")
    }
  }

  test("a stream read without from_changelog only inserts") {
    val rows = stream(Seq(AttributeReference("a", IntegerType)()))
    assert(inferAsIs(rows).children.head.mode.toString == "[I]")
  }
}
