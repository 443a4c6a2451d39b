// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.changelog.plans.InputMode

class DescribeNodeSuite extends InferenceTest {

  /** What EXPLAIN calls the first node with this name. */
  private def described(sql: String, name: String): String = {
    changelog("t", "id INT, g STRING, v INT", All, key = Seq("id"))
    changelog("feed", "id INT, x INT", All, key = Seq("id"), input = InputMode.Upsert)
    appends("e", "word STRING, ts TIMESTAMP")
    val plan = find(infer(sql), name).plan
    s"${DescribeNode.node(plan)} ${DescribeNode.detail(plan)}".trim
  }

  test("an aggregate shows its groups, then what it computes") {
    assert(
      described(
        "SELECT g, count(*) AS freq, sum(v) FILTER (WHERE v > 3L) AS s FROM t GROUP BY g",
        "ChangelogAggregate") ==
        "ChangelogAggregate [g] [count(1) AS freq, sum(v) FILTER (WHERE (v > 3)) AS s]")
    assert(
      described("SELECT count(*) AS n FROM t", "ChangelogAggregate") ==
        "ChangelogAggregate [] [count(1) AS n]")
  }

  test("projections and filters show their expressions without ids and type suffixes") {
    assert(
      described("SELECT id, v * 2L AS w FROM t", "Project") ==
        "Project [id, (CAST(v AS BIGINT) * 2) AS w]")
    assert(
      described("SELECT * FROM t WHERE g <> 'x' AND id > 1.5", "Filter").contains("(g = 'x')"))
  }

  test("a join shows its type and condition, with a qualifier where a name is on both sides") {
    val sql = "SELECT a.id FROM t AS a LEFT JOIN feed AS b ON a.id = b.id AND v > x"
    assert(
      described(sql, "ChangelogJoin") ==
        "ChangelogJoin LeftOuter ((a.id = b.id) AND (v > x))")
    assert(
      DescribeNode.short(find(infer(sql), "ChangelogJoin").plan) == "ChangelogJoin LeftOuter")
  }

  test("a rank shows partition, order, bounds and number") {
    val ranked =
      "(SELECT *, row_number() OVER (PARTITION BY g ORDER BY v DESC) AS rn FROM t)"
    assert(
      described(s"SELECT * FROM $ranked WHERE rn <= 2", "ChangelogRank") ==
        "ChangelogRank row_number [g] [v DESC NULLS LAST] 1 to 2 AS rn")
    assert(
      described("SELECT * FROM t LIMIT 3", "ChangelogRank") ==
        "ChangelogRank row_number [] [] 1 to 3")
  }

  test("a window of event time is shown as it was written") {
    val sql = "SELECT window, count(*) FROM e GROUP BY window(ts, '1 hour')"
    assert(described(sql, "Project") == "Project [window(ts) AS window]")
  }

  test("sources show their columns and whether they are normalized") {
    assert(described("SELECT * FROM t", "ChangelogSource") == "ChangelogSource [id, g, v]")
    assert(described("SELECT * FROM feed", "ChangelogNormalize") == "ChangelogNormalize [id, x]")
  }

  test("the root shows its mode and key") {
    changelog("t", "id INT, g STRING, v INT", All, key = Seq("id"))
    val root = infer("SELECT * FROM t", Upsert, Seq("id")).plan
    assert(DescribeNode.short(root) == "ToChangelog upsert (id)")
  }

  test("a window function shows partition, order and function") {
    val sql = "SELECT lag(v) OVER (PARTITION BY g ORDER BY id) AS l FROM t"
    assert(
      described(sql, "ChangelogWindow").startsWith(
        "ChangelogWindow [g] [id ASC NULLS FIRST] [lag(v"))
  }
}
