// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.api.python.PythonEvalType
import org.apache.spark.sql.catalyst.expressions.PythonUDF
import org.apache.spark.sql.catalyst.plans.logical.{FlatMapCoGroupsInPandas, Project}
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.types.StructType

class CheckExecutableSuite extends InferenceTest {

  private def declareTables(): Unit = {
    changelog("t", "id INT, g STRING, v INT", All, key = Seq("id"))
    appends("e", "g STRING, v INT, ts TIMESTAMP", watermark = Some("ts"))
    spark.range(3).createOrReplaceTempView("static")
  }

  private def accepts(sql: String): Unit = {
    declareTables()
    CheckExecutable(infer(sql))
  }

  private def refuses(sql: String, parameters: (String, String)*): Unit = {
    declareTables()
    val annotated = infer(sql)
    checkRefused("CHANGELOG_NOT_EXECUTABLE_YET", parameters.toMap)(CheckExecutable(annotated))
  }

  test("what treats each row by itself is accepted") {
    accepts("SELECT upper(g) AS g FROM t WHERE v > 3 UNION ALL SELECT g FROM e")
    accepts("SELECT id, x FROM t LATERAL VIEW explode(split(g, ',')) AS x")
    accepts("SELECT /*+ REPARTITION(2) */ * FROM t ORDER BY v")
  }

  test("the first aggregate functions are accepted, with filters and grouping sets") {
    accepts(
      """SELECT g, id % 3, count(*), count(v), sum(v), try_sum(v), avg(v), try_avg(v), min(v),
        |  max(g) FILTER (WHERE v > 3)
        |FROM t GROUP BY g, id % 3 WITH CUBE HAVING count(*) > 1""".stripMargin)
    accepts("SELECT count(*), c FROM (SELECT g, count(*) AS c FROM e GROUP BY g) GROUP BY c")
    accepts("SELECT DISTINCT g FROM t")
  }

  test("functions with buffers that merge are accepted, over rows that go what can go back") {
    accepts("""SELECT g, skewness(v), corr(v, id), regr_slope(v, id), bit_xor(v), bool_or(v > 3),
        |  count_if(v > 3)
        |FROM t GROUP BY g""".stripMargin)
    accepts("SELECT g, first(v), max_by(v, ts), var_pop(v) FROM e GROUP BY g")
  }

  test("an operator that isn't there is refused with its place in the query") {
    refuses(
      """SELECT g, max(v) FROM (
        |  SELECT g, v FROM e UNION ALL
        |  SELECT e.g, x.v FROM e FULL JOIN (
        |    SELECT map(g, v) AS m, median(v) AS v, max(g) AS g FROM t GROUP BY 1) x ON e.g = x.g)
        |GROUP BY g""".stripMargin,
      "node" -> "ChangelogAggregate [_groupingmapsort]",
      "place" -> ("right input of ChangelogJoin FullOuter, input of Project, right input of Union, " +
        "input of ChangelogAggregate [g], input of ToChangelog retract"))
  }

  test("ranks and limits of any kind are accepted") {
    accepts(
      "SELECT * FROM (SELECT *, rank() OVER (PARTITION BY g ORDER BY v) AS r FROM t) WHERE r < 3")
    accepts("SELECT * FROM t LIMIT 3")
    accepts("SELECT * FROM e ORDER BY v DESC LIMIT 3")
  }

  test("what can be computed anew for each group is accepted, whatever it computes") {
    accepts("SELECT g, collect_list(v) AS vs, count(DISTINCT v), median(v) FROM t GROUP BY g")
    accepts("SELECT collect_list(v) AS vs, listagg(g) FROM t")
    accepts("SELECT g, session_window, count(*) FROM e GROUP BY g, session_window(ts, '1 hour')")
    accepts("SELECT sum(v) OVER (PARTITION BY g ORDER BY id) AS s FROM t")
    accepts("SELECT ntile(4) OVER (ORDER BY v) AS quarter FROM e")
  }

  test("groups that can't be sorted are refused where they are computed anew") {
    accepts("SELECT map(g, v) AS m, count(*) FROM t GROUP BY 1")
    refuses(
      "SELECT map(g, v) AS m, median(v) FROM t GROUP BY 1",
      "what" -> ("the node groups by _groupingmapsort, and values of type MAP<STRING, INT> have " +
        "no order"))
  }

  test("functions over groups are accepted, and what is done with their results") {
    import testImplicits._
    declareTables()
    val groups = spark.table("t").as[(Int, String, Int)].groupByKey(_._2)
    val mapped = groups.mapGroups((g, rows) => rows.map(_._3).sum).filter(_ > 3).map(_ + 1)
    CheckExecutable(inferPlan(mapped.queryExecution.analyzed))
    CheckExecutable(
      inferPlan(mapped.groupByKey(_ % 2).mapGroups((k, _) => k).queryExecution.analyzed))
  }

  test("functions over groups are refused where two inputs are grouped by different types") {
    changelog("t", "id INT, g STRING", All)
    changelog("wide", "id BIGINT, v INT", All)
    def grouped(name: String) = {
      val table = spark.table(name).queryExecution.analyzed
      Project(table.output.head +: table.output, table)
    }
    val result = StructType.fromDDL("n INT")
    val function =
      PythonUDF("f", null, result, Nil, PythonEvalType.SQL_COGROUPED_MAP_PANDAS_UDF, true)
    val map =
      FlatMapCoGroupsInPandas(1, 1, function, toAttributes(result), grouped("t"), grouped("wide"))
    checkRefused(
      "CHANGELOG_NOT_EXECUTABLE_YET",
      Map(
        "what" -> ("the groups of the inputs differ: one by id, of type INT, the other by id, " +
          "of type BIGINT")))(CheckExecutable(inferPlan(map)))
  }

  test("what is computed anew when the watermark has closed it is accepted") {
    declareTables()
    Seq("session_window(ts, '1 hour')", "window(ts, '1 hour')").foreach { group =>
      CheckExecutable(infer(s"SELECT g, count(*), median(v) FROM e GROUP BY g, $group", Append))
    }
  }

  test("joins of any type are accepted, with something static too") {
    accepts("SELECT t.v FROM t FULL JOIN e ON t.g = e.g AND t.v < e.v")
    accepts("SELECT v FROM t WHERE g NOT IN (SELECT g FROM e)")
    accepts("SELECT v FROM t LEFT JOIN static s ON t.id = s.id")
  }

  test("static rows beside changing ones are accepted") {
    accepts("SELECT v FROM t UNION ALL SELECT id FROM static")
    accepts("SELECT v FROM t FULL JOIN static s ON t.id = s.id")
    accepts("SELECT (SELECT max(v) FROM t) AS most")
  }
}
