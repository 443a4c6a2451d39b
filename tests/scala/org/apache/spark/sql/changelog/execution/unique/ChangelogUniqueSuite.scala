// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.unique

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.streaming.StreamingQueryProgress

import org.apache.spark.sql.changelog.testing._

/** A second row of a key, which a source has declared: counted, or refused. */
class ChangelogUniqueSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  private val trusted = Feed("t", "id INT, g STRING, v INT", key = Seq("id"))
  private def feed(duplicates: String) =
    trusted.copy(arguments = Seq(s"duplicates => '$duplicates'"))
  private val sums = "SELECT g, sum(v) AS total FROM t GROUP BY g"
  private var names = 0

  private def running(feed: Feed, sql: String = sums)(body: KeptQuery => Unit): Unit = {
    names += 1
    val name = s"kept_$names"
    val query = new KeptQuery(spark, feed, sql, spark.table(name))
    query.start("changelog-memory", Map("queryName" -> name))
    try body(query)
    finally query.stop()
  }

  /** Lets changes arrive in one batch, which must be refused. */
  private def refused(query: KeptQuery, key: String, row: String, rows: Int)(
      changes: String*): Unit = {
    query.add(changes: _*)
    val of = Seq("columns" -> "(id)", "key" -> key, "row" -> row, "rows" -> rows.toString)
    checkError("CHANGELOG_KEY_DUPLICATE", of: _*)(query.processAll())
  }

  private def duplicates(progress: Seq[StreamingQueryProgress]): Seq[Long] =
    progress.flatMap(_.stateOperators).filter(_.operatorName == "changelogUnique").map {
      _.customMetrics.get("numDuplicateRows").longValue
    }

  test("a key that comes twice is refused, in one batch and in two") {
    running(feed("fail"))(refused(_, "{1}", "{1, b, 7}", 2)("+I 1 a 5", "+I 1 b 7"))
    running(feed("fail")) { query =>
      query.check("+I 1 a 5", "+I 2 a 6")
      refused(query, "{1}", "{1, b, 7}", 2)("+I 1 b 7")
    }
    running(feed("fail")) { query =>
      query.check("+I 1 a 5", "+I 2 a 6")
      refused(query, "{1}", "{1, a, 6}", 2)("-U 2 a 6", "+U 1 a 6")
    }
  }

  test("what is refused is refused again when the query goes on") {
    running(feed("fail")) { query =>
      query.check("+I 1 a 5")
      refused(query, "{1}", "{1, b, 7}", 2)("+I 1 b 7")
      query.start("changelog-memory", Map("queryName" -> s"kept_$names"))
      checkError("CHANGELOG_KEY_DUPLICATE")(query.processAll())
    }
  }

  test("rows that take the place of others are fine, in whatever order they come") {
    onProviders {
      running(feed("fail")) { query =>
        query.check("+I 1 a 5", "+I 2 b 6", "+I 3 c 7")
        query.check("-D 1 a 5", "+I 1 a 6", "+I 2 b 7", "-D 2 b 6", "-U 3 c 7", "+U 3 d 8")
        // keys are handed on
        query.check("-U 1 a 6", "+U 4 a 6", "-U 2 b 7", "+U 1 b 7", "+I 2 a 1")
        query.check("+I 5 e 1", "-D 5 e 1", "+I 5 e 2", "-D 5 e 2", "+I 5 e 3")
        query.check("-D 5 e 3", "-D 4 a 6")
        query.check("+I 5 f 3", "+I 4 g 6")
      }
    }
  }

  test("a row that goes before it comes leaves nothing behind") {
    running(feed("fail")) { query =>
      query.add("-D 1 a 5")
      query.processAll()
      query.check("+I 1 a 5")
      query.check("+I 1 a 6")
      refused(query, "{1}", "{1, a, 7}", 2)("+I 1 a 7")
    }
  }

  test("rows that only come are counted too") {
    val plain = feed("fail").copy(insertOnly = true)
    running(plain) { query =>
      query.check("+I 1 a 5", "+I 2 a 6")
      refused(query, "{2}", "{2, b, 7}", 2)("+I 2 b 7")
    }
  }

  test("warned of, they count as they come, and the metric says how many they are") {
    names += 1
    val query = new KeptQuery(spark, feed("warn"), sums, spark.table(s"kept_$names"))
    val running = query.start("changelog-memory", Map("queryName" -> s"kept_$names"))
    query.check("+I 1 a 5", "+I 1 a 7", "+I 2 b 1")
    query.check("+I 1 c 9", "+I 3 b 1")
    query.check("-D 1 c 9")
    query.check("+I 3 b 1", "-D 3 b 1")
    query.check("+I 2 d 2")
    assert(
      duplicates(running.recentProgress.toSeq.filter(_.numInputRows > 0)) == Seq(1, 1, 0, 0, 1))
    query.stop()
  }

  test("trusted, which is the default, they are not looked for") {
    for (feed <- Seq(trusted, feed("trust"))) running(feed) { query =>
      query.check("+I 1 a 5", "+I 1 a 7")
      query.check("+I 1 a 9")
      assert(duplicates(spark.streams.active.flatMap(_.recentProgress).toSeq).isEmpty)
    }
  }

  test("a batch query refuses them alike") {
    def read(changes: String*)(duplicates: String): Long = {
      val rows = changes.map { change =>
        val Seq(kind, id, g, v) = change.split(' ').toSeq
        s"('$kind', $id, '$g', $v)"
      }
      spark
        .sql(rows.mkString("SELECT * FROM VALUES ", ", ", " AS c(op, id, g, v)"))
        .createOrReplaceTempView("c")
      spark
        .sql(s"""SELECT sum(v) FROM
        from_changelog(TABLE(c), 'op', key => 'id', duplicates => '$duplicates')""")
        .head()
        .getLong(0)
    }
    val twice = read("+I 1 a 5", "+I 1 a 7", "+I 2 b 1") _
    assert(twice("trust") == 13 && twice("warn") == 13)
    val of = Seq("columns" -> "(id)", "key" -> "{1}", "rows" -> "2")
    checkError("CHANGELOG_KEY_DUPLICATE", of: _*)(twice("fail"))
    val same = read("+I 1 a 5", "+I 1 a 5") _
    checkError("CHANGELOG_KEY_DUPLICATE", of :+ ("row" -> "{1, a, 5}"): _*)(same("fail"))
    val replaced = read("+I 1 a 5", "+I 1 a 7", "-D 1 a 5", "-U 2 b 1", "+U 2 c 1", "+I 2 b 1") _
    assert(replaced("fail") == 8)
    spark.sql("SELECT 1 AS id, 2 AS v UNION ALL SELECT 1, 3").createOrReplaceTempView("plain")
    checkError("CHANGELOG_KEY_DUPLICATE", of: _*) {
      val read = "from_changelog(TABLE(plain), key => 'id', duplicates => 'fail')"
      spark.sql(s"SELECT sum(v) FROM $read").collect()
    }
  }

  test("it is said what looking for them keeps") {
    new RawStream(spark, "raw", "op STRING, id INT, v INT")
    def explained(duplicates: String) = spark
      .sql(s"""EXPLAIN CHANGELOG SELECT sum(v) FROM
        from_changelog(TABLE(raw), 'op', key => 'id'$duplicates)""")
      .head()
      .getString(0)
    val checked = explained(", duplicates => 'fail'")
    assert(checked.contains("state: keys: (id) → count of rows, unbounded"))
    assert(checked.contains("· counts the rows of each key: duplicates => 'fail'"))
    assert(!explained("").contains("keys: "))
  }

  test("arguments that make no sense are refused") {
    new RawStream(spark, "raw", "op STRING, id INT, v INT")
    def refused(arguments: String, value: String) =
      checkError("CHANGELOG_ARGUMENT_INVALID", "argument" -> "duplicates", "value" -> value) {
        spark.sql(s"SELECT * FROM from_changelog(TABLE(raw), 'op', $arguments)")
      }
    refused("duplicates => 'fail'", "'fail'")
    refused("key => 'id', input => 'upsert', duplicates => 'warn'", "'warn'")
    refused("key => 'id', duplicates => 'maybe'", "'maybe'")
  }

  test("a source that is read twice is looked through once") {
    val joined =
      "SELECT a.id, a.v, b.total FROM t a JOIN (SELECT g, sum(v) AS total FROM t GROUP BY g) b ON a.g = b.g"
    running(feed("fail"), joined) { query =>
      query.check("+I 1 a 5", "+I 2 a 6", "+I 3 b 1")
      query.check("-U 1 a 5", "+U 1 b 5")
      refused(query, "{3}", "{3, b, 2}", 2)("+I 3 b 2")
    }
  }
}
