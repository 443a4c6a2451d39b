// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.plans.logical.Tail

import org.apache.spark.sql.changelog.UpdateKind.{BeforeAndAfter, NoUpdate}
import org.apache.spark.sql.changelog.plans.ToChangelog

class InferChangelogModeSuite extends InferenceTest {
  private val countOfCounts =
    """SELECT cnt, count(*) AS freq
      |FROM (SELECT word, count(*) AS cnt FROM words GROUP BY word) GROUP BY cnt""".stripMargin

  test("the annotated tree has the shape of the plan, whose nodes stay as they are") {
    appends("words", "word STRING")
    def check(node: AnnotatedPlan): Unit = {
      assert(node.children.map(_.plan) == node.plan.children)
      node.children.foreach(check)
    }
    val root = infer(countOfCounts)
    assert(root.plan.isInstanceOf[ToChangelog])
    check(root)
  }

  test("nodes are visited inputs first") {
    appends("words", "word STRING")
    var visited = Seq.empty[String]
    infer(countOfCounts).foreachUp(node => visited :+= DescribeNode.node(node.plan))
    assert(
      visited.filter(_.contains("Changelog")) ==
        Seq("ChangelogSource", "ChangelogAggregate", "ChangelogAggregate", "ToChangelog"))
  }

  test("each node says who needs its old rows, or why nobody does") {
    appends("words", "word STRING")
    val root = infer(countOfCounts, Upsert)
    val outer = find(root, "ChangelogAggregate")
    assert(outer.reasons.head == "no -U: the sink replaces rows by key (cnt)")
    assert(outer.requiredKey.map(names).contains("(cnt)"))
    val inner = find(outer.children.head, "ChangelogAggregate")
    assert(
      inner.reasons.head ==
        "sends -U because ChangelogAggregate [cnt] must retract the old row")
    assert(inner.required == BeforeAndAfter && inner.requiredKey.isEmpty)
    val source = find(root, "ChangelogSource")
    assert(source.required == NoUpdate && source.reasons.isEmpty)
  }

  test("what lies below a source is an ordinary stream of rows") {
    changelog("t", "a INT", All)
    val source = find(infer("SELECT * FROM t"), "ChangelogSource")
    assert(source.mode.toString == "[I,UB,UA,D]")
    assert(source.children.map(_.mode.toString) == Seq("[I]"))
  }

  test("a node nobody knows is refused by name") {
    appends("t", "a INT")
    checkRefused("CHANGELOG_NODE_NOT_SUPPORTED", Map("node" -> "Tail")) {
      inferAsIs(Tail(Literal(1), table("t")))
    }
  }

  test("a subquery over a changelog that is no join is refused") {
    appends("t", "a INT")
    appends("u", "b INT")
    val plan = spark.sql("SELECT (SELECT max(b) FROM u) AS m FROM t").queryExecution.analyzed
    checkRefused(
      "CHANGELOG_SUBQUERY_NOT_SUPPORTED",
      Map("node" -> "Project", "subquery" -> "scalarsubquery")) {
      inferAsIs(plan)
    }
  }

  test("a subquery over a static table is left to Spark") {
    appends("t", "a INT")
    val plan = spark.sql("SELECT a + (SELECT max(id) FROM range(3)) AS m FROM t")
    assert(modes(inferAsIs(plan.queryExecution.analyzed)).endsWith("Source[I]"))
  }
}
