// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.changelog.inference.{AnnotatedPlan, InferenceTest}
import org.apache.spark.sql.changelog.plans.{Rank, RankFunction, StateTable}

class RankInferenceSuite extends InferenceTest {

  private def declareTables(): Unit = {
    changelog("t", "c STRING, id INT, v INT", All, key = Seq("id"))
    appends("e", "c STRING, id INT, v INT")
  }

  private def top(
      input: String,
      order: String,
      where: String = "rn <= 2",
      what: String = "c, id, n",
      function: String = "row_number"): String =
    s"""SELECT $what FROM (
       |  SELECT *, $function() OVER (PARTITION BY c ORDER BY $order) AS rn FROM $input)
       |WHERE $where""".stripMargin

  private val events = "(SELECT c, id, v AS n FROM e)"
  private val table = "(SELECT c, id, v AS n FROM t)"
  private val counts = "(SELECT c, id, count(*) AS n FROM e GROUP BY c, id)"
  private val sums = "(SELECT c, id, sum(v) AS n FROM e GROUP BY c, id)"

  private def rank(root: AnnotatedPlan): AnnotatedPlan = find(root, "ChangelogRank")

  test("over new rows only the best are kept, and they come and go") {
    declareTables()
    val root = infer(top(events, "n DESC"))
    assert(modes(root) == "Rank[I,UB,UA,D] < Source[I]")
    assert(rank(root).strategy.contains("append-fast"))
    assert(rank(root).state == Seq(StateTable("head", Seq("c"), "first 2 rows", "the last rank")))
  }

  test("an ascending order is no promise that the first row stays") {
    declareTables()
    Seq("n ASC", "n ASC, id DESC").foreach { order =>
      checkRefused(
        "CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES",
        Map("producer" -> "ChangelogRank row_number [c]")) {
        infer(top(events, order, "rn = 1"), Append)
      }
    }
  }

  test("without an order the first rows to come stay, numbered or not") {
    declareTables()
    assert(modes(infer("SELECT * FROM e LIMIT 3", Append)) == "Rank[I] < Source[I]")
    assert(modes(infer("SELECT * FROM e LIMIT 3 OFFSET 2", Append)) == "Rank[I] < Source[I]")
    val source = super.table("e")
    val first = Rank(RankFunction.RowNumber, source.output.take(1), Nil, 1, 2, None, source)
    assert(modes(inferAsIs(first, Append)) == "Rank[I] < Source[I]")
    assert(modes(infer("SELECT * FROM t LIMIT 3")) == "Rank[I,UB,UA,D] < Source[I,UB,UA,D]")
  }

  test("to an append reader the earliest row by event time comes when the watermark passes it") {
    appends("timed", "c STRING, ts TIMESTAMP", watermark = Some("ts"))
    val sql = top("timed", "ts", "rn = 1", what = "c, ts")
    val root = infer(sql, Append)
    assert(modes(root) == "Rank[I] < Source[I]")
    assert(rank(root).reasons.last == "a row is emitted when the watermark on ts has passed it")
    assert(modes(infer(sql)) == "Rank[I,UB,UA,D] < Source[I]")
    checkRefused("CHANGELOG_RESULT_NOT_FINAL", Map("node" -> "ChangelogRank row_number [c]")) {
      infer(top("timed", "ts DESC", "rn = 1", what = "c, ts"), Append)
    }
  }

  test("over rows that can only get better only the best are kept, without old rows") {
    declareTables()
    Seq(
      top(counts, "n DESC"),
      top(counts, "n DESC, id ASC"),
      top(counts, "id ASC"),
      top("(SELECT c, id, max(v) AS n FROM e GROUP BY c, id)", "n DESC"),
      top("(SELECT c, id, min(v) AS n FROM e GROUP BY c, id)", "n ASC NULLS LAST"),
      top("(SELECT c, id, sum(v) AS n FROM e WHERE v >= 0 GROUP BY c, id)", "n DESC"))
      .foreach { sql =>
        val root = infer(sql, Upsert)
        assert(modes(root).startsWith("Rank[I,UA,D] < Aggregate[I,UA] < "), sql)
        assert(rank(root).strategy.contains("update-fast"))
        assert(find(root, "ChangelogAggregate").requiredKey.map(names).contains("(c, id)"))
      }
  }

  test("where a row can get worse all rows are kept") {
    declareTables()
    Seq(
      top(sums, "n DESC"),
      top(counts, "n ASC"),
      top(counts, "n DESC NULLS LAST, n + id ASC"),
      top("(SELECT c, id, max(v) AS n FROM e GROUP BY c, id)", "n DESC NULLS FIRST"),
      top("(SELECT c, id, min(v) AS n FROM e GROUP BY c, id)", "n ASC")).foreach { sql =>
      val root = infer(sql, Upsert)
      assert(rank(root).strategy.contains("retract"), sql)
      assert(rank(root).reasons.last == "keeps all rows: an update can worsen a row's rank")
      assert(find(root, "ChangelogAggregate").mode.toString == "[I,UB,UA]")
    }
  }

  test("where rows can go all rows are kept, however they are ordered") {
    declareTables()
    val root = infer(top("(SELECT c, id, count(*) AS n FROM t GROUP BY c, id)", "n DESC"), Upsert)
    assert(rank(root).strategy.contains("retract"))
    assert(rank(root).reasons.last == "keeps all rows: a delete moves the next row up")
    assert(rank(root).state.map(_.table) == Seq("head", "rows"))
  }

  test("dense ranks keep all rows, for a value may lose its last row") {
    declareTables()
    assert(rank(infer(top(counts, "n DESC", function = "rank"))).strategy.contains("update-fast"))
    val dense = rank(infer(top(counts, "n DESC", function = "dense_rank")))
    assert(dense.strategy.contains("retract"))
    assert(dense.mode.toString == "[I,UB,UA,D]")
  }

  test("a filter in between, or a key without the partition, takes the fast way away") {
    declareTables()
    val filtered = infer(top(s"(SELECT * FROM $counts WHERE n > 1)", "n DESC"))
    assert(rank(filtered).strategy.contains("retract"))
    val regrouped = top("(SELECT id % 2 AS c, id, count(*) AS n FROM e GROUP BY id)", "n DESC")
    assert(
      rank(infer(regrouped)).reasons.last ==
        "keeps all rows: no key of the input contains the partition columns")
  }

  test("with rank numbers slots are replaced, so old rows are needed by any other key") {
    declareTables()
    val sql = top(counts, "n DESC", what = "c, id, n, rn")
    assert(modes(infer(sql, Upsert, Seq("c", "rn"))).startsWith("Rank[I,UA,D]"))
    val byRow = infer(sql, Upsert, Seq("c", "id"))
    assert(modes(byRow).startsWith("Rank[I,UB,UA,D]"))
    assert(
      rank(byRow).reasons.head ==
        "sends -U because ChangelogRank row_number [c] replaces rows by (c, rn), not by (c, id)")
  }

  test("one row per partition is replaced by partition") {
    declareTables()
    assert(
      modes(infer(top(table, "n DESC", "rn = 1"), Upsert, Seq("c"))) ==
        "Rank[I,UA,D] < Source[I,UB,UA,D]")
    assert(
      modes(infer(top(table, "n DESC", "rn = 1"), Upsert, Seq("id"))) ==
        "Rank[I,UB,UA,D] < Source[I,UB,UA,D]")
  }

  test("a rank over a rank is told what leaves the inner one") {
    declareTables()
    val root = infer(s"SELECT * FROM (${top(counts, "n DESC")}) ORDER BY n DESC LIMIT 3")
    assert(
      modes(root) ==
        "Rank[I,UB,UA,D] < Rank[I,UB,UA,D] < Aggregate[I,UA] < Source[I]")
  }
}
