// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.keys

import org.apache.spark.sql.functions.expr

import org.apache.spark.sql.changelog.inference.InferenceTest

class UpsertKeysSuite extends InferenceTest {

  private def declareTables(): Unit = {
    changelog("users", "uid INT, city STRING", All, key = Seq("uid"))
    changelog("orders", "oid INT, uid INT, amount INT", All, key = Seq("oid"))
    changelog("lines", "oid INT, nr INT, item STRING", All, key = Seq("oid", "nr"))
    appends("words", "word STRING, n INT")
  }

  private def keysOf(sql: String): String = {
    declareTables()
    keys(infer(sql))
  }

  test("a source has the key that was declared, or none") {
    assert(keysOf("SELECT * FROM lines") == "(oid, nr)")
    assert(keysOf("SELECT * FROM words") == "")
  }

  test("a projection keeps a key under each of its names, and loses it with one of its columns") {
    assert(keysOf("SELECT nr AS n, oid AS a, oid AS b FROM lines") == "(n, a) or (n, b)")
    assert(keysOf("SELECT nr, item FROM lines") == "")
    assert(keysOf("SELECT oid + 1 AS oid, nr FROM lines") == "")
  }

  test("a cast that keeps values apart keeps the key, another does not") {
    assert(keysOf("SELECT CAST(uid AS BIGINT) AS uid FROM users") == "(uid)")
    assert(keysOf("SELECT CAST(uid AS STRING) AS uid FROM users") == "(uid)")
    assert(keysOf("SELECT CAST(uid AS DECIMAL(12, 2)) AS uid FROM users") == "(uid)")
    assert(keysOf("SELECT CAST(uid AS SMALLINT) AS uid FROM users") == "")
    assert(keysOf("SELECT CAST(uid AS FLOAT) AS uid FROM users") == "")
  }

  test("filters, sorts and exchanges keep all keys") {
    assert(keysOf("SELECT /*+ REPARTITION(item) */ * FROM lines WHERE nr > 3") == "(oid, nr)")
    assert(keysOf("SELECT * FROM lines ORDER BY item") == "(oid, nr)")
  }

  test("an aggregate is identified by its groups, as far as they are selected") {
    assert(keysOf("SELECT uid, count(*) FROM orders GROUP BY uid") == "(uid)")
    assert(
      keysOf("SELECT uid % 3 AS r, amount AS a, count(*) FROM orders GROUP BY 1, 2") == "(r, a)")
    assert(keysOf("SELECT uid AS a, uid AS b, count(*) FROM orders GROUP BY uid") == "(a) or (b)")
    assert(keysOf("SELECT uid, count(*) FROM orders GROUP BY uid, amount") == "")
    assert(keysOf("SELECT DISTINCT uid, amount FROM orders") == "(uid, amount)")
  }

  test("an aggregate without groups is one row") {
    assert(keysOf("SELECT count(*) FROM orders") == "()")
  }

  test("grouping sets are told apart by the grouping id, if it is selected") {
    val sets = "FROM orders GROUP BY GROUPING SETS ((uid), (amount))"
    assert(
      keysOf(s"SELECT uid, amount, grouping_id() AS g, count(*) $sets") == "(uid, amount, g)")
    assert(keysOf(s"SELECT uid, amount, count(*) $sets") == "")
  }

  test("an unpivoted row is identified by its key and the column's name") {
    val sql =
      "SELECT * FROM (SELECT oid, uid, amount FROM orders) UNPIVOT (v FOR c IN (uid, amount))"
    assert(keysOf(sql) == "(oid, c)")
  }

  test("a generator and a union leave no key") {
    assert(
      keysOf("SELECT oid, x FROM orders LATERAL VIEW explode(array(uid, amount)) AS x") == "")
    assert(keysOf("SELECT uid FROM users UNION ALL SELECT uid FROM users") == "")
  }

  test("a window function keeps the keys of its input") {
    assert(keysOf("SELECT oid, sum(amount) OVER (PARTITION BY uid) FROM orders") == "(oid)")
  }

  test(
    "a join with at most one partner keeps the keys of the other side, even under its exchange") {
    val on = "ON orders.uid = users.uid"
    assert(keysOf(s"SELECT oid, city FROM orders JOIN users $on") == "(oid)")
    assert(keysOf(s"SELECT oid, city FROM orders LEFT JOIN users $on") == "(oid)")
    assert(keysOf(s"SELECT oid, city FROM users RIGHT JOIN orders $on") == "(oid)")
  }

  test("a join with many partners is identified by both keys") {
    val join = "lines l JOIN lines r ON l.item = r.item"
    assert(
      keysOf(s"SELECT l.oid AS a, l.nr AS b, r.oid AS c, r.nr AS d FROM $join") == "(a, b, c, d)")
    assert(keysOf(s"SELECT l.oid AS a, l.nr AS b, r.oid AS c FROM $join") == "")
  }

  test("an inner join knows its key by the name of either side") {
    assert(
      keysOf("SELECT r.oid, l.nr, amount FROM lines l JOIN orders r ON l.oid = r.oid") ==
        "(oid, nr)")
  }

  test("a join with one row keeps the keys of the other side") {
    assert(
      keysOf("SELECT oid, m FROM orders CROSS JOIN (SELECT max(n) AS m FROM words)") == "(oid)")
  }

  test("a full join is identified by both keys, which are never NULL both") {
    val sql = "SELECT l.uid AS a, r.uid AS b FROM users l FULL JOIN users r ON l.uid = r.uid"
    assert(keysOf(sql) == "(a, b)")
  }

  test("a full join by USING is identified by the columns of both sides") {
    val pages = "(SELECT oid, nr, count(*) AS c FROM lines GROUP BY oid, nr)"
    assert(keysOf(s"SELECT * FROM lines l FULL JOIN $pages p USING (oid, nr)") == "(oid, nr)")
    assert(
      keysOf(s"SELECT * FROM lines FULL JOIN $pages p USING (oid, nr) WHERE nr > 1") ==
        "(oid, nr)")
    assert(keysOf("SELECT * FROM users FULL JOIN orders USING (uid)") == "")
    // what is in the condition too may keep rows apart that agree on the column
    assert(
      keysOf(
        "SELECT coalesce(a.uid, b.uid) AS uid FROM users a FULL JOIN users b ON a.uid = b.uid AND a.city < b.city") ==
        "")
    val three = "users FULL JOIN users AS b USING (uid) FULL JOIN users AS c USING (uid)"
    assert(keysOf(s"SELECT uid, c.city FROM $three") == "(uid)")
    assert(
      keysOf("SELECT coalesce(l.uid, CAST(r.n AS INT)) AS uid FROM users l FULL JOIN " +
        "(SELECT n, count(*) AS c FROM words GROUP BY n) r ON l.uid = r.n") == "(uid)")
  }

  test("a full join by USING of groups that may be NULL has no key") {
    val groups = "(SELECT word, n, count(*) AS c FROM words GROUP BY word, n)"
    assert(keysOf(s"SELECT * FROM $groups l FULL JOIN $groups r USING (word, n)") == "")
  }

  test("a full join of groups, whose keys may be NULL, has no key") {
    val groups = "(SELECT word, count(*) AS c FROM words GROUP BY word)"
    assert(
      keysOf(
        s"SELECT l.word AS a, r.word AS b FROM $groups l FULL JOIN $groups r ON l.c = r.c") ==
        "")
  }

  test("semi, anti and existence joins keep the keys of the left side") {
    assert(keysOf("SELECT * FROM orders WHERE uid IN (SELECT uid FROM users)") == "(oid)")
    assert(keysOf("SELECT * FROM orders WHERE uid NOT IN (SELECT uid FROM users)") == "(oid)")
    assert(
      keysOf(
        "SELECT * FROM orders WHERE uid IN (SELECT uid FROM users) OR amount > 3") == "(oid)")
  }

  test("the first row of each partition is identified by the partition") {
    def ranked(what: String, condition: String): String =
      s"""SELECT $what FROM (
         |  SELECT *, row_number() OVER (PARTITION BY uid ORDER BY amount) AS rn FROM orders)
         |WHERE $condition""".stripMargin
    assert(keysOf(ranked("uid, amount", "rn = 1")) == "(uid)")
    assert(keysOf(ranked("oid, uid, amount", "rn = 1")) == "(oid) or (uid)")
    assert(keysOf(ranked("uid, amount", "rn <= 2")) == "")
    assert(keysOf(ranked("uid, rn, amount", "rn <= 2")) == "(uid, rn)")
  }

  test("ranks with ties do not tell rows apart") {
    val sql =
      """SELECT uid, r FROM (
        |  SELECT *, rank() OVER (PARTITION BY uid ORDER BY amount) AS r FROM orders)
        |WHERE r <= 2""".stripMargin
    assert(keysOf(sql) == "")
  }

  test("a limit of one row is one row, a larger one keeps the keys of its input") {
    assert(keysOf("SELECT * FROM orders ORDER BY amount LIMIT 1") == "()")
    assert(keysOf("SELECT * FROM orders ORDER BY amount LIMIT 2") == "(oid)")
  }

  test("a sample of a table without replacement keeps keys, one with replacement does not") {
    val rows = spark.range(3).toDF()
    assert(keys(inferPlan(rows.sample(0.5).queryExecution.analyzed)) == "(id)")
    assert(
      keys(inferPlan(rows.sample(withReplacement = true, 0.5).queryExecution.analyzed)) == "")
  }

  test("static tables have keys where Spark knows them") {
    declareTables()
    val joined = spark.table("words").join(spark.range(3), expr("n = id"))
    val range = find(inferPlan(joined.queryExecution.analyzed), "Range")
    assert(keys(range) == "(id)")
  }
}
