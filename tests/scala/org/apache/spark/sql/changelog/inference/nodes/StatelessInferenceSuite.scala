// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.dsl.expressions._
import org.apache.spark.sql.catalyst.plans.logical.Sort

import org.apache.spark.sql.changelog.inference.InferenceTest

class StatelessInferenceSuite extends InferenceTest {

  private def declareTables(): Unit = {
    changelog("t", "id INT, g STRING, v INT", All, key = Seq("id"))
    appends("words", "word STRING")
  }

  test("a projection hands on the kinds of its input, and the demand by the key it keeps") {
    declareTables()
    val root = infer("SELECT id AS i, upper(g) AS g FROM t", Upsert)
    assert(modes(root) == "Source[I,UA,D]")
    assert(find(root, "Project").requiredKey.map(names).contains("(i)"))
    assert(find(root, "ChangelogSource").requiredKey.map(names).contains("(id)"))
  }

  test("a projection that drops the key leaves nothing to replace rows by") {
    declareTables()
    checkRefused(
      "CHANGELOG_KEY_MISSING",
      Map("root" -> "ToChangelog upsert", "node" -> "Project")) {
      infer("SELECT g, v FROM t", Upsert)
    }
  }

  test("a filter on the key lets old rows be left out, another does not") {
    declareTables()
    assert(
      modes(infer("SELECT * FROM t WHERE id > 3", Upsert)) ==
        "Filter[I,UA,D] < Source[I,UA,D]")
    val root = infer("SELECT * FROM t WHERE id > 3 AND v < 5 AND g = 'x'", Upsert)
    assert(modes(root) == "Filter[I,UB,UA,D] < Source[I,UB,UA,D]")
    assert(
      find(root, "Filter").reasons.head
        .endsWith("needs the old row to retract rows that no longer pass"))
  }

  test("a filter keeps the kinds of its input; only the root calls lone halves by their name") {
    declareTables()
    val sql = "SELECT * FROM (SELECT word, count(*) AS c FROM words GROUP BY word) WHERE c < 3"
    Seq(Retract -> "[I,UB,UA,D]", Upsert -> "[I,UA,D]").foreach { case (mode, atRoot) =>
      val root = infer(sql, mode)
      assert(modes(root) == "Filter[I,UB,UA] < Aggregate[I,UB,UA] < Source[I]")
      assert(root.mode.toString == atRoot)
    }
    assert(infer("SELECT word, count(*) FROM words GROUP BY word").mode.toString == "[I,UB,UA]")
  }

  test("a generator keeps the kinds, loses the key, and leaves halves") {
    declareTables()
    changelog("u", "id INT, xs ARRAY<INT>", InsertUpdate, key = Seq("id"))
    val root = infer("SELECT id, x FROM u LATERAL VIEW explode(xs) AS x")
    assert(modes(root) == "Generate[I,UB,UA] < Filter[I,UB,UA] < Source[I,UB,UA]")
    assert(root.mode.toString == "[I,UB,UA,D]")
  }

  test("copies of a row for grouping sets are made of any change") {
    declareTables()
    val sql = "SELECT g, v, count(*) FROM t GROUP BY GROUPING SETS ((g), (v))"
    assert(
      modes(infer(sql)) ==
        "Aggregate[I,UB,UA,D] < Expand[I,UB,UA,D] < Source[I,UB,UA,D]")
  }

  test("unpivoted rows can be replaced by key and column name") {
    declareTables()
    val sql =
      "SELECT * FROM (SELECT id, v, id * 2 AS w FROM t) UNPIVOT INCLUDE NULLS (x FOR c IN (v, w))"
    val root = infer(sql, Upsert)
    assert(modes(root) == "Expand[I,UA,D] < Source[I,UA,D]")
    assert(root.requiredKey.map(names).contains("(id, c)"))
  }

  test("exchanges and sorts hand everything on") {
    declareTables()
    assert(modes(infer("SELECT /*+ REPARTITION(3, g) */ * FROM t", Upsert)) == "Source[I,UA,D]")
    assert(modes(infer("SELECT * FROM t ORDER BY v", Upsert)) == "Source[I,UA,D]")
    val words = table("words")
    val root = inferAsIs(Sort(Seq(words.output.head.asc), global = true, words))
    assert(find(root, "Sort").reasons == Seq("dropped: a changelog has no order"))
  }

  test("a union sends what its inputs send, and asks all that update for the same") {
    declareTables()
    changelog("feed", "id INT, g STRING, v INT", InsertUpdate, key = Seq("id"))
    val sql =
      "SELECT * FROM t UNION ALL SELECT 1, word, 2 FROM words UNION ALL SELECT * FROM feed"
    assert(
      modes(infer(sql)) ==
        "Union[I,UB,UA,D](Source[I,UB,UA,D]; Source[I]; Source[I,UB,UA])")
    checkRefused("CHANGELOG_KEY_MISSING", Map("node" -> "Union"))(infer(sql, Upsert))
  }

  test("an append reader refuses what a forwarding node hands on, naming who makes it") {
    declareTables()
    checkRefused(
      "CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES",
      Map(
        "consumer" -> "ToChangelog append",
        "kinds" -> "update and delete",
        "producer" -> "ChangelogSource [id]")) {
      infer(
        "SELECT id + 1 FROM (SELECT id FROM t WHERE id > 3 UNION ALL SELECT 1 FROM words)",
        Append)
    }
  }
}
