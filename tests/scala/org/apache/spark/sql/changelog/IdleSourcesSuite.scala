// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/**
 * Batches in which some sources have no news, in all combinations, the first batch among them. In
 * place of such a source Spark's optimizer sees a relation without rows, and cuts what it can.
 */
class IdleSourcesSuite extends AnyFunSuite with ChangelogSession {
  import IdleSourcesSuite._

  private lazy val oracle = new Oracle(spark)

  private val a = Feed("a", "id INT, g STRING, v INT", Seq("id"))
  private val b = Feed("b", "id INT, g STRING, v INT")
  private val c = Feed("c", "id INT, g STRING, v INT", Seq("id"), upsert = true)
  private val d = Feed("d", "id INT, g STRING, v INT", insertOnly = true)

  /** What arrives in turn: a letter stands for a feed with changes, a capital one for one without. */
  private def steps(plan: String): Seq[Step] = {
    val arrived = scala.collection.mutable.Map.empty[String, Int].withDefaultValue(0)
    plan.split(" ").toSeq.map { feeds =>
      Step.of(feeds.filter(_.isLetter).map { letter =>
        val feed = Seq(a, b, c, d).find(_.name.head == letter.toLower).get
        if (letter.isUpper) feed -> Nil
        else {
          val number = arrived(feed.name)
          arrived(feed.name) += 1
          feed -> changes(feed).lift(number).getOrElse(Nil)
        }
      }: _*)
    }
  }

  private def changes(feed: Feed): Seq[Seq[String]] = {
    val all = Seq(
      Seq("+I 1 x 5", "+I 2 y 3", "+I 3 x NULL", "+I 4 NULL 5"),
      Seq("-U 1 x 5", "+U 1 y 4", "-D 2 y 3", "+I 5 z 3"),
      Seq("-D 3 x NULL", "+I 6 x 5"),
      Seq("-U 6 x 5", "+U 6 w 1"))
    if (feed.insertOnly) all.map(_.filter(_.startsWith("+I")))
    else if (feed.upsert) all.map(_.filterNot(_.startsWith("-U")))
    else all
  }

  private def check(sql: String): Unit = {
    val feeds = Seq(a, b, c, d).filter(feed => s"\\b${feed.name}\\b".r.findFirstIn(sql).isDefined)
    val names = feeds.map(_.name.head).mkString
    val (first, last) = (names.take(1), names.takeRight(1))
    def check(order: String, variant: Variant): Unit =
      withClue(s"$sql, $order: ")(oracle.check(Program(feeds, sql, steps(order)), variant))
    check(
      s"$first $last - $names ${first.toUpperCase} $last $first",
      Variant(conf = Quick, sources = Seq(FeedFiles.Json)))
    // files are what idle sources are told by; memory is another source, a restart takes long
    if (sql.hashCode % 3 == 0)
      check(
        s"${last.toUpperCase} $last $first ${names.toUpperCase} - $last $names",
        Variant(conf = Quick, restart = true))
  }

  Seq(
    "UNION" -> Seq("SELECT g FROM a UNION SELECT g FROM b"),
    "set operations that count" -> Seq(
      "SELECT g FROM a INTERSECT ALL SELECT g FROM b",
      "SELECT v FROM a UNION ALL (SELECT v FROM a EXCEPT ALL SELECT v FROM b)"),
    "other set operations" -> Seq(
      "SELECT g FROM a INTERSECT SELECT g FROM c",
      "SELECT g, v FROM d EXCEPT SELECT g, v FROM b",
      "SELECT g, count(*) FROM (SELECT * FROM a UNION ALL SELECT * FROM b) GROUP BY g",
      "SELECT * FROM a UNION ALL SELECT * FROM d"),
    "joins" -> Seq(
      "SELECT a.id, b.v FROM a JOIN b ON a.g = b.g",
      "SELECT a.id, b.v FROM a LEFT JOIN b ON a.g = b.g",
      "SELECT a.id, b.id FROM a FULL JOIN b ON a.g = b.g AND a.v < b.v",
      "SELECT * FROM a LEFT ANTI JOIN b ON a.g = b.g",
      "SELECT * FROM b CROSS JOIN d"),
    "joins of many" -> Seq(
      "SELECT a.id, b.v, c.v FROM a JOIN b ON a.id = b.id JOIN c ON c.id = a.id",
      "SELECT a.id, b.v, c.v FROM a LEFT JOIN b ON a.id = b.id RIGHT JOIN c ON c.g = b.g"),
    "subqueries" -> Seq(
      "SELECT * FROM a WHERE g IN (SELECT g FROM b) OR v = 3",
      "SELECT * FROM a WHERE g NOT IN (SELECT g FROM c WHERE g IS NOT NULL)",
      "SELECT * FROM (SELECT a.id, b.v FROM b JOIN a ON a.id = b.id) WHERE id NOT IN (SELECT id FROM a WHERE v > 3)",
      "SELECT id, (SELECT max(v) FROM b) AS m, (SELECT count(*) FROM d WHERE d.g = a.g) AS n FROM a",
      "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.v > a.v)"),
    "aggregates" -> Seq(
      "SELECT count(*), max(v), count(DISTINCT g), collect_list(v) IS NULL FROM a",
      "SELECT g, median(v), count(DISTINCT id) FROM (SELECT * FROM a UNION ALL SELECT * FROM d) GROUP BY g",
      "SELECT g, count(*) FROM a GROUP BY CUBE (g, v) UNION ALL SELECT 'all', count(*) FROM b",
      "SELECT n, count(*) FROM (SELECT g, count(*) AS n FROM b GROUP BY g) GROUP BY n"),
    "ranks and windows" -> Seq(
      "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY v, id) AS r FROM c) WHERE r <= 2",
      "SELECT a.id, sum(b.v) OVER (PARTITION BY a.g ORDER BY b.v) FROM a JOIN b ON a.id = b.id",
      "(SELECT id, v FROM b ORDER BY v DESC, id LIMIT 2) UNION ALL SELECT id, v FROM d",
      "SELECT *, lag(v) OVER (ORDER BY id, v) FROM (SELECT * FROM a UNION SELECT * FROM b)"),
    "parts that are shared" -> Seq(
      "WITH s AS (SELECT g, sum(v) AS s FROM (SELECT * FROM a UNION SELECT * FROM b) GROUP BY g) SELECT x.g, y.s FROM s x LEFT JOIN s y ON x.s < y.s",
      "WITH s AS (SELECT a.g, b.v FROM a JOIN b ON a.id = b.id) SELECT g, count(*) FROM s GROUP BY g UNION ALL SELECT g, v FROM s",
      "SELECT x.id, y.id FROM a x JOIN a y ON x.v = y.v JOIN b ON b.g = y.g"),
    "rows that never change" -> Seq(
      "SELECT g FROM a UNION SELECT * FROM VALUES ('x'), ('q')",
      "SELECT a.id, s.n FROM a LEFT JOIN VALUES ('x', 1), ('y', 2) AS s(g, n) ON a.g = s.g",
      "SELECT s.n, b.v FROM VALUES ('x', 1), ('q', 2) AS s(g, n) LEFT JOIN b ON b.g = s.g"))
    .foreach { case (name, queries) =>
      test(s"$name of sources of which some are idle") {
        Share.of(queries, oneIn = 4).foreach(check)
      }
    }

  test(
    "what a query below from_changelog says of its rows counts for batches without news as well") {
    val joined = "SELECT r.* EXCEPT (v), s.v FROM arrived r " +
      "LEFT JOIN VALUES (1, 5), (2, 3), (5, 4) AS s(id, v) ON r.id = s.id WHERE s.v > 0 AND r.g > 'a'"
    val j = a.copy(name = "j", below = Some(joined))
    val arriving = Seq(
      Step.of(j -> Seq("+I 1 x 5", "+I 2 y 3")),
      Step.of(b -> Seq("+I 1 x 5", "+I 2 z 3", "+I 7 NULL 1")),
      Step.of(j -> Seq("-D 2 y 3")),
      Step.of(b -> Seq("-D 1 x 5"), j -> Seq("+I 5 z 4")),
      Step.of(b -> Seq("-D 7 NULL 1")))
    val sources = Seq(FeedFiles.Json)
    Seq(
      "SELECT g, count(v) AS n, sum(v) AS s FROM j GROUP BY g UNION ALL SELECT g, count(v), id FROM b GROUP BY g, id",
      "SELECT j.v, b.id FROM b LEFT JOIN j ON j.g = b.g",
      "SELECT id FROM b WHERE v NOT IN (SELECT v FROM j)",
      "SELECT j.id, b.v FROM j FULL JOIN b ON j.g = b.g AND j.v = b.v WHERE j.v IS NOT NULL OR b.g IS NULL")
      .foreach { sql =>
        val orders = Seq(arriving, arriving.take(2).reverse ++ arriving.drop(2))
        Share.ofWays(orders, sql).foreach { steps =>
          val variant = Variant(conf = Quick, sources = sources)
          withClue(sql)(oracle.check(Program(Seq(j, b), sql, steps), variant))
        }
      }
  }
}

private object IdleSourcesSuite {

  val Quick: Map[String, String] =
    ChangelogSession.Interpreted + ("spark.sql.shuffle.partitions" -> "1")
}
