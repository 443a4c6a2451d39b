// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import scala.jdk.CollectionConverters._

import org.json4s._
import org.json4s.jackson.JsonMethods
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.streaming.StateOperatorProgress

import org.apache.spark.sql.changelog.testing._

/** What a running query tells of the batch it did last: in its progress, and by EXPLAIN. */
class RunningQuerySuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  private lazy val raw = new RawStream(spark, "raw", "op STRING, id INT, city STRING, fare INT")
  private val rides = "from_changelog(TABLE(raw), 'op', 'id')"
  private val totals = s"SELECT city, sum(fare) AS total FROM $rides WHERE fare > 0 GROUP BY city"
  private val cascade = s"SELECT total, count(*) AS n FROM ($totals) GROUP BY total"

  private def running(sql: String)(check: RunningChanges => Unit): Unit = {
    raw.reset()
    val changes = spark.sql(s"SELECT * FROM to_changelog(TABLE($sql))")
    val query = new RunningChanges(changes, QuickFileSystem.temporaryDirectory())
    try check(query)
    finally query.stop()
  }

  private def counts(operator: StateOperatorProgress): Map[String, Long] =
    operator.customMetrics.asScala.map { case (name, value) => name -> value.longValue }.toMap

  /** How many changes of each type a batch has emitted. */
  private def kinds(rows: Seq[String]): Map[String, Int] =
    rows.groupMapReduce(_.split(" ").last)(_ => 1)(_ + _)

  /** By how progress calls them. */
  private val kindNames = Map(
    "insert" -> "numInserts",
    "update_preimage" -> "numUpdatePreimages",
    "update_postimage" -> "numUpdatePostimages",
    "delete" -> "numDeletes")

  Seq(
    "an aggregate" -> totals,
    "distinct values" -> s"SELECT city, count(DISTINCT fare) AS n FROM $rides GROUP BY city",
    "the least value" -> s"SELECT city, min(fare) AS n FROM $rides GROUP BY city",
    "a join" -> s"SELECT l.id, r.fare FROM $rides l LEFT JOIN $rides r ON l.id = r.fare",
    "a rank" -> s"SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY city ORDER BY fare, id) AS r FROM $rides) WHERE r <= 1",
    "a window" -> s"SELECT id, sum(fare) OVER (PARTITION BY city) AS s FROM $rides",
    "a key that is checked" -> "SELECT * FROM from_changelog(TABLE(raw), 'op', 'id', duplicates => 'warn')",
    "the last rows of keys" -> "SELECT id, city, fare FROM from_changelog(TABLE(raw), 'op', 'id', 'upsert')")
    .foreach { case (name, sql) =>
      test(s"the progress of $name counts changes in, and out by kind") {
        running(sql) { query =>
          Seq(
            Seq("+I 1 a 5", "+I 2 a 7", "+I 3 b 2"),
            Seq("-U 1 a 5", "+U 1 a 6", "-D 3 b 2", "+I 4 c 1")).foreach { changes =>
            raw.add(changes: _*)
            val emitted = kinds(query.next())
            val operators = query.progress.stateOperators.map(counts)
            val last = operators.head
            // a window is computed above its operator, from rows before and after
            if (name != "a window") {
              kindNames.foreach { case (kind, metric) =>
                assert(last(metric) == emitted.getOrElse(kind, 0), s"$metric of $operators")
              }
              assert(last("numOutputRows") == emitted.values.sum)
            }
            val readings = if (name == "a join") 2 else 1
            assert(operators.last("numInputRows") == changes.size * readings, operators.toSeq)
          }
        }
      }
    }

  test("an operator is given what the one below it emits") {
    running(cascade) { query =>
      raw.add("+I 1 a 5", "+I 2 a 7", "+I 3 b 2", "+I 4 b -1")
      query.next()
      val Array(outer, inner) = query.progress.stateOperators.map(counts)
      assert(inner("numInputRows") == 3 && inner("numOutputRows") == 2)
      assert(outer("numInputRows") == 2 && outer("numOutputRows") == 2)
    }
  }

  private def explained(query: RunningChanges, format: String = ""): String =
    spark
      .sql(s"EXPLAIN CHANGELOG $format QUERY '${query.query.runId}'")
      .collect()
      .map(_.getString(0))
      .mkString("\n")

  test("a query that runs is explained with the numbers of its last batch") {
    running(cascade) { query =>
      raw.add("+I 1 a 5", "+I 2 a 7", "+I 3 b 2")
      query.next()
      raw.add("-U 1 a 5", "+U 1 a 6", "-D 3 b 2", "-D 9 x 1")
      query.next()
      val lines = explained(query).linesIterator.toSeq
      assert(lines.exists(_.startsWith(s"Query ${query.query.id}")), lines)
      assert(lines.exists(_.contains(": 4 rows read; triggerExecution ")), lines)
      val Seq(outer, inner) = lines.filter(_.trim.startsWith("#")).map(_.trim)
      assert(inner.startsWith("# in 4, out -U 1 +U 1 -D 1 (churn 0.75), 1 unmatched, "), inner)
      assert(inner.contains(" ms in tasks, keeps 2 rows, "), inner)
      assert(outer.startsWith("# in 3, out +I 1 -D 2 (churn 1.00), "), outer)
      val tree = JsonMethods.parse(explained(query, "FORMAT JSON"))
      assert((tree \ "query" \ "rowsRead") == JInt(4))
      val nodes = (tree \\ "numbers" \\ "deletes").toString
      assert(nodes.contains("JInt(1)") && nodes.contains("JInt(2)"), nodes)
      query.stop()
      assert(explained(query).contains("has ended"))
    }
  }

  test("a picture is had of any query, with all that it needs within") {
    running(cascade) { query =>
      raw.add("+I 1 a 5")
      query.next()
      val page = explained(query, "FORMAT HTML")
      assert(page.startsWith("<!DOCTYPE html>") && page.contains("in 1, out +I 1"))
      Seq(page, spark.sql(s"EXPLAIN CHANGELOG FORMAT HTML $cascade").head().getString(0))
        .foreach { text =>
          assert("https?://[^\"]*".r.findAllIn(text).toSet == Set("http://www.w3.org/2000/svg"))
          assert(!text.contains("<script") && !text.contains("@import"))
        }
      val picture = explained(query, "FORMAT SVG")
      assert(scala.xml.XML.loadString(picture).label == "svg")
    }
  }

  test("a query that does not run is told of, with those that do") {
    val none = Map("name" -> "nobody's", "running" -> "none").toSeq
    checkError("CHANGELOG_QUERY_NOT_FOUND", none: _*) {
      spark.sql("EXPLAIN CHANGELOG QUERY 'nobody''s'").collect()
    }
  }
}
