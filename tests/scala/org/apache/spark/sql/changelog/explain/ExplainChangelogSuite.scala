// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain

import org.json4s._
import org.json4s.jackson.JsonMethods
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Row
import org.apache.spark.sql.execution.SimpleMode

import org.apache.spark.sql.changelog.testing._

class ExplainChangelogSuite
    extends AnyFunSuite
    with ChangelogSession
    with ErrorChecks
    with GoldenFiles {

  private def views(): Unit = {
    new RawStream(spark, "words", "word STRING, n INT")
    new RawStream(spark, "raw", "op STRING, id INT, city STRING, fare INT, at TIMESTAMP")
    view("rides", "from_changelog(TABLE(raw), 'op', 'id')")
    view("bag", "from_changelog(TABLE(raw), 'op')")
    view("latest", "from_changelog(TABLE(raw), 'op', 'id', 'upsert', 'at')")
  }

  private def view(name: String, source: String): Unit =
    spark.sql(s"SELECT * FROM $source").createOrReplaceTempView(name)

  private def text(sql: String): String = spark.sql(sql).collect() match {
    case Array(Row(text: String)) => text
    case other => fail(s"not one text: ${other.mkString}")
  }

  private val cascade =
    "SELECT cnt, count(*) AS freq FROM (SELECT word, count(*) AS cnt FROM words GROUP BY word) GROUP BY cnt"

  /** A golden file and the query it explains. */
  private val queries = Seq(
    "cascade" -> cascade,
    "cascade-upsert" -> s"SELECT * FROM to_changelog(TABLE($cascade), 'upsert', 'cnt')",
    "append" -> "SELECT * FROM to_changelog(TABLE(SELECT word, n + 1 AS m FROM words WHERE n > 1), 'append')",
    "passed-on" -> "SELECT * FROM rides",
    "passed-on-upsert" -> "SELECT * FROM to_changelog(TABLE(rides), 'upsert')",
    "bag" -> "SELECT city, fare FROM bag WHERE fare > 10",
    "normalize" -> "SELECT id, city FROM latest",
    "normalize-upsert" -> "SELECT * FROM to_changelog(TABLE(SELECT id, fare FROM latest), 'upsert', 'id')",
    "filter-upsert" -> "SELECT * FROM to_changelog(TABLE(SELECT * FROM rides WHERE fare > 10), 'upsert', 'id')",
    "having" -> "SELECT city, sum(fare), min(fare) FROM rides GROUP BY city HAVING count(*) > 1",
    "temporal-filter" -> "SELECT city, count(*) FROM rides WHERE at > now() - INTERVAL 1 HOUR AND at <= now() AND fare > 1 GROUP BY city",
    "row-ttl" -> "SELECT /*+ ROW_TTL(rides, '3 days') */ city, count(*) FROM rides WHERE fare > 1 GROUP BY city",
    "global" -> "SELECT count(*), max(fare) FROM latest",
    "cube" -> "SELECT city, fare, count(*) FROM bag GROUP BY CUBE (city, fare)",
    "median" -> "SELECT city, median(fare), collect_list(id) FROM rides GROUP BY city",
    "sessions" -> "SELECT city, session_window, count(*) FROM bag GROUP BY city, session_window(at, '1 hour')",
    "windows" -> "SELECT *, rank() OVER (PARTITION BY city ORDER BY fare) AS r, sum(fare) OVER (PARTITION BY city ORDER BY at) AS s FROM rides",
    "union" -> "SELECT word FROM words UNION ALL SELECT city FROM rides",
    "explode" -> "SELECT id, x FROM rides LATERAL VIEW explode(array(city, 'a')) AS x",
    "join" -> "SELECT l.city, r.fare FROM rides l JOIN latest r ON l.fare = r.fare",
    "join-key" -> "SELECT * FROM to_changelog(TABLE(SELECT l.id, l.city, r.fare FROM rides l JOIN latest r ON l.id = r.id), 'upsert', 'id')",
    "join-new-rows" -> "SELECT * FROM to_changelog(TABLE(SELECT l.n, r.n AS m FROM words l JOIN words r ON l.word = r.word), 'append')",
    "join-outer" -> "SELECT rides.*, word FROM rides LEFT JOIN words ON city = word AND fare > n",
    "join-full" -> "SELECT l.id, r.city FROM rides l FULL JOIN bag r ON l.city <=> r.city",
    "join-without-key" -> "SELECT id, word FROM rides JOIN words ON fare < n",
    "join-static" -> "SELECT id, c FROM rides LEFT JOIN VALUES ('Oslo', 'NO') AS s(name, c) ON city = name",
    "join-temporal" -> "SELECT l.id, r.fare FROM rides l LEFT JOIN LATERAL (SELECT fare FROM bag b WHERE b.city = l.city AND b.at <= l.at ORDER BY b.at DESC LIMIT 1) r",
    "join-lookup" -> "SELECT w.n, r.fare FROM words w JOIN lookup(TABLE(latest)) r ON w.word = r.city WHERE w.n > 3",
    "join-aggregate" -> "SELECT id, freq FROM rides JOIN (SELECT word, count(*) AS freq FROM words GROUP BY word) ON city = word",
    "exists" -> "SELECT id FROM rides WHERE EXISTS (SELECT * FROM bag b WHERE rides.city = b.city) OR fare > 10",
    "in" -> "SELECT id FROM rides WHERE city IN (SELECT city FROM bag)",
    "in-join" -> "SELECT r.id, w.n FROM rides r JOIN words w ON r.city = w.word WHERE r.id IN (SELECT id FROM bag)",
    "in-aggregate" -> "SELECT * FROM (SELECT city, upper(city) AS name, count(*) AS c FROM rides GROUP BY city) WHERE city IN (SELECT DISTINCT city FROM bag)",
    "not-in" -> "SELECT id FROM rides WHERE city NOT IN (SELECT city FROM bag)",
    "scalar-subquery" -> "SELECT id, (SELECT max(fare) FROM bag) AS most FROM rides")

  queries.foreach { case (name, sql) =>
    test(s"the explanation of $name is as in its golden file") {
      views()
      checkGolden(
        s"tests/resources/explain/$name.txt",
        s"$sql\n\n" + text(s"EXPLAIN CHANGELOG $sql"))
    }
  }

  test("the picture in the documentation is the one of its query") {
    new RawStream(spark, "orders", "id INT, customer INT, amount INT")
    new RawStream(spark, "customer_changes", "op STRING, id INT, city STRING")
    view("customers", "from_changelog(TABLE(customer_changes), 'op', 'id')")
    val sql = "SELECT city, count(*) AS orders, sum(amount) AS total " +
      "FROM orders JOIN customers ON orders.customer = customers.id GROUP BY city"
    checkGolden("docs/explain.svg", text(s"EXPLAIN CHANGELOG FORMAT SVG $sql") + "\n")
  }

  test("golden files and explanations hold no expression ids and no paths") {
    views()
    queries.foreach { case (name, sql) =>
      val explained =
        text(s"EXPLAIN CHANGELOG $sql") + text(s"EXPLAIN CHANGELOG FORMAT JSON $sql")
      assert(!explained.contains("#") && !explained.contains("file:"), name)
      assert(
        explained == text(s"EXPLAIN CHANGELOG $sql") + text(
          s"EXPLAIN CHANGELOG FORMAT JSON $sql"))
    }
  }

  test("the statement is read in any case, over several lines, with parameters") {
    views()
    val expected = text(s"EXPLAIN CHANGELOG $cascade")
    assert(text(s"explain   changelog\n$cascade") == expected)
    assert(text(s"EXPLAIN CHANGELOG FORMAT TEXT $cascade") == expected)
    val parameters = Map("least" -> 1)
    val filtered = "EXPLAIN CHANGELOG SELECT * FROM words WHERE n > :least"
    assert(spark.sql(filtered, parameters).collect().head.getString(0).contains("Filter"))
  }

  test("what from_debezium is made of is shown if asked for") {
    new RawStream(spark, "envelopes", "value STRING")
    view("people", "from_debezium(TABLE(envelopes), 'id INT, name STRING', key => 'id')")
    def lines(how: String) =
      text(s"EXPLAIN CHANGELOG $how SELECT name FROM people").linesIterator.toSeq
    val folded = lines("")
    assert(folded.exists(_.contains("ChangelogNormalize from_debezium [id, name]")))
    assert(folded.last.contains("+- StreamingRelation"))
    assert(folded.forall(_.length < 200) && folded.size < 10)
    assert(
      lines("verbose").size > folded.size && lines("VERBOSE").exists(_.contains("+- Generate")))
  }

  test("JSON says the same as text, in the documented fields") {
    views()
    queries.foreach { case (name, sql) =>
      val root = JsonMethods.parse(text(s"EXPLAIN CHANGELOG FORMAT JSON $sql"))
      val lines = text(s"EXPLAIN CHANGELOG $sql").linesIterator
        .takeWhile(_.nonEmpty)
        .filterNot(_.trim.startsWith("·"))
      val nodes = flatten(root)
      assert(nodes.size == lines.size, name)
      nodes.foreach { node =>
        val fields = node.obj.map(_._1).toSet
        val always =
          Set("node", "detail", "mode", "requires", "upsertKeys", "state", "reasons", "children")
        assert(
          always.subsetOf(fields) && fields.subsetOf(
            always ++ Set("strategy", "operators", "warnings")),
          name)
        assert(
          Set("NONE", "ONLY_UPDATE_AFTER", "BEFORE_AND_AFTER")
            .contains((node \ "requires").values.toString))
        assert(
          (node \ "mode").values.asInstanceOf[List[String]].forall(Set("I", "UB", "UA", "D")))
        val state = (node \ "state").asInstanceOf[JArray].arr
        assert(
          state.forall(
            _.asInstanceOf[JObject].obj
              .map(_._1)
              .toSet == Set("table", "key", "value", "boundedBy")))
      }
    }
  }

  private def flatten(node: JValue): Seq[JObject] =
    node.asInstanceOf[JObject] +: (node \ "children").asInstanceOf[JArray].arr.flatMap(flatten)

  test("tables may stand for streams") {
    views()
    val streamed = text(
      "EXPLAIN CHANGELOG SELECT city, count(*) FROM from_changelog(TABLE(raw), 'op') GROUP BY city")
    spark
      .sql("SELECT '+I' AS op, 1 AS id, 'x' AS city, 2 AS fare, current_timestamp() AS at")
      .createOrReplaceTempView("raw")
    val table = text(
      "EXPLAIN CHANGELOG SELECT city, count(*) FROM from_changelog(TABLE(raw), 'op') GROUP BY city")
    assert(table.linesIterator.next() == streamed.linesIterator.next())
  }

  test("a query that can't be kept up to date is refused as at its start") {
    views()
    checkError("CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES", "kinds" -> "update and delete") {
      text(s"EXPLAIN CHANGELOG SELECT * FROM to_changelog(TABLE($cascade), 'append')")
    }
    assert(spark.sql("EXPLAIN SELECT 1").collect().length == 1)
    checkError("CHANGELOG_SYNTAX_ERROR", "found" -> "the end of the statement") {
      spark.sql("EXPLAIN CHANGELOG")
    }
  }

  test("Spark's own EXPLAIN shows the changes too") {
    views()
    val providers = "spark.sql.extendedExplainProviders"
    spark.conf.set(providers, classOf[ChangelogExplainGenerator].getName)
    try {
      // Spark explains a stream as a DataFrame only, not as SQL text
      val changes = spark.sql(s"SELECT * FROM to_changelog(TABLE($cascade))").select("*")
      val explained = changes.queryExecution.explainString(SimpleMode)
      assert(explained.contains("== Extended Information (Changelog) =="))
      assert(explained.contains(text(s"EXPLAIN CHANGELOG $cascade").linesIterator.next()))
      val stock = spark.sql("EXPLAIN SELECT 1").collect().head.getString(0)
      assert(!stock.contains("ToChangelog"))
      assert(stock.contains("none: the query has no to_changelog"))
    } finally spark.conf.unset(providers)
  }
}
