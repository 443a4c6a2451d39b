// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** Aggregates by `session_window`, whose bounds any row may move. */
class ReplayedSessionSuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Quick)

  private lazy val oracle = new Oracle(spark)
  private val variants = Seq(Variant(), Variant(restart = true, conf = Variant.RocksDB))
  private val clicks = Feed("clicks", "who STRING, at TIMESTAMP, n INT")
  private val appended = clicks.copy(insertOnly = true)

  private def at(minutes: Int*): Seq[String] =
    minutes.map(minute => f"+I ann 2024-01-01T10:$minute%02d:00 $minute")

  private val perSession =
    "SELECT session_window.start AS start, session_window.end AS end, count(*) AS n"

  test("a row that merges two sessions takes both back") {
    val program = Program(
      Seq(appended),
      s"$perSession FROM clicks GROUP BY who, session_window(at, '10 minutes')",
      Seq(
        Step(appended, at(0, 3, 20): _*),
        Step(appended, at(12): _*),
        Step(appended, at(21): _*)))
    val emitted = oracle
      .check(program)
      .map(_.map { change =>
        val Seq(start, end) = Seq(0, 1).map(change.row.getTimestamp(_).toLocalDateTime.getMinute)
        s"${change.kind} $start $end ${change.row.getLong(2)}"
      }.toSet)
    assert(
      emitted == Seq(
        Set("+I 0 13 2", "+I 20 30 1"),
        Set("-D 0 13 2", "-D 20 30 1", "+I 0 30 4"),
        Set("-D 0 30 4", "+I 0 31 5")))
    Share.check(oracle, program, variants)
  }

  test("sessions split, shrink and go, with functions of every kind") {
    val steps = Seq(
      Step(clicks, at(0, 3, 8, 8, 30) :+ "+I bob 2024-01-01T10:05:00 1": _*),
      Step(clicks, "-D ann 2024-01-01T10:08:00 8", "+I bob NULL 1"),
      Step(
        clicks,
        "-D ann 2024-01-01T10:08:00 8",
        "-U ann 2024-01-01T10:30:00 30",
        "+U ann 2024-01-01T10:12:00 30"),
      Step(clicks, "-D bob 2024-01-01T10:05:00 1", "-D ann 2024-01-01T10:03:00 3"))
    def check(select: String, groups: String): Unit =
      Share.check(
        oracle,
        Program(Seq(clicks), s"SELECT $select FROM clicks GROUP BY $groups", steps))
    check(
      "who, session_window, count(*), sum(n), sort_array(collect_list(n)), median(n)",
      "who, session_window(at, '10 minutes')")
    check(
      "count(DISTINCT n), max(n), session_window.end",
      "session_window(at, '10 minutes'), who")
    check("session_window.start, sum(n)", "session_window(at, '10 minutes')")
    check("who, session_window", "who, session_window(at, '10 minutes')")
    check(
      "who, session_window, count(*)",
      "session_window(at, CASE WHEN n > 5 THEN '2 minutes' ELSE '5 minutes' END), who")
  }
}
