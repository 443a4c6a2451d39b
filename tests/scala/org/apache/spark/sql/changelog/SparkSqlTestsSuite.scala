// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import java.nio.file.{Files, Paths}

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing.ChangelogSession
import org.apache.spark.sql.changelog.testing.sqltests._

/**
 * The queries by which Spark tests itself, over tables that change: each must give what batch Spark
 * gives, or be refused by an error of ours. What does neither stands in
 * `tests/resources/sqltests/exceptions.txt` with the reason.
 *
 * A few are tried each time. With `CHANGELOG_SQL_TESTS` set (see `dev/sqltests`) all those of files
 * whose names begin so, or so.
 */
class SparkSqlTestsSuite extends AnyFunSuite with ChangelogSession {
  import SparkSqlTestsSuite._

  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Quick)
  private val outcomes = mutable.Map.empty[(String, String), Int].withDefaultValue(0)
  private val refusals = mutable.Map.empty[String, Int].withDefaultValue(0)
  private val failures = mutable.ArrayBuffer.empty[String]

  sys.env.get("CHANGELOG_SQL_TESTS") match {
    case Some(prefixes) =>
      test(s"all queries of $prefixes") {
        SqlTestFile.names
          .filter(name => prefixes.split(' ').exists(name.startsWith))
          .foreach(run(_, _ => true))
        finish()
      }
    case None =>
      test("some queries") {
        val random = new Random(Seed)
        val files = random.shuffle(SqlTestFile.names).iterator
        val end = System.nanoTime() + MaxSeconds * 1000000000L
        while (outcomes.values.sum < NumQueries && System.nanoTime() < end && files.hasNext) {
          run(files.next(), _ => random.nextInt(10) == 0)
        }
        assert(outcomes.nonEmpty)
        finish()
      }
  }

  private def run(name: String, chosen: NumberedQuery => Boolean): Unit = {
    val begin = System.nanoTime()
    val before = outcomes.values.sum
    new SqlTestRun(spark, SqlTestFile(name), chosen).run(judge)
    val seconds = (System.nanoTime() - begin) / 1000000000L
    println(s"$name: ${outcomes.values.sum - before} queries, $seconds s")
  }

  private def finish(): Unit = {
    print(table)
    refusals.toSeq.sortBy(-_._2).foreach { case (condition, n) => println(s"$n $condition") }
    assert(failures.isEmpty, s"${failures.size} queries failed: ${failures.mkString(", ")}")
  }

  private def judge(query: NumberedQuery, outcome: Outcome): Unit = {
    val listed = Listed.contains(query.toString)
    outcomes((query.file.folder, if (listed) "listed" else outcome.name)) += 1
    val failure = outcome match {
      case Outcome.Wrong(difference) => Some(difference)
      case Outcome.Crashed(error) => Some(describe(error))
      case Outcome.Refused(condition, message) =>
        println(s"-- refused: $query: $message")
        refusals(condition) += 1
        None
      case _ => None
    }
    failure match {
      case Some(what) if !listed =>
        println(s"== ${outcome.name}: $query\n${query.sql}\n-> $what\n")
        failures += query.toString
      case None if listed =>
        println(s"== $query is listed, and need not be: ${outcome.name}")
        failures += query.toString
      case _ =>
    }
  }

  private def describe(error: Throwable): String = {
    val cause = Iterator.iterate(error)(_.getCause).takeWhile(_ != null).toSeq.last
    val message = cause.toString.linesIterator.take(4).mkString("\n")
    message + cause.getStackTrace.take(6).map(frame => s"\n  at $frame").mkString
  }

  private def table: String = {
    val kinds = Seq("equal", "refused", "several answers", "listed", "wrong", "crashed")
    val folders = outcomes.keys.map(_._1).toSeq.distinct.sorted
    val lines = (folders :+ "all").map { folder =>
      kinds.map { kind =>
        outcomes.collect {
          case ((where, what), n) if what == kind && (where == folder || folder == "all") => n
        }.sum
      }
    }
    val text = ("folder" +: kinds).mkString("| ", " | ", " |") +:
      (folders :+ "all").zip(lines).map { case (folder, counts) =>
        (folder +: counts.map(_.toString)).mkString("| ", " | ", " |")
      }
    text.mkString("", "\n", "\n")
  }
}

private object SparkSqlTestsSuite {
  private val Seed = 20261123L
  private val NumQueries = 15
  private val MaxSeconds = 30

  /** Queries that fail for a reason that is written down. */
  private lazy val Listed: Set[String] = {
    val home = Paths.get(sys.props("spark.changelog.test.home"))
    val file = home.resolve("tests/resources/sqltests/exceptions.txt")
    val lines = Files.readAllLines(file).asScala.filter(line => line.nonEmpty && line.head != '#')
    lines.map(_.takeWhile(_ != ':')).toSet
  }
}
