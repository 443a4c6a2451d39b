// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.lifetime

/**
 * A query over the tables of [[ArrivingTable]] that keeps state of one kind.
 *
 * @param mode
 *   what `to_changelog` is asked for
 * @param keyWidth
 *   in mode `upsert`, how many of the first columns are its key
 * @param passed
 *   in mode `append`, the time that the watermark must have passed before a row is given
 * @param ttl
 *   for how long, in ms, rows of `t` are there that nothing changes
 */
final case class OperatorQuery(
    name: String,
    sql: String,
    mode: String = "retract",
    keyWidth: Int = 0,
    passed: Option[String] = None,
    ttl: Option[Long] = None) {

  /** The changes of the query, over streams. */
  def changes: String = s"SELECT * FROM to_changelog(TABLE($sql), mode => '$mode'$key)"

  private def key: String =
    if (keyWidth == 0) ""
    else {
      val names = sql.stripPrefix("SELECT ").split(", ").take(keyWidth)
      s", key => array(${names.mkString("'", "', '", "'")})"
    }
}

/** Queries that together hold every stateful operator in each of its forms. */
object OperatorQuery {

  val all: Seq[OperatorQuery] = Seq(
    OperatorQuery(
      "aggregate",
      "SELECT g, count(*) AS n, sum(v) AS s, avg(x) AS a, sum(x) AS sx, bit_xor(v) AS b, round(stddev(v), 6) AS d FROM t GROUP BY g"),
    OperatorQuery(
      "aggregate by key",
      "SELECT g, count(*) AS n, sum(v) AS s FROM t GROUP BY g",
      mode = "upsert",
      keyWidth = 1),
    OperatorQuery(
      "extremes",
      "SELECT g, min(v) AS lo, max(x) AS hi, max_by(id, v * 1000 + id) AS best FROM t GROUP BY g"),
    OperatorQuery(
      "buffers of rows that only come",
      "SELECT g, count(*) AS n, sum(x) AS s, max(v) AS hi FROM events_t GROUP BY g"),
    OperatorQuery(
      "distinct",
      "SELECT g, count(DISTINCT v) AS d, sum(DISTINCT id % 7) AS e, count(*) AS n FROM t GROUP BY g"),
    OperatorQuery(
      "distinct of rows that only come",
      "SELECT g, count(DISTINCT v) FILTER (WHERE x > 30) AS d, count(DISTINCT v) AS e FROM events_t GROUP BY g"),
    OperatorQuery(
      "cascade",
      "SELECT n, count(*) AS c, sum(s) AS t FROM (SELECT g, v % 5 AS m, count(*) AS n, sum(x) AS s FROM t GROUP BY g, v % 5) GROUP BY n"),
    OperatorQuery("inner join", "SELECT a.id, a.v, b.v AS w FROM t a JOIN u b ON a.id = b.id"),
    OperatorQuery(
      "left join",
      "SELECT a.id, a.v, b.id AS other, b.v AS w FROM t a LEFT JOIN u b ON a.g = b.g AND a.v < b.v - 40"),
    OperatorQuery(
      "full join",
      "SELECT a.id, a.g, b.id AS other, b.g AS h FROM t a FULL JOIN u b ON a.id = b.id + 5"),
    OperatorQuery("semi join", "SELECT id, v FROM t WHERE g IN (SELECT g FROM u WHERE v > 70)"),
    OperatorQuery(
      "anti join",
      "SELECT id, v FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.g = t.g AND u.v > t.v)"),
    OperatorQuery(
      "existence join",
      "SELECT id, v > 90 OR g IN (SELECT g FROM u WHERE v > 60) AS e FROM t"),
    OperatorQuery("scalar subquery", "SELECT id, v FROM t WHERE v > (SELECT avg(v) FROM u)"),
    OperatorQuery(
      "join of rows that only come",
      "SELECT a.id, a.v, b.v AS w, a.at FROM events_t a JOIN events_u b ON a.id = b.id AND a.v = b.v"),
    OperatorQuery(
      "join of three",
      "SELECT a.id, a.v, b.x, c.g FROM t a JOIN u b ON a.id = b.id JOIN newest_u c ON c.id = a.id"),
    OperatorQuery(
      "temporal join",
      "SELECT o.id, o.v, r.v AS w FROM t o LEFT JOIN LATERAL (SELECT * FROM events_u e WHERE e.g = o.g AND e.at <= o.at ORDER BY e.at DESC LIMIT 1) r"),
    OperatorQuery(
      "rank, all rows",
      "SELECT * FROM (SELECT g, id, v, row_number() OVER (PARTITION BY g ORDER BY v DESC, id) AS r FROM t) WHERE r <= 3"),
    OperatorQuery(
      "rank, rows that only come",
      "SELECT g, v, at FROM (SELECT *, rank() OVER (PARTITION BY g ORDER BY v DESC, at) AS r FROM events_t) WHERE r <= 3"),
    OperatorQuery(
      "rank, rows that get better",
      "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY n DESC, m) AS r FROM (SELECT g, v % 9 AS m, count(*) AS n FROM events_t GROUP BY g, v % 9)) WHERE r <= 2"),
    OperatorQuery(
      "rank, the earliest row",
      "SELECT g, v, at FROM (SELECT *, row_number() OVER (PARTITION BY g, v % 10 ORDER BY at) AS r FROM timed_t) WHERE r = 1",
      mode = "append",
      passed = Some("at")),
    OperatorQuery("first rows", "SELECT count(*) AS n FROM (SELECT id FROM events_t LIMIT 30)"),
    OperatorQuery("order and limit", "SELECT id, v FROM t ORDER BY v DESC, id LIMIT 10 OFFSET 2"),
    OperatorQuery("normalize", "SELECT id, g, v, at FROM newest_t"),
    OperatorQuery(
      "replayed aggregate",
      "SELECT g, median(v) AS m, to_json(sort_array(collect_list(v))) AS l FROM t GROUP BY g"),
    OperatorQuery(
      "replayed window",
      "SELECT id, g, v, lag(v) OVER (PARTITION BY g ORDER BY v, id) AS p, sum(v) OVER (PARTITION BY g ORDER BY v, id) AS s FROM t"),
    OperatorQuery(
      "running window",
      "SELECT at, g, v, sum(v) OVER (PARTITION BY g ORDER BY at) AS s, row_number() OVER (PARTITION BY g ORDER BY at) AS r FROM timed_t",
      mode = "append",
      passed = Some("at")),
    OperatorQuery(
      "sessions",
      "SELECT g, session_window.start AS s, session_window.end AS e, count(*) AS n, sum(v) AS t FROM timed_t GROUP BY g, session_window(at, '20 seconds')"),
    OperatorQuery(
      "sessions that are over",
      "SELECT g, session_window.end AS e, count(*) AS n FROM timed_t GROUP BY g, session_window(at, '20 seconds')",
      mode = "append",
      passed = Some("e")),
    OperatorQuery(
      "windows that are over",
      "SELECT window.end AS e, count(*) AS n, sum(x) AS s FROM timed_t GROUP BY window(at, '30 seconds')",
      mode = "append",
      passed = Some("e")),
    OperatorQuery(
      "shared parts",
      "WITH s AS (SELECT g, sum(v) AS s FROM t GROUP BY g) SELECT a.g, a.s, b.c FROM s a JOIN (SELECT s % 3 AS m, count(*) AS c FROM s GROUP BY s % 3) b ON a.s % 3 = b.m"),
    OperatorQuery(
      "set operations",
      "SELECT g, v % 10 AS m FROM t EXCEPT ALL SELECT g, v % 10 FROM u UNION ALL (SELECT g, v FROM u INTERSECT SELECT g, v FROM t)"),
    OperatorQuery(
      "temporal filter",
      "SELECT id, g, v FROM clocked_t WHERE came > now() - INTERVAL 5 SECONDS OR v > 90 AND came < now() - INTERVAL 8 SECONDS"),
    OperatorQuery(
      "rows that leave",
      "SELECT /*+ ROW_TTL(t, '5 seconds') */ id, g, v FROM t",
      ttl = Some(5000)),
    OperatorQuery(
      "groups of rows that leave",
      "SELECT /*+ ROW_TTL(t, '4 seconds') */ t.g, count(*) AS n, sum(u.v) AS s FROM t JOIN u ON t.id = u.id GROUP BY t.g",
      ttl = Some(4000)),
    OperatorQuery(
      "the best of windows that are over",
      "SELECT w.end AS e, g, v FROM (SELECT *, row_number() OVER (PARTITION BY w ORDER BY v DESC, id, g, x, at) AS r FROM (SELECT window(at, '30 seconds') AS w, * FROM timed_t)) WHERE r <= 3",
      mode = "append",
      passed = Some("e")),
    OperatorQuery("unique", "SELECT g, count(*) AS n, max(v) AS hi FROM unique_t GROUP BY g"),
    OperatorQuery(
      "lookup join",
      "SELECT e.id, e.v, e.at, n.name FROM events_t e LEFT JOIN lookup(TABLE(names)) n ON n.id = e.v % 20"),
    OperatorQuery("grouped map", "SELECT g, n, span FROM mapped_t"),
    OperatorQuery(
      "recursion",
      "WITH RECURSIVE above(id, v, n) AS (SELECT id, v, 0 FROM t WHERE id < 8 UNION ALL SELECT a.id, b.v, n + 1 FROM above a JOIN t b ON b.id = a.v WHERE n < 3) SELECT n, count(*) AS c, sum(v) AS s FROM above GROUP BY n"),
    OperatorQuery(
      "history",
      "SELECT g, id, v, valid_from, valid_to FROM history(TABLE(SELECT id, g, v FROM t), key => 'g', history_by => 'v', delete_when => 'id % 7 = 0')"),
    OperatorQuery(
      "history of tracked columns",
      "SELECT id, g, v, valid_from, valid_to FROM history(TABLE(SELECT id, g, v, at FROM events_t), key => 'id', history_by => 'at', track => 'g')"))

  /** The names of one query for each family of operators. */
  val OfEachFamily: Set[String] = Set(
    "aggregate",
    "distinct",
    "inner join",
    "temporal join",
    "rank, all rows",
    "normalize",
    "replayed aggregate",
    "running window",
    "sessions",
    "groups of rows that leave",
    "unique")

  def named(name: String): OperatorQuery =
    all.find(_.name == name).getOrElse(throw new NoSuchElementException(name))
}
