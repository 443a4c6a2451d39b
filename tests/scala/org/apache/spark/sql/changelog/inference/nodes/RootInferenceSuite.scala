// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.changelog.UpdateKind.{BeforeAndAfter, NoUpdate, OnlyUpdateAfter}
import org.apache.spark.sql.changelog.inference.InferenceTest

class RootInferenceSuite extends InferenceTest {

  private def declareTables(): Unit = {
    changelog("t", "id INT, g STRING, v INT", All, key = Seq("id"))
    changelog("bag", "g STRING, v INT", All)
    appends("words", "word STRING")
  }

  test("a retract reader gets both images") {
    declareTables()
    val root = infer("SELECT * FROM t")
    assert(root.mode.toString == "[I,UB,UA,D]" && root.required == BeforeAndAfter)
    assert(root.reasons == Seq("sends -U because the reader accepts all four row kinds"))
  }

  test("an upsert reader without a key gets the query's smallest") {
    declareTables()
    val root = infer("SELECT * FROM t", Upsert)
    assert(root.mode.toString == "[I,UA,D]" && root.required == OnlyUpdateAfter)
    assert(root.requiredKey.map(names).contains("(id)"))
    assert(root.reasons == Seq("no -U: the sink replaces rows by key (id)"))
  }

  test("of two keys of one size the one by which old rows can be left out is taken") {
    declareTables()
    val sql =
      """SELECT id, g FROM (
        |  SELECT *, row_number() OVER (PARTITION BY g ORDER BY v) AS rn FROM t)
        |WHERE rn = 1""".stripMargin
    val root = infer(sql, Upsert)
    assert(keys(root) == "(id) or (g)")
    assert(root.requiredKey.map(names).contains("(g)"))
    assert(modes(root) == "Rank[I,UA,D] < Source[I,UB,UA,D]")
  }

  test("an upsert reader's own key may be any key of the query") {
    declareTables()
    val sql = "SELECT g AS city, count(*) AS n FROM t GROUP BY g"
    assert(modes(infer(sql, Upsert, Seq("city"))) == "Aggregate[I,UA,D] < Source[I,UB,UA,D]")
  }

  test("a key that holds more than the query's needs old rows, for an update may change it") {
    declareTables()
    val root = infer("SELECT * FROM t", Upsert, Seq("id", "g"))
    assert(root.mode.toString == "[I,UA,D]")
    assert(modes(root) == "Source[I,UB,UA,D]")
    assert(
      find(root, "ChangelogSource").reasons ==
        Seq("sends -U because an update can move a row from one (id, g) to another"))
  }

  test("a key that does not identify rows is refused, naming the keys there are") {
    declareTables()
    checkRefused(
      "CHANGELOG_KEY_NOT_UNIQUE",
      Map("root" -> "ToChangelog upsert (g)", "key" -> "(g)", "keys" -> "(id)")) {
      infer("SELECT * FROM t", Upsert, Seq("g"))
    }
    checkRefused("CHANGELOG_KEY_NOT_UNIQUE", Map("keys" -> "none")) {
      infer("SELECT * FROM words", Upsert, Seq("word"))
    }
  }

  test("a query that changes and has no key can't be replaced by key") {
    declareTables()
    checkRefused(
      "CHANGELOG_KEY_MISSING",
      Map("root" -> "ToChangelog upsert", "node" -> "ChangelogSource [g, v]")) {
      infer("SELECT * FROM bag", Upsert)
    }
  }

  test("a query that only inserts needs no key, whoever reads it") {
    declareTables()
    Seq(Retract, Upsert, Append).foreach { mode =>
      val root = infer("SELECT upper(word) FROM words", mode)
      assert(root.mode.toString == "[I]" && root.required == NoUpdate && root.reasons.isEmpty)
    }
  }
}
