// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.sql.Timestamp

import scala.util.Random

import org.apache.spark.sql.Row

/**
 * A query over tables whose rows have a time, drawn by a seed: windows that tumble, hop and cumulate, sessions,
 * functions over rows in the order of time, distinct values behind filters, the best rows of a window. The same for
 * the same seed.
 *
 * {{{
 *   t1  rows come, and in most programs go
 *   t2  the newest row of each key; in most programs it begins with a snapshot
 *   t3  rows only come, in the order of time; in every second program with a watermark
 * }}}
 *
 * No row comes after the watermark has passed it, so that batch Spark has the same rows.
 *
 * @param shape
 *   the query without what was put above it
 * @param snapshot
 *   what t2 begins with, if with anything
 */
final case class RandomEventProgram(
    program: Program,
    variant: Variant,
    shape: RandomEventProgram.Shape,
    snapshot: Option[RandomEventProgram.Snapshot]) {

  def reads(table: String): Boolean = RandomEventProgram.reads(program.sql, table)

  def hasWatermark: Boolean = reads("t3") && program.feeds.exists(_.watermark.isDefined)
}

object RandomEventProgram {
  val Columns = "k INT, x INT, s STRING, at TIMESTAMP"

  /** The table of Delta that [[Snapshot.Versioned]] reads. */
  val SnapshotTable = "beginning"

  /**
   * A query.
   *
   * @param keepsAll
   *   whether a watermark forgets nothing of it, and all its rows can be read from its state
   */
  final case class Shape(sql: String, keepsAll: Boolean = false)

  /** What a feed begins with. */
  sealed abstract class Snapshot(query: Seq[Row] => String) {
    def argument(rows: Seq[Row]): String = s"snapshot => TABLE(${query(rows)})"
  }

  object Snapshot {

    /** It stands in the query. */
    case object Written extends Snapshot(valuesOf)

    /** Of one with a limit a copy is made, which is kept for the first batch only. */
    case object Copied extends Snapshot(rows => s"${valuesOf(rows)} LIMIT 100")

    /** It is noted by its version, as of which it can be read again. */
    case object Versioned extends Snapshot(_ => s"SELECT * FROM $SnapshotTable")
  }

  def reads(sql: String, table: String): Boolean = s"\\b$table\\b".r.findFirstIn(sql).isDefined

  def apply(seed: Long): RandomEventProgram = {
    val random = new Random(seed)
    val values = new RandomValues(random, wraps = false, small = true)
    val snapshot = random.nextInt(5) match {
      case 0 => Some(Snapshot.Written)
      case 1 | 2 => Some(Snapshot.Copied)
      case 3 => Some(Snapshot.Versioned)
      case _ => None
    }
    val drawn = Feed("t2", Columns, key = Seq("k"))
    val rows = Iterator
      .continually(new RandomChangelog(random, drawn.copy(insertOnly = true), values).next())
      .flatten
      .map(_.row)
      .take(2 + random.nextInt(4))
      .toSeq
    val begins = rows.distinctBy(_.get(0)).filterNot(_.isNullAt(0))
    val first = Feed("t1", Columns) match {
      case feed if random.nextInt(4) == 0 => feed.copy(insertOnly = true)
      case feed if random.nextInt(3) == 0 => feed.copy(key = Seq("k"))
      case feed => feed
    }
    val second =
      drawn.copy(upsert = true, arguments = snapshot.map(_.argument(begins)).toSeq)
    val watermark = if (random.nextBoolean()) Some("at" -> "11 minutes") else None
    val third = Feed("t3", Columns, insertOnly = true, watermark = watermark)
    val feeds = Seq(first, second, third)

    val shape = new Shapes(random, feeds.map(_.name)).draw()
    val changelogs = feeds.map(feed => feed -> new RandomChangelog(random, feed, values))
    val steps = (0 until 3).map { number =>
      Step(changelogs.map { case (feed, changelog) =>
        val size = if (number == 0) 4 + random.nextInt(6) else Seq(0, 1, 2, 5)(random.nextInt(4))
        val changes = Seq.fill(size)(changelog.next()).flatten
        feed.name -> (if (feed == third) changes.map(later(_, number * MinutesOfStep))
                      else changes)
      }.toMap)
    }
    val conf =
      Seq(5 -> Variant.PerAttempt, 6 -> Variant.OnePhase, 2 -> ChangelogSession.Quick).flatMap {
        case (oneIn, conf) => if (random.nextInt(oneIn) == 0) conf else Nil
      }.toMap
    val snapshots = if (snapshot.isEmpty) Map.empty[String, Seq[Row]] else Map("t2" -> begins)
    new RandomEventProgram(
      Program(feeds, shape.sql, steps, snapshots = snapshots),
      Variant(restart = random.nextInt(6) == 0, conf = conf),
      shape,
      snapshot)
  }

  private val MinutesOfStep = 20

  private def later(change: Change, minutes: Int): Change =
    change.copy(row = Row.fromSeq(change.row.toSeq.map {
      case at: Timestamp => Timestamp.from(at.toInstant.plusSeconds(minutes * 60L))
      case other => other
    }))

  /** Rows as a query. */
  def valuesOf(rows: Seq[Row]): String = {
    val types = Seq("INT", "INT", "STRING", "TIMESTAMP")
    def literal(value: Any, dataType: String) =
      s"CAST(${if (value == null) "NULL" else s"'$value'"} AS $dataType)"
    val tuples = rows.map(_.toSeq.zip(types).map((literal _).tupled).mkString("(", ", ", ")"))
    s"SELECT * FROM VALUES ${tuples.mkString(", ")} AS v(k, x, s, at)"
  }

  /** Draws queries. */
  private class Shapes(random: Random, tables: Seq[String]) {

    def draw(): Shape = {
      val table = pick(tables)
      random.nextInt(8) match {
        case 0 => Shape(s"SELECT s, count(*) AS c, max(x) AS hi FROM $table GROUP BY s", true)
        case 1 =>
          val other = pick(tables)
          Shape(
            s"SELECT a.e, a.c, b.n AS other FROM (${grouped(table)}) a " +
              s"${pick(Seq("JOIN", "LEFT JOIN"))} " +
              s"(SELECT window.end AS f, count(*) AS n FROM $other GROUP BY window(at, '10 minutes')) b " +
              "ON a.e = b.f")
        case 2 => Shape(s"SELECT c, count(*) AS groups FROM (${grouped(table)}) GROUP BY c")
        case _ => Shape(single(table))
      }
    }

    private def single(table: String): String = random.nextInt(8) match {
      case 0 | 1 => grouped(table)
      case 2 => session(table)
      case 3 | 4 => inOrder(table)
      case 5 => distinct(table)
      case 6 =>
        "SELECT e, s, k, x, at, r FROM (SELECT *, row_number() OVER (PARTITION BY e ORDER BY x DESC, s, k, at) AS r " +
          s"FROM (SELECT *, window(at, '10 minutes').end AS e FROM $table)) WHERE r <= 2"
      case _ => s"SELECT s, x, k, at FROM $table ORDER BY at DESC, x, s, k LIMIT 3"
    }

    /** By windows. */
    private def grouped(table: String): String = {
      val by = pick(Seq("", "s, ", "k, "))
      val calls = pick(
        Seq("count(*) AS c", "count(*) AS c, sum(x) AS total", "count(*) AS c, min(k) AS lo"))
      random.nextInt(3) match {
        case 0 =>
          s"SELECT ${by}window.start AS b, window.end AS e, $calls FROM $table GROUP BY ${by}window(at, '10 minutes')"
        case 1 =>
          s"SELECT ${by}window.end AS e, $calls FROM $table GROUP BY ${by}window(at, '10 minutes', '5 minutes')"
        case _ =>
          // cumulating ones
          val steps =
            "explode(filter(array(2, 5, 10), step -> step > minute(at) % 10)) AS step"
          s"SELECT ${by}window.end AS e, step, $calls FROM (SELECT *, $steps FROM $table) GROUP BY ${by}step, window(at, '10 minutes')"
      }
    }

    private def session(table: String): String = {
      val calls = pick(
        Seq(
          "count(*) AS c",
          "count(*) AS c, sum(x) AS total",
          "count(DISTINCT k) AS n",
          "median(x) AS m"))
      s"SELECT s, session_window.start AS b, session_window.end AS e, $calls FROM $table GROUP BY s, session_window(at, '7 minutes')"
    }

    private def inOrder(table: String): String = {
      val full = "ORDER BY at, x, k, s"
      val call = pick(
        Seq(
          s"sum(x) OVER (PARTITION BY s $full ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
          "count(*) OVER (PARTITION BY s ORDER BY at RANGE BETWEEN INTERVAL 5 MINUTES PRECEDING AND CURRENT ROW)",
          "sum(k) OVER (PARTITION BY s ORDER BY at)",
          s"lag(x) OVER (PARTITION BY s $full)",
          s"row_number() OVER (PARTITION BY s $full)",
          "max(x) OVER (PARTITION BY s)"))
      s"SELECT k, x, s, at, $call AS w FROM $table"
    }

    private def distinct(table: String): String = {
      val calls = random
        .shuffle(
          Seq(
            "count(DISTINCT x) FILTER (WHERE k > 1)",
            "count(DISTINCT x)",
            "sum(DISTINCT k) FILTER (WHERE x IS NOT NULL)",
            "count(DISTINCT x) FILTER (WHERE at > TIMESTAMP'2026-01-01 00:05:00')",
            "count(DISTINCT k, at)"))
        .take(1 + random.nextInt(3))
      s"SELECT s, ${calls.zipWithIndex.map { case (call, n) => s"$call AS d$n" }.mkString(", ")}, count(*) AS c FROM $table GROUP BY s"
    }

    private def pick[T](choices: Seq[T]): T = choices(random.nextInt(choices.size))
  }
}
