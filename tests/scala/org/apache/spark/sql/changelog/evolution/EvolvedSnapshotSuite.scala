// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** Queries that begin with snapshots are started again with others, or become others. */
class EvolvedSnapshotSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {

  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.DeltaConf ++ ChangelogSession.Interpreted)

  private val some = Seq("(1, 'Oslo', 5, 10)", "(2, 'Rome', 7, 10)")
  private val others = Seq("(1, 'Bern', 3, 10)", "(4, 'Nice', 9, 10)")

  private def refused(feeds: SnapshotFeeds, sql: String)(reason: String): Unit =
    Seq(() => feeds.explain(sql), () => feeds.evolve(sql)).foreach { ask =>
      val error = checkError("CHANGELOG_EVOLUTION_NOT_POSSIBLE")(ask())
      assert(error.getMessageParameters.get("reason").contains(reason), error)
    }

  private def columns(rows: String, columns: String): String = s"SELECT $columns FROM $rows"

  test("a feed goes on with its own snapshot when another one is not read any more") {
    val feeds = new SnapshotFeeds(spark)
    val a = feeds.rows("a", feeds.write("delta", "some", some: _*))
    val b = feeds.rows("b", feeds.write("delta", "others", others: _*))
    feeds.arrive("a", "+U 2 Rome 8 11")
    feeds.arrive("b", "+I 5 Rome 2 11")
    feeds.check(s"SELECT x.id, x.city, y.fare FROM $a x JOIN $b y ON x.id = y.id")
    val alone = columns(b, "id, city, fare")
    assert(feeds.evolve(alone).count(_ == "rebuilt") == 1)
    feeds.check(alone)
    assert(feeds.table == Seq("1 Bern 3", "4 Nice 9", "5 Rome 2"))
    feeds.arrive("b", "-D 4 Nice 9 12")
    feeds.check(alone)
  }

  test("snapshots that have changed places don't take each other's moments") {
    val feeds = new SnapshotFeeds(spark)
    val (one, other) =
      (feeds.write("delta", "some", some: _*), feeds.write("delta", "others", others: _*))
    def union(first: String, second: String) =
      s"${columns(feeds.rows("a", first), "id")} UNION ALL ${columns(feeds.rows("b", second), "id")}"
    feeds.check(union(one, other))
    checkError("CHANGELOG_SOURCES_CHANGED")(feeds.run(union(other, one)))
    feeds.check(union(one, other))
  }

  test("another snapshot is another query, and can't come after a feed that has been read") {
    val feeds = new SnapshotFeeds(spark)
    val all = feeds.write("delta", "all", some ++ others.tail: _*)
    val few = s"$all WHERE city = 'Oslo'"
    def cities(snapshot: String) = columns(feeds.rows("a", snapshot), "id, city")
    feeds.arrive("a", "+U 1 Oslo 6 11", "-D 2 Rome 7 11")
    feeds.check(cities(few))
    refused(feeds, cities(all))("begins with another snapshot")
    feeds.beginAnew()
    feeds.check(cities(""))
    refused(feeds, cities(all))("begins with another snapshot")
    // where the feed is new, too, they come together
    val more = s"${cities("")} UNION ALL ${columns(feeds.rows("b", all), "id, city")}"
    feeds.arrive("b", "-D 4 Nice 9 12", "+I 6 Oslo 1 12")
    assert(feeds.evolve(more).contains("kept"))
    feeds.check(more)
    feeds.arrive("b", "-D 1 Oslo 5 13")
    feeds.check(more)
    // and nothing is in the way of a feed alone
    val without = s"${cities("")} UNION ALL ${cities("").replace("TABLE(a)", "TABLE(b)")}"
    feeds.evolve(without)
    feeds.check(without)
  }

  for (format <- Seq("delta", "parquet"))
    test(
      s"a column that was not kept is read of a snapshot of $format, if it can be read again") {
      val feeds = new SnapshotFeeds(spark)
      val rows = feeds.rows("a", feeds.write(format, "some", some: _*))
      feeds.arrive("a", "+U 2 Rome 8 11", "+I 3 Rome 1 11")
      feeds.check(columns(rows, "id, city"))
      val more = columns(rows, "id, city, fare")
      if (format == "parquet") refused(feeds, more)("a copy was made")
      else {
        feeds.explain(more)
        feeds.evolve(more)
        feeds.check(more)
      }
      // what is kept needs no snapshot
      val above = s"SELECT city, count(*) AS n FROM $rows GROUP BY city"
      if (format == "parquet") assert(feeds.evolve(above).contains("kept"))
      else feeds.evolve(above)
      feeds.check(above)
    }

  test("a start that is not the first goes on with another snapshot, which it doesn't read") {
    val feeds = new SnapshotFeeds(spark)
    val all = feeds.write("delta", "all", some: _*)
    def cities(snapshot: String) = columns(feeds.rows("a", snapshot), "id, city")
    feeds.check(cities(all))
    feeds.arrive("a", "+I 3 Bern 1 11")
    feeds.run(cities(s"$all LIMIT 0"))
    assert(feeds.table == Seq("1 Oslo", "2 Rome", "3 Bern"))
    // what it has begun with is still known
    val few = s"${cities(all)} WHERE id < 3"
    assert(feeds.evolve(few) == Seq("kept"))
    feeds.check(few)
  }

  for (format <- Seq("delta", "parquet"))
    test(s"a first batch that is run again has the snapshot of $format that it was begun with") {
      val feeds = new SnapshotFeeds(spark)
      val all = feeds.write(format, "all", some :+ "(2, 'Bern', 1, 3)": _*)
      def cities(snapshot: String) = columns(feeds.rows("a", snapshot), "id, city")
      checkError("CHANGELOG_SNAPSHOT_KEY_REPEATED", "key" -> "2")(feeds.run(cities(all)))
      val mended = cities(s"$all WHERE ts = 10")
      checkError("CHANGELOG_SNAPSHOT_CHANGED")(feeds.run(mended))
      feeds.beginAnew()
      feeds.check(mended)
      if (format == "delta") {
        val more = columns(feeds.rows("a", s"$all WHERE ts = 10"), "id, city, fare")
        feeds.evolve(more)
        intercept[Exception](feeds.run(more, fails = _ => true))
        checkError("CHANGELOG_SNAPSHOT_CHANGED") {
          feeds.run(columns(feeds.rows("a", s"$all WHERE ts > 10"), "id, city, fare"))
        }
        feeds.check(more)
      }
    }
}
