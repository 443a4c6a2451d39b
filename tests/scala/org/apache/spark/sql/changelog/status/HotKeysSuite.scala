// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.status

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** Keys that a large part of an operator's rows have are told of while a query runs. */
class HotKeysSuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Interpreted)

  private lazy val raw = new RawStream(spark, "raw", "id INT, city STRING, fare INT")
  private lazy val cities = new RawStream(spark, "cities", "name STRING, country STRING")
  private val Rows = 24000

  /** Two of three are of one city, and come in turns with the others. */
  private def add(): Unit = raw.add((1 to Rows).map { id =>
    s"$id ${if (id % 3 == 0) s"town$id" else "a"} ${id % 7}"
  }: _*)

  private def running(sql: String)(check: RunningChanges => Unit): Seq[String] = {
    raw.reset()
    cities.reset()
    LoggedWarnings("What may hurt, of query ") {
      val changes = spark.sql(s"SELECT * FROM to_changelog(TABLE($sql))")
      val query = new RunningChanges(changes, QuickFileSystem.temporaryDirectory())
      try check(query)
      finally query.stop()
    }
  }

  private def hotKeys: Seq[Row] = spark
    .sql(
      "SELECT k.key, k.rows, k.share, hot_key_rows FROM changelog_status() LATERAL VIEW explode(hot_keys) AS k")
    .collect()
    .toSeq

  private def explained(query: RunningChanges, format: String): String =
    spark.sql(s"EXPLAIN CHANGELOG $format QUERY '${query.query.runId}'").head().getString(0)

  private def isHot(key: String): Unit = {
    val Seq(Row(found: String, rows: Long, share: Double, all: Long)) = hotKeys
    assert(found == key && all == rows)
    assert(math.abs(share - 2.0 / 3) < 0.1 && math.abs(rows - share * Rows) < 100, hotKeys)
  }

  /** Of which no task leaves rows behind. */
  private val best =
    "SELECT id, city FROM (SELECT *, rank() OVER (PARTITION BY city ORDER BY fare, id) AS r FROM raw) WHERE r <= 2"

  test(
    "the hot keys of the last batch are in the picture, the table and the progress, and warned of once") {
    val warnings = running(best) { query =>
      add()
      query.next()
      isHot("city = a")
      val custom = query.progress.stateOperators.head.customMetrics
      assert(custom.get("numHotKeyRows") > 10000)
      val line = """! hot key city = a: about 1[0-9],\d{3} rows, [67]\d% of those in""".r
      Seq("TEXT", "HTML", "SVG").foreach { format =>
        val text = explained(query, s"FORMAT $format")
        assert(line.findFirstIn(text.replaceAll("</text>.*?<text[^>]*> *", " ")).isDefined, text)
      }
      assert(explained(query, "FORMAT JSON").contains("\"key\" : \"city = a\""))
      add()
      query.next()
      isHot("city = a")
      raw.add("-1 a 1")
      query.next()
      assert(hotKeys.isEmpty)
    }
    assert(warnings.size == 1, warnings)
    assert(
      warnings.head.contains("ChangelogRank") && warnings.head.contains("city = a: about") &&
        warnings.head.contains("with one more part in its PARTITION BY"))
  }

  test("a partition of which tasks leave rows behind is not hot, nor is what is left of others") {
    val first = best.replace("rank()", "row_number()")
    val warnings = running(first) { query =>
      raw.add((1 to Rows).map { id =>
        s"$id ${if (id % 8 < 6) "a" else if (id % 8 == 6) "b" else s"town$id"} ${id % 7}"
      }: _*)
      query.next()
      assert(hotKeys.isEmpty)
      val numbers = query.progress.stateOperators.head.customMetrics
      assert(numbers.get("numInputRows") == Rows && numbers.get("numHotKeyRows") == 0)
    }
    assert(warnings.isEmpty, warnings)
  }

  test("the hot key of a join is named by its columns, with the hint that spreads it") {
    val join = "SELECT id, country FROM raw JOIN cities ON lower(raw.city) = cities.name"
    val warnings = running(join) { query =>
      cities.add("a x")
      add()
      query.next()
      isHot("lower(city) = a")
    }
    assert(warnings.size == 1 && warnings.head.contains("A hint SKEW"), warnings)
  }

  test("the hot key of rows that are kept by a key is told of") {
    val newest =
      "SELECT city, id FROM from_changelog(TABLE(SELECT '+U' AS op, * FROM raw), 'op', 'city', 'upsert')"
    val warnings = running(newest) { query =>
      add()
      query.next()
      isHot("city = a")
    }
    assert(warnings.size == 1 && warnings.head.contains("Only the newest row of a key"), warnings)
  }

  /** With generated code and without. */
  private def bothWays(check: => Unit): Unit = {
    check
    spark.conf.set("spark.sql.codegen.wholeStage", true)
    spark.conf.set("spark.sql.codegen.factoryMode", "CODEGEN_ONLY")
    try check
    finally
      ChangelogSession.Interpreted.foreach { case (key, value) => spark.conf.set(key, value) }
  }

  test("a hot group is shown, and warned of where its rows are not combined before they meet") {
    bothWays {
      val combined = running("SELECT city, sum(fare) AS s FROM raw GROUP BY city") { query =>
        add()
        query.next()
        isHot("city = a")
      }
      assert(combined.isEmpty, combined)
      val distinct =
        running("SELECT city, count(DISTINCT id) AS n, sum(fare) AS s FROM raw GROUP BY city") {
          query =>
            add()
            query.next()
            isHot("city = a")
        }
      assert(distinct.size == 1 && distinct.head.contains("distinctSplit.enabled"), distinct)
    }
  }

  test("a key is not hot if others have as many rows, or if it has few") {
    val warnings = running(best) { query =>
      raw.add((1 to Rows).map(id => s"$id town${id % 4} 1"): _*)
      query.next()
      assert(hotKeys.isEmpty)
      raw.add((1 to 5000).map(id => s"$id a 1"): _*)
      query.next()
      assert(hotKeys.isEmpty)
    }
    assert(warnings.isEmpty)
  }
}
