// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.errors.ChangelogRuntimeException
import org.apache.spark.sql.changelog.{ModifyKindSet, RowKind}

class ChangeTypesSuite extends AnyFunSuite {
  private val standard = ChangeTypes.standard("op", drop = false)

  private def kind(types: ChangeTypes, text: String): Byte =
    types.kindOf(if (text == null) null else UTF8String.fromString(text))

  private def assertKinds(insert: String, before: String, after: String, delete: String): Unit =
    Seq(insert, before, after, delete).zipWithIndex.foreach { case (text, expected) =>
      Seq(text, text.toUpperCase, text.toLowerCase).foreach { spelling =>
        assert(kind(standard, spelling) == expected, spelling)
      }
    }

  test("the words of Spark, Delta and Iceberg are known") {
    assertKinds("insert", "update_preimage", "update_postimage", "delete")
  }

  test("Flink's words and signs are known") {
    assertKinds("INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE")
    assertKinds("+I", "-U", "+U", "-D")
  }

  test("Debezium's letters are known") {
    assert(
      Seq("c", "r", "u", "d").map(kind(standard, _)) ==
        Seq(RowKind.Insert, RowKind.Insert, RowKind.UpdateAfter, RowKind.Delete))
  }

  test("an unknown change type is an error that names it and its column") {
    for ((text, shown) <- Seq("upsert" -> "'upsert'", "" -> "''", " +I" -> "' +I'")) {
      val error = intercept[ChangelogRuntimeException](kind(standard, text))
      assert(error.getCondition == "CHANGELOG_CHANGE_TYPE_UNKNOWN")
      assert(error.getMessageParameters.get("column") == "op")
      assert(error.getMessageParameters.get("value") == shown)
    }
    val error = intercept[ChangelogRuntimeException](kind(standard, null))
    assert(error.getMessageParameters.get("value") == "NULL")
  }

  test("rows that can't be read are dropped where that is asked for") {
    val dropping = ChangeTypes.standard("op", drop = true)
    assert(kind(dropping, "upsert") == ChangeTypes.Dropped)
    assert(kind(dropping, null) == ChangeTypes.Dropped)
    assert(kind(dropping, "+I") == RowKind.Insert)
    val key = UTF8String.fromString("id")
    assert(dropping.nullKey(key, UTF8String.fromString("{NULL}")) == ChangeTypes.Dropped)
    val error =
      intercept[ChangelogRuntimeException](standard.nullKey(key, UTF8String.fromString("{NULL}")))
    assert(error.getCondition == "CHANGELOG_KEY_NULL")
  }

  test("a mapping replaces the known words and is taken literally") {
    val types =
      new ChangeTypes("op", Map("new" -> RowKind.Insert, "gone" -> RowKind.Delete), false)
    assert(kind(types, "new") == RowKind.Insert)
    assert(kind(types, "gone") == RowKind.Delete)
    assert(types.produces == ModifyKindSet(insert = true, update = false, delete = true))
    Seq("New", "+I", "insert").foreach { text =>
      intercept[ChangelogRuntimeException](kind(types, text))
    }
  }

  test("a row kind can be written in any of the known ways") {
    assert(ChangeTypes.parseKind("update_after").contains(RowKind.UpdateAfter))
    assert(ChangeTypes.parseKind("+u").contains(RowKind.UpdateAfter))
    assert(ChangeTypes.parseKind("-D").contains(RowKind.Delete))
    assert(ChangeTypes.parseKind("+X").isEmpty)
  }
}
