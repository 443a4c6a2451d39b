// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.output

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.metrics.source.CodegenMetrics
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper

import org.apache.spark.sql.changelog.testing._

/** What is compiled for a query, once, and not again in each of its batches. */
class GeneratedClassesSuite extends AnyFunSuite with ChangelogSession {
  private val t = Feed("t", "id INT, g STRING, v INT", Seq("id"))
  private val u = Feed("u", "id INT, g STRING, v INT", Seq("id"))

  private def numCompiled: Long = CodegenMetrics.METRIC_COMPILATION_TIME.getCount()

  /** Runs a query over a few batches. Gives its plan, and what each batch has compiled. */
  private def run(sql: String): (SparkPlan, Seq[Long]) = {
    val life = new QueryLife(spark, t, u)
    val query = life.start(life.changes(sql))
    try {
      val compiled = (1 to 4).map { n =>
        val before = numCompiled
        life.add(t, s"+I $n a $n", s"+I ${n + 10} b 5")
        life.add(u, s"+I $n a $n")
        query.processAllAvailable()
        numCompiled - before
      }
      assert(life.result == life.expected(sql))
      val stream = query.asInstanceOf[StreamingQueryWrapper].streamingQuery
      (stream.lastExecution.executedPlan, compiled)
    } finally query.stop()
  }

  Seq(
    "an aggregate" -> "SELECT g, count(*) AS n, sum(v) AS s, max(v) AS m FROM t GROUP BY g",
    "several operators" ->
      """SELECT a.g, count(*) AS n, sum(b.v) AS s FROM t a JOIN u b ON a.g = b.g JOIN t c ON c.v = b.v
        |LEFT JOIN u d ON d.id = c.id WHERE a.v <> 17 GROUP BY a.g""".stripMargin)
    .foreach { case (name, sql) =>
      test(s"$name: nothing is compiled after the first batches") {
        val (plan, compiled) = run(sql)
        assert(compiled.drop(2).sum == 0, compiled)
        assert(compiled.sum <= GeneratedClasses.countOf(plan), compiled)
      }
    }

  test("a plan of more classes than are kept is warned of, with what to set") {
    val (plan, _) = run("SELECT t.id, u.v FROM t JOIN u ON t.id = u.id")
    val count = GeneratedClasses.countOf(plan)
    assert(GeneratedClasses.warning(plan, count).isEmpty)
    val text = GeneratedClasses.warning(plan, count - 1).get
    assert(text.contains(s"about $count generated classes") && text.contains("maxEntries=5000"))
  }
}
