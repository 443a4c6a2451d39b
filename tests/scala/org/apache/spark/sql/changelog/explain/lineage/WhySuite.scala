// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain.lineage

import org.apache.spark.SparkArithmeticException
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.{AnalysisException, DataFrame => AnyDataFrame}

import org.apache.spark.sql.changelog.testing._
import org.apache.spark.sql.changelog.views.ViewTest

/** The rows that stand behind rows of a result. */
class WhySuite extends ViewTest {

  override def beforeAll(): Unit = {
    super.beforeAll()
    spark
      .sql(
        """SELECT * FROM VALUES (1, 'a', 5), (2, 'b', 7), (3, 'a', 2), (4, NULL, 1), (5, 'c', 7)
      AS t(id, city, fare)""")
      .createOrReplaceTempView("rides")
    spark
      .sql("SELECT * FROM VALUES ('a', 'NO'), ('b', 'IT'), ('d', 'DE') AS t(city, country)")
      .createOrReplaceTempView("cities")
  }

  private case class Step(level: Int, node: String, count: Long, rows: Seq[String], note: String)

  /** The nodes from the result down; a row is its values in the order of their names. */
  private def steps(why: AnyDataFrame): Seq[Step] = {
    val rows = why.collect().toSeq
    rows.map(row => (row.getInt(0), row.getString(1))).distinct.map { case (level, node) =>
      val own = rows.filter(row => row.getInt(0) == level && row.getString(1) == node)
      val shown = own.filterNot(_.isNullAt(3)).map(_.getMap[String, String](3).toSeq.sorted)
      Step(
        level,
        node.takeWhile(_ != ' '),
        own.head.getLong(2),
        shown.map(_.map(_._2).mkString(" ")).sorted,
        Option(own.head.getString(4)).getOrElse(""))
    }
  }

  private def why(query: String): Seq[Step] = steps(spark.sql(s"WHY $query"))

  /** The rows of the table of this name that stand behind. */
  private def behind(query: String, table: String): Seq[String] =
    why(query).find(_.node == table).getOrElse(fail(s"$table is not among ${why(query)}")).rows

  test("a group is made of all its rows, whether its key is in the result or not") {
    val found =
      why("SELECT * FROM (SELECT city, sum(fare) AS s FROM rides GROUP BY city) WHERE city = 'a'")
    assert(
      found.map(step => (step.level, step.node, step.rows)) == Seq(
        (0, "Result", Seq("a 7")),
        (1, "Filter", Seq("a 7")),
        (2, "Aggregate", Seq("a 7")),
        (3, "rides", Seq("a 2 3", "a 5 1"))))
    assert(found(2).note == "all rows of its group")
    assert(
      behind(
        "SELECT * FROM (SELECT sum(fare) AS s FROM rides GROUP BY city) WHERE s = 7",
        "rides") ==
        Seq("a 2 3", "a 5 1", "b 7 2", "c 7 5"))
    // NULL is a group
    assert(
      behind(
        "SELECT * FROM (SELECT city, count(*) FROM rides GROUP BY city) WHERE city IS NULL",
        "rides") ==
        Seq("null 1 4"))
    assert(behind("SELECT max(fare) FROM rides", "rides").size == 5)
    assert(
      behind(
        "SELECT city, count(*) FROM rides GROUP BY city HAVING count(*) > 1",
        "rides").size == 2)
  }

  test("sums of DOUBLEs, which depend on the order of rows, tell no rows apart") {
    val averages = "SELECT city, avg(CAST(fare AS DOUBLE)) AS a FROM rides GROUP BY city"
    assert(
      behind(s"SELECT * FROM ($averages) WHERE city = 'a'", "rides") == Seq("a 2 3", "a 5 1"))
    val alone = averages.replace("city, avg", "avg")
    val found = why(s"SELECT * FROM ($alone) WHERE a = 1")
    assert(found.find(_.node == "rides").get.count == 5)
    assert(found.exists(_.note.contains("compared without a")))
  }

  test("expressions are followed, and rows that are equal stand together") {
    assert(
      behind(
        "SELECT * FROM (SELECT upper(city) || fare AS x FROM rides) WHERE x = 'A5'",
        "rides") == Seq("a 5 1"))
    assert(
      behind("SELECT * FROM (SELECT DISTINCT fare FROM rides) WHERE fare = 7", "rides") == Seq(
        "b 7 2",
        "c 7 5"))
    val unique =
      steps(spark.table("rides").dropDuplicates("fare").where("fare = 7").transform { frame =>
        frame.createOrReplaceTempView("unique")
        spark.sql("WHY SELECT * FROM unique")
      })
    assert(unique.last.rows == Seq("b 7 2", "c 7 5"))
  }

  test("a row of a join has those of both sides, an outer one those that it has found") {
    def sides(join: String, condition: String) = {
      val query =
        s"SELECT * FROM (SELECT id, r.city, c.city AS other, country FROM rides r $join cities c ON r.city = c.city) WHERE $condition"
      (behind(query, "rides"), behind(query, "cities"))
    }
    assert(sides("JOIN", "id = 1") == (Seq("a 5 1"), Seq("a NO")))
    assert(sides("LEFT JOIN", "id = 1") == (Seq("a 5 1"), Seq("a NO")))
    assert(sides("LEFT JOIN", "id = 4") == (Seq("null 1 4"), Nil))
    assert(sides("RIGHT JOIN", "country = 'DE'") == (Nil, Seq("d DE")))
    assert(sides("FULL JOIN", "id = 5") == (Seq("c 7 5"), Nil))
    assert(sides("FULL JOIN", "country = 'DE'") == (Nil, Seq("d DE")))
    assert(sides("FULL JOIN", "country = 'NO'") == (Seq("a 2 3", "a 5 1"), Seq("a NO")))
    assert(
      behind(
        "SELECT * FROM rides LEFT SEMI JOIN cities ON rides.city = cities.city WHERE id = 2",
        "cities") ==
        Seq("b IT"))
    val anti =
      why("SELECT * FROM rides LEFT ANTI JOIN cities ON rides.city = cities.city WHERE id = 5")
    assert(anti.exists(_.note == "no row of the right side meets the condition"))
    assert(anti.last.node == "cities" && anti.last.count == 0)
    val all = "SELECT * FROM (SELECT id, country FROM rides CROSS JOIN cities) WHERE id = 1"
    assert(behind(all, "rides") == Seq("a 5 1") && behind(all, "cities").size == 3)
  }

  test("windows, ranks and limits") {
    val ranked =
      "SELECT * FROM (SELECT id, city, rank() OVER (PARTITION BY city ORDER BY fare DESC) AS r FROM rides) WHERE id = 1 AND r = 1"
    assert(behind(ranked, "rides") == Seq("a 2 3", "a 5 1"))
    assert(why(ranked).exists(_.note == "all rows of its partition"))
    assert(behind("SELECT id, sum(fare) OVER () AS s FROM rides", "rides").size == 5)
    val best = why("SELECT * FROM rides ORDER BY fare DESC, id LIMIT 1")
    assert(best.last.rows == Seq("b 7 2"))
    assert(best.exists(_.note.startsWith("all input rows decide")))
  }

  test("sets, grouping sets and generators") {
    val union =
      "SELECT * FROM (SELECT city FROM rides UNION ALL SELECT city FROM cities) WHERE city = 'a'"
    assert(
      (behind(union, "rides"), behind(union, "cities")) == (Seq("a 2 3", "a 5 1"), Seq("a NO")))
    val both = "SELECT city FROM rides INTERSECT SELECT city FROM cities WHERE city = 'b'"
    assert((behind(both, "rides"), behind(both, "cities")) == (Seq("b 7 2"), Seq("b IT")))
    val less = "SELECT city FROM rides EXCEPT SELECT city FROM cities"
    assert((behind(less, "rides"), behind(less, "cities")) == (Seq("c 7 5", "null 1 4"), Nil))
    val cube =
      "SELECT city, fare, count(*) AS n FROM rides GROUP BY GROUPING SETS ((city), (fare))"
    assert(behind(s"SELECT * FROM ($cube) WHERE city = 'a'", "rides") == Seq("a 2 3", "a 5 1"))
    assert(behind(s"SELECT * FROM ($cube) WHERE fare = 7", "rides") == Seq("b 7 2", "c 7 5"))
    val exploded =
      "SELECT * FROM (SELECT id, x FROM rides LATERAL VIEW explode(array(city, string(fare))) AS x) WHERE x = '2'"
    assert(behind(exploded, "rides") == Seq("a 2 3"))
    assert(
      behind(
        "WITH t AS (SELECT fare FROM rides) SELECT count(*) FROM t WHERE fare = 7",
        "rides").size == 2)
  }

  test("what can't be traced is named, and so are subqueries") {
    val random = why("SELECT * FROM (SELECT id, rand() AS r FROM rides) WHERE id = 1")
    assert(random.last.node == "Project" && random.last.note.startsWith("not traced further"))
    val maps = why("SELECT * FROM (SELECT id, map('a', city) AS m FROM rides) WHERE id = 1")
    assert(maps.exists(_.note == "rows are compared without m, which have no equality"))
    assert(maps.last.rows == Seq("a 5 1"))
    val lateral = why("SELECT id, x FROM rides, LATERAL (SELECT fare + 1 AS x)")
    assert(lateral.exists(step => step.note.startsWith("not traced further")), lateral)
    val filtered = why("SELECT id FROM rides WHERE city IN (SELECT city FROM cities)")
    assert(filtered.exists(_.note == "the rows read by the subquery are not traced"))
    assert(filtered.last.rows == Seq("a 2 3", "a 5 1", "b 7 2"))
    val many = spark.sql("WHY SELECT count(*) FROM range(1000)").collect()
    assert(many.last.getLong(2) == 1000 && many.count(_.getLong(2) == 1000) == 100)
    assert(many.last.getString(4) == "100 of 1000 rows are shown")
  }

  test("changes are told of a table that is read by from_changelog") {
    spark
      .sql(
        "SELECT * FROM VALUES ('+I', 1, 'a'), ('-U', 1, 'a'), ('+U', 1, 'b'), ('+I', 2, 'b') AS t(op, id, city)")
      .createOrReplaceTempView("raw")
    val query =
      "SELECT * FROM (SELECT city, count(*) AS n FROM from_changelog(TABLE(raw), 'op', 'id') GROUP BY city) WHERE city = 'b'"
    val found = why(query)
    assert(
      found.takeRight(2).map(step => step.node -> step.rows) ==
        Seq("raw" -> Seq("b 1", "b 2"), "Changes" -> Seq("a 1 +I", "a 1 -U", "b 1 +U", "b 2 +I")))
  }

  test("a view is asked as of its last batch, and what has come since is not behind it") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20", "+I 3 Ada 1")
    create(totals)
    deliver("-D 3 Ada 1")
    run("REFRESH MATERIALIZED VIEW v")
    deliver("+I 4 Ada 5")
    val found = steps(spark.sql("WHY MATERIALIZED VIEW v WHERE customer = 'Ada'"))
    assert(steps(spark.sql("WHY MATERIALIZED VIEW v WHERE v.customer = 'Ada' -- her")) == found)
    intercept[ParseException](run("WHY MATERIALIZED VIEW v WHERE customer = 'Ada' LIMIT 1"))
    assert(found.head.rows == Seq("Ada 1 30") && found.head.note == "as of batch 1")
    assert(found.find(_.node == "orders").exists(_.rows == Seq("30 Ada 1")), found)
    assert(found.last.node == "Changes" && found.last.rows == Seq("30 Ada 1 +I"), found)
    assert(steps(spark.sql("WHY MATERIALIZED VIEW v")).head.count == 2)
    val unknown =
      intercept[AnalysisException](run("WHY MATERIALIZED VIEW v WHERE countri = 'NO'"))
    assert(unknown.getCondition == "UNRESOLVED_COLUMN.WITH_SUGGESTION")
    assert(unknown.getMessage.linesIterator.size < 10, unknown.getMessage)
    // so is what is found only when the view is read
    val failing = intercept[SparkArithmeticException](
      run("WHY MATERIALIZED VIEW v WHERE 1 / (length(customer) - 3) = 1"))
    assert(failing.getCondition == "DIVIDE_BY_ZERO")
    // names of who asks are those of the session
    spark.sql("CREATE TEMPORARY VIEW suspects AS SELECT 'Ben' AS name")
    val some = "WHY MATERIALIZED VIEW v WHERE customer IN (SELECT name FROM suspects)"
    try assert(steps(spark.sql(some)).head.rows == Seq("Ben 1 20"))
    finally spark.catalog.dropTempView("suspects")
  }

  test("a view that is computed anew is asked as its tables are now") {
    create("SELECT city, count(*) AS n FROM VALUES ('a'), ('a'), ('b') AS t(city) GROUP BY city")
    val found = steps(spark.sql("WHY MATERIALIZED VIEW v WHERE city = 'a'"))
    assert(found.head.note == "as its tables are now" && found.last.count == 2)
  }

  test("streams, and rows that leave for when they came, can't be asked for") {
    new RawStream(spark, "stream", "id INT")
    checkError("CHANGELOG_WHY_READS_STREAM")(run("WHY SELECT * FROM stream"))
    create(
      s"SELECT /*+ ROW_TTL(o, '3 days') */ customer, count(*) AS n FROM $orders AS o GROUP BY customer")
    checkError("CHANGELOG_WHY_ROWS_FORGOTTEN", "view" -> "`spark_catalog`.`default`.`v`")(
      run("WHY MATERIALIZED VIEW v"))
    intercept[AnalysisException](run("WHY MATERIALIZED VIEW v WHERE nothing = 1"))
  }
}
