// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.{
  LeafNode, LogicalPlan, Subquery, SubqueryAlias
}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkOptimizer

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.inference.{AnnotatedPlan, ExplainTree}
import org.apache.spark.sql.changelog.optimizer.rewrite.OperatorIds
import org.apache.spark.sql.changelog.plans.{FromChangelog, ToChangelog}
import org.apache.spark.sql.changelog.testing._

/** The plan of a query after each phase of the rewrite. */
class PhasesSuite extends AnyFunSuite with ChangelogSession with GoldenFiles {
  private val page = "docs/contributing/phases.md"

  private val walked =
    """SELECT city, count(*) AS n FROM rides
      |WHERE fare > (SELECT avg(fare) FROM rides)
      |GROUP BY city ORDER BY n DESC LIMIT 3""".stripMargin

  /** Queries in which each pass has something to do that SQL can give it. */
  private val more = Seq(
    "SELECT /*+ SKEW('t', 'k', 1) */ t.k, w FROM t JOIN u ON t.k = u.k",
    "SELECT /*+ ROW_TTL('1h') */ k, count(*) FROM t GROUP BY k",
    "SELECT * FROM t WHERE at > now() - INTERVAL 1 HOUR",
    "SELECT * FROM t WHERE k IN (SELECT k FROM u WHERE w > (SELECT count(DISTINCT n) FROM t))",
    "SELECT a.k, b.k FROM (SELECT * FROM t ORDER BY n LIMIT 5) a JOIN u b ON a.k = b.k",
    "SELECT k, n FROM t EXCEPT ALL SELECT * FROM (VALUES (1, 2), (3, 4) AS x(i, j) ORDER BY i LIMIT 1)",
    "SELECT a.n, b.n AS m FROM t a JOIN t b ON a.k = b.k",
    "SELECT * FROM t WHERE k + n BETWEEN 1 AND 3 ORDER BY n",
    "SELECT nullif(substr(v, 1, 1), 'a') AS x FROM t",
    "SELECT v COLLATE UTF8_LCASE AS c, count(*) FROM t GROUP BY 1",
    "WITH RECURSIVE c(i) AS (SELECT k FROM t UNION ALL SELECT i + 1 FROM c WHERE i < 5) SELECT * FROM c",
    "WITH s AS (SELECT k, sum(n) AS s FROM t GROUP BY k) SELECT * FROM s WHERE s = (SELECT max(s) FROM s)")

  private lazy val tables: Unit = Seq(
    Feed("rides", "id INT, city STRING, fare DOUBLE", Seq("id")),
    Feed("t", "k INT, v STRING, n INT, at TIMESTAMP"),
    Feed("u", "k INT, w INT")).foreach { feed =>
    new RawStream(spark, s"raw_${feed.name}", s"_op STRING, ${feed.columns}")
    spark.sql(feed.read(s"raw_${feed.name}", "_op")).createOrReplaceTempView(feed.name)
  }

  /** The query as the rule that runs the phases gets it. */
  private def resolved(sql: String): ToChangelog = {
    tables
    val analyzed = spark.sql(s"SELECT * FROM to_changelog(TABLE($sql))").queryExecution.analyzed
    val lowered = ResolvePhase.lowering.foldLeft(analyzed)((plan, pass) => pass.rule(plan))
    var captured = Option.empty[ToChangelog]
    val capture = new Rule[LogicalPlan] {
      override def apply(plan: LogicalPlan): LogicalPlan = plan match {
        case subquery: Subquery => KeepCalls.hide(subquery)
        case _ =>
          captured = plan.collectFirst { case root: ToChangelog => root }
          plan
      }
    }
    val state = spark.sessionState
    new SparkOptimizer(state.catalogManager, state.catalog, state.experimentalMethods) {
      override def extendedOperatorOptimizationRules: Seq[Rule[LogicalPlan]] =
        super.extendedOperatorOptimizationRules ++ ResolvePhase.optimization.map(_.rule)
      override def preCBORules: Seq[Rule[LogicalPlan]] = Seq(capture)
    }.execute(lowered)
    ResolvePhase(captured.get)
  }

  private def annotated(root: ToChangelog): AnnotatedPlan = AnnotatePhase(Seq(root), Nil).head

  private def emitted(root: AnnotatedPlan): LogicalPlan =
    new EmitPhase(spark, new OperatorIds(0), None)(root)

  private def nameOf(rule: Rule[LogicalPlan]): String =
    rule.ruleName.split('.').last.stripSuffix("$")

  /** The operators with their columns. */
  private def operators(plan: LogicalPlan, depth: Int = 0): Seq[String] = {
    val lead = if (depth == 0) "" else "   " * (depth - 1) + "+- "
    val columns = plan.output.map(_.name).mkString("[", ", ", "]")
    s"$lead${plan.nodeName} $columns" +: plan.children.flatMap(operators(_, depth + 1))
  }

  private def text(plan: LogicalPlan): Seq[String] = plan
    .transformUpWithSubqueries { case source: FromChangelog =>
      source.copy(child = BelowSource(source.child.output))
    }
    .treeString
    .replaceAll("#\\d+L?", "")
    .linesIterator
    .filterNot(_.contains("BelowSource"))
    .toSeq

  test("docs/contributing/phases.md walks a query") {
    val root = resolved(walked)
    val normal = NormalizePhase(root)
    val tree = annotated(normal)
    Seq(
      "resolve" -> text(root),
      "normalize" -> text(normal),
      "annotate" -> ExplainTree(tree).toText.linesIterator.toSeq,
      "emit" -> operators(emitted(tree))).foreach { case (phase, lines) =>
      checkGoldenPart(
        page,
        s"<!-- After $phase, by PhasesSuite: -->",
        "```text" +: lines :+ "```")
    }
  }

  test("docs/contributing/phases.md lists the passes") {
    def table(passes: Seq[Pass]) = Seq("| pass | why it stands there |", "|---|---|") ++
      passes.map { pass =>
        s"| `${nameOf(pass.rule)}` | ${pass.why} |"
      }
    Seq(
      "with Spark's hints" -> ResolvePhase.hints,
      "after Spark's analysis" -> ResolvePhase.analysis,
      "before Spark's optimizer" -> ResolvePhase.lowering,
      "with Spark's optimizer" -> ResolvePhase.optimization,
      "to normalize" -> NormalizePhase.passes).foreach { case (place, passes) =>
      checkGoldenPart(page, s"<!-- Passes $place, by PhasesSuite: -->", table(passes))
    }
  }

  test("each phase keeps its laws") {
    val queries =
      StockQueries.batch.filter(_.matches("(?s)(SELECT|WITH|FROM) .*")) ++ more :+ walked
    val (kept, refused) = queries.partition { sql =>
      try {
        withClue(sql) {
          val root = resolved(sql)
          val normal = NormalizePhase(root)
          val tree = annotated(normal)
          assert(PhaseLaws.ofResolved(root).isEmpty)
          assert(PhaseLaws.ofNormalized(normal).isEmpty)
          assert(PhaseLaws.ofAnnotated(tree).isEmpty)
          assert(PhaseLaws.ofEmitted(emitted(tree), tree).isEmpty)
        }
        true
      } catch {
        case error: SparkThrowable if error.getCondition.startsWith("CHANGELOG_") => false
      }
    }
    assert(kept.size > 50 && more.forall(kept.contains), s"refused: ${refused.mkString("\n")}")
  }

  test("a plan breaks the laws of the phases that it has not passed") {
    val broken = more.flatMap(sql => PhaseLaws.ofNormalized(resolved(sql))).toSet
    assert(
      broken == Set(
        "a subquery over a changing table is an expression",
        "a sort, limit or offset is left",
        "the current time is read outside a temporal filter",
        "a hint is left",
        "two readings of a source share a column",
        "static rows are not inserted",
        "a call is hidden",
        "a repeated reading is marked"))
    val normal = NormalizePhase(resolved(walked))
    val tree = annotated(normal)
    assert(PhaseLaws.ofEmitted(normal, tree).size == 3)
    assert(PhaseLaws.ofAnnotated(tree.copy(children = Nil)).size == 1)
    val strange = tree.copy(upsertKeys = Seq(AttributeSet(RowKind.newAttribute())))
    assert(PhaseLaws.ofAnnotated(strange).size == 1)
    assert(PhaseLaws.ofResolved(normal.copy(child = SubqueryAlias("t", normal.child))).size == 1)
  }

  test("each pass changes a plan") {
    val idle = NormalizePhase.passes.map(_.rule).filterNot { rule =>
      (more :+ walked).exists { sql =>
        val before = NormalizePhase.passes
          .map(_.rule)
          .takeWhile(_ ne rule)
          .foldLeft[LogicalPlan](resolved(sql))((plan, earlier) => earlier(plan))
        !(rule(before) fastEquals before)
      }
    }
    // The order of emission needs mode append, the others need functions of typed datasets or of Python.
    val others =
      Seq("OrderEmission", "CallRowFunctions", "PullOutPythonFunctions", "ColumnPruning")
    assert(idle.map(nameOf) == others)
  }
}

/** Stands for the plan below a source in the texts of the page. */
private case class BelowSource(output: Seq[Attribute]) extends LeafNode
