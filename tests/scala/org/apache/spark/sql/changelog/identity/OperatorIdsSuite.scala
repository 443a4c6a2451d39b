// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.streaming.StreamingQueryException

import org.apache.spark.sql.changelog.plans.ChangelogAggregate
import org.apache.spark.sql.changelog.testing._

/** Each operator of a plan has a place of its own for its state, whosever it is. */
class OperatorIdsSuite extends AnyFunSuite with ChangelogSession {
  private val t = Feed("t", "id INT, g STRING, v INT")
  private val u = Feed("u", "id INT, g STRING, v INT")

  private def batches(life: QueryLife): Seq[() => Unit] = Seq(
    () => life.add(t, "+I 1 a 1", "+I 2 a 2", "+I 3 b 3"),
    () => life.add(u, "+I 1 a 10", "+I 2 c 20"),
    () => life.add(t, "-D 1 a 1", "+I 4 c 4"),
    () => {
      life.add(t, "-D 3 b 3")
      life.add(u, "-D 1 a 10", "+I 3 b 5")
    })

  /** Runs a stream of changes batch by batch, begun anew each time. */
  private def check(expected: String, changes: QueryLife => DataFrame): Unit = {
    val life = new QueryLife(spark, t, u)
    batches(life).foreach { arrive =>
      arrive()
      life.run(changes(life))
      assert(life.result == life.expected(expected))
    }
  }

  private val sums = "SELECT 't' AS name, g, sum(v) AS s FROM t GROUP BY g"
  private val counts = "SELECT 'u' AS name, g, count(*) AS s FROM u GROUP BY g"

  private def both(first: String, second: String)(life: QueryLife): DataFrame =
    life
      .session()
      .sql(s"""SELECT * FROM to_changelog(TABLE($first))
         |UNION ALL SELECT * FROM to_changelog(TABLE($second))""".stripMargin)

  test("two queries in one statement") {
    check(s"$sums UNION ALL $counts", both(sums, counts))
    val other = sums.replace("'t'", "'again'").replace("sum(v)", "max(v)")
    check(s"$sums UNION ALL $other", both(sums, other))
  }

  test("two queries as data frames") {
    check(
      s"$sums UNION ALL $counts",
      life => {
        val session = life.session()
        def changes(sql: String) = session.sql(s"SELECT * FROM to_changelog(TABLE($sql))")
        changes(sums).union(changes(counts))
      })
  }

  test("where two operators would share a place, the query fails before it reads") {
    val life = new QueryLife(spark, t, u)
    batches(life).head()
    val changes = both(sums, sums.replace("GROUP BY", "WHERE v > 0 GROUP BY"))(life)
    changes.sparkSession.experimental.extraOptimizations = Seq(AllOperatorsFirst)
    val error = intercept[StreamingQueryException](life.run(changes))
    assert(
      error.getMessage.contains(
        "Operators changelogAggregate and changelogAggregate share the id 0"))
    assert(life.result.contents.isEmpty)
  }

  test("operators of Spark above to_changelog") {
    check(sums, _.changes(sums).dropDuplicates("name", "g", "s", "_change_type"))
  }

  test("a limit above to_changelog") {
    check(sums, _.changes(sums).limit(1000))
  }

  test("a streaming limit below from_changelog") {
    check(
      sums,
      life => {
        val session = life.session()
        session.sql(s"""SELECT * FROM to_changelog(TABLE(
             |  WITH t AS (SELECT * FROM from_changelog(TABLE(SELECT * FROM t_changes LIMIT 1000), '_op'))
             |  $sums))""".stripMargin)
      })
  }
}

/** Gives all aggregates one place, as a rule of ours would that had forgotten about the others. */
object AllOperatorsFirst extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.transform {
    case aggregate: ChangelogAggregate => aggregate.copy(operatorId = 0)
  }
}
