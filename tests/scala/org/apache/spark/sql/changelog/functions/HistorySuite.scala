// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.functions

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** The intervals of versions, change by change. */
class HistorySuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Quick)

  private lazy val raw = new RawStream(spark, "raw", "id INT, city STRING, n INT, ts INT")

  private def running(arguments: String, query: String = "SELECT * FROM raw")(
      body: RunningChanges => Unit): Unit = {
    raw.reset()
    val changes = new RunningChanges(
      spark.sql(s"SELECT * FROM to_changelog(TABLE($query), history => 'scd2', $arguments)"),
      QuickFileSystem.temporaryDirectory())
    try body(changes)
    finally changes.stop()
  }

  test("a late version splits an interval, and a deleting one closes it") {
    running("key => 'id', history_by => 'ts', delete_when => 'city = ''-'''") { query =>
      raw.add("1 Bern 0 10", "1 Oslo 0 30")
      assert(
        query.next() == Seq("1 Bern 0 10 10 30 false insert", "1 Oslo 0 30 30 NULL true insert"))
      raw.add("1 Rome 0 20")
      assert(
        query.next() == Seq(
          "1 Bern 0 10 10 20 false update_postimage",
          "1 Bern 0 10 10 30 false update_preimage",
          "1 Rome 0 20 20 30 false insert"))
      raw.add("1 - 0 40")
      assert(
        query.next() == Seq(
          "1 Oslo 0 30 30 40 false update_postimage",
          "1 Oslo 0 30 30 NULL true update_preimage"))
    }
  }

  test("in upsert mode the key is the subject and the start of the interval") {
    running("mode => 'upsert', key => 'id', history_by => 'ts'") { query =>
      raw.add("1 Bern 0 10")
      query.next()
      raw.add("1 Oslo 0 30")
      assert(
        query.next() == Seq(
          "1 Bern 0 10 10 30 false update_postimage",
          "1 Oslo 0 30 30 NULL true insert"))
    }
  }

  test("versions equal in the tracked columns share an interval, with the last values") {
    running("key => 'id', history_by => 'ts', track => 'city'") { query =>
      raw.add("1 Bern 1 10", "1 Bern 2 20", "1 Oslo 3 30")
      assert(
        query.next() == Seq("1 Bern 2 20 10 30 false insert", "1 Oslo 3 30 30 NULL true insert"))
      raw.add("1 Rome 0 15")
      assert(
        FoldedChanges(query.all ++ query.next()) == Seq(
          "1 Bern 1 10 10 15 false",
          "1 Bern 2 20 20 30 false",
          "1 Oslo 3 30 30 NULL true",
          "1 Rome 0 15 15 20 false"))
    }
  }

  private lazy val changes =
    new RawStream(spark, "changes", "op STRING, id INT, city STRING, n INT")

  /** Replaces times by their numbers, in order of appearance. */
  private class Times {
    private val known = scala.collection.mutable.LinkedHashMap.empty[String, Int]

    def apply(rows: Seq[String]): Seq[String] = {
      val words = rows.map(_.split(' ').toSeq)
      words.flatten.filter(_.contains("T")).filter(_.contains(":")).distinct.sorted.foreach {
        time =>
          known.getOrElseUpdate(time, known.size + 1)
      }
      words
        .map(_.map(word => known.get(word).fold(word)(number => s"t$number")).mkString(" "))
        .sorted
    }
  }

  private def byCommit(query: String, arguments: String = "")(
      body: (RunningChanges, Times) => Unit): Unit = {
    changes.reset()
    val running = new RunningChanges(
      spark.sql(
        s"""WITH t AS (SELECT * FROM from_changelog(TABLE(changes), change_type => 'op', key => 'id'))
           |SELECT * FROM to_changelog(TABLE($query), history => 'scd2'$arguments)""".stripMargin),
      QuickFileSystem.temporaryDirectory())
    try body(running, new Times)
    finally running.stop()
  }

  test("by commit, each batch closes the intervals of the rows that it replaces") {
    byCommit("SELECT * FROM t") { (query, times) =>
      changes.add("+I 1 Bern 0", "+I 2 Rome 0")
      assert(
        times(query.next()) == Seq(
          "1 Bern 0 t1 NULL true insert",
          "2 Rome 0 t1 NULL true insert"))
      changes.add("-U 1 Bern 0", "+U 1 Oslo 0", "-U 2 Rome 0", "+U 2 Rome 0")
      assert(
        times(query.next()) == Seq(
          "1 Bern 0 t1 NULL true update_preimage",
          "1 Bern 0 t1 t2 false update_postimage",
          "1 Oslo 0 t2 NULL true insert"))
      query.restart(repeats = true)
      changes.add("-D 1 Oslo 0")
      query.next()
      assert(
        times(FoldedChanges(query.all)) == Seq(
          "1 Bern 0 t1 t2 false",
          "1 Oslo 0 t2 t3 false",
          "2 Rome 0 t1 NULL true"))
      changes.add("+I 1 Bern 0")
      query.next()
      assert(times(FoldedChanges(query.all)).contains("1 Bern 0 t4 NULL true"))
    }
  }

  test("by commit, an aggregate and a join have a history, by their own keys") {
    byCommit("SELECT city, count(*) AS c FROM t GROUP BY city") { (query, times) =>
      changes.add("+I 1 Bern 0", "+I 2 Rome 0")
      query.next()
      changes.add("+I 3 Bern 0", "-D 2 Rome 0")
      query.next()
      assert(
        times(FoldedChanges(query.all)) == Seq(
          "Bern 1 t1 t2 false",
          "Bern 2 t2 NULL true",
          "Rome 1 t1 t2 false"))
    }
    byCommit(
      "SELECT t.id, t.city, c FROM t JOIN (SELECT n, count(*) AS c FROM t GROUP BY n) s ON t.n = s.n",
      ", key => 'id', mode => 'upsert'") { (query, times) =>
      changes.add("+I 1 Bern 0")
      query.next()
      changes.add("+I 2 Rome 0")
      assert(
        times(query.next()) == Seq(
          "1 Bern 1 t1 t2 false update_postimage",
          "1 Bern 2 t2 NULL true insert",
          "2 Rome 2 t2 NULL true insert"))
    }
  }

  test("by commit, after a clock that went back, the version before has no interval") {
    byCommit("SELECT * FROM t") { (query, times) =>
      changes.add("+I 1 Bern 0")
      query.next()
      for ((before, after, minutes) <- Seq(
          ("Bern", "Oslo", 60),
          ("Oslo", "Rome", -30),
          ("Rome", "Wien", 120))) {
        query.pass(minutes * 60000L)
        changes.add(s"-U 1 $before 0", s"+U 1 $after 0")
        query.next()
      }
      // The versions have the times 0, 60, 30 and 150 minutes.
      assert(
        times(FoldedChanges(query.all)) == Seq(
          "1 Bern 0 t1 t3 false",
          "1 Rome 0 t2 t4 false",
          "1 Wien 0 t4 NULL true"))
    }
  }

  test("by commit, rows without a key are refused by name") {
    Seq("" -> "SELECT city FROM t", ", key => 'city'" -> "SELECT * FROM t").foreach {
      case (arguments, query) =>
        val error = intercept[AnalysisException](byCommit(query, arguments)((_, _) => ()))
        assert(error.getCondition == "CHANGELOG_HISTORY_KEY_MISSING")
    }
  }

  test("by a column, a query with one row per key is refused by name") {
    Seq("SELECT id, city, n FROM t", "SELECT city, max(n) AS n, 1 AS id FROM t GROUP BY city")
      .foreach { query =>
        val key = if (query.contains("GROUP")) "city" else "id"
        val error = intercept[AnalysisException] {
          byCommit(query, s", history_by => 'n', key => '$key'")((_, _) => ())
        }
        assert(error.getCondition == "CHANGELOG_HISTORY_OF_CURRENT_ROWS")
      }
  }

  test("what no history can be made of is refused by name") {
    def refused(arguments: String, query: String = "SELECT * FROM raw"): String =
      intercept[AnalysisException](running(arguments, query)(_ => ())).getMessage
    assert(refused("history_by => 'ts'").contains("key => array('id')"))
    assert(refused("key => 'id', track => 'city'").contains("history_by"))
    assert(refused("key => 'id', history_by => 'tz'").contains("tz"))
    assert(
      refused("key => 'id', history_by => 'ts', delete_when => 'cit = 1'").contains(
        "delete_when"))
    assert(
      refused("key => 'id', history_by => 'ts'", "SELECT *, 1 AS valid_to FROM raw")
        .contains("valid_to"))
    val without = intercept[AnalysisException] {
      spark.sql("SELECT * FROM to_changelog(TABLE(raw), history_by => 'ts')")
    }
    assert(without.getMessage.contains("history => 'scd2'"))
  }
}
