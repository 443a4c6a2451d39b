// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import scala.util.Random

import org.apache.spark.sql.changelog.testing._

/**
 * AUTO CDC with and without IGNORE NULL UPDATES, truncation and listed columns gives the rows of a plain fold over all
 * events, after each batch of a random feed with late, repeated, deleting and truncating events.
 */
class AutoCdcPropertySuite extends SeedSuite(numSeeds = 3) with ViewSession {
  private val numBatches = 3

  /** An event; `key` is None for one that empties the table. */
  private case class Event(
      key: Option[Int],
      a: Option[String],
      b: Option[Int],
      n: Int,
      gone: Boolean) {
    def sql: String = {
      def text[T](value: Option[T]) = value.fold("NULL")(_.toString)
      s"(${text(key)}, ${text(a.map(a => s"'$a'"))}, ${text(b)}, $n, $gone, ${key.isEmpty})"
    }
  }

  private type Row = (Option[String], Option[Int])

  override protected def checkSeed(seed: Long): Unit = {
    val random = new Random(seed)
    val (ignores, truncates) = (random.nextInt(4) > 0, random.nextBoolean())
    val (columns, hasB) =
      Seq("(k, a, b)" -> true, "* EXCEPT (n, gone, emptied)" -> true, "(K, A)" -> false)(
        random.nextInt(3))
    def flow(scdType: Int): String =
      s"""CREATE FLOW f AS AUTO CDC INTO rows_$scdType FROM STREAM feed KEYS (k)
         |${if (ignores) "IGNORE NULL UPDATES" else ""} APPLY AS DELETE WHEN gone
         |${if (truncates) "APPLY AS TRUNCATE WHEN emptied" else ""}
         |SEQUENCE BY n COLUMNS $columns STORED AS SCD TYPE $scdType""".stripMargin
    val types = if (truncates) Seq(1) else Seq(1, 2)
    run(
      "CREATE TABLE feed (k INT, a STRING, b INT, n INT, gone BOOLEAN, emptied BOOLEAN) USING parquet")
    try {
      val all = batches(random, truncates)
      for (number <- all.indices) {
        run(s"INSERT INTO feed VALUES ${all(number).map(_.sql).mkString(", ")}")
        val events = all.take(number + 1).flatten.distinct.sortBy(_.n)
        for (scdType <- types) {
          if (number == 0) run(flow(scdType))
          else run(s"REFRESH MATERIALIZED VIEW rows_$scdType INCREMENTAL STRICT")
          val rows = run(s"SELECT * FROM rows_$scdType").map(TextChangelog.format).sorted
          val expected =
            if (scdType == 1) latest(events, ignores, hasB) else history(events, ignores, hasB)
          assert(rows == expected.sorted, s"after batch $number of seed $seed: ${flow(scdType)}")
        }
      }
    } finally {
      types.foreach(scdType => run(s"DROP MATERIALIZED VIEW IF EXISTS rows_$scdType"))
      run("DROP TABLE feed")
    }
  }

  private def after(before: Option[Row], event: Event, ignores: Boolean): Option[Row] =
    Option.when(!event.gone) {
      val kept = before.filter(_ => ignores)
      (event.a.orElse(kept.flatMap(_._1)), event.b.orElse(kept.flatMap(_._2)))
    }

  private def text(key: Int, row: Row, hasB: Boolean): String =
    (Seq(key.toString, row._1.getOrElse("NULL")) ++
      Option.when(hasB)(row._2.fold("NULL")(_.toString))).mkString(" ")

  private def latest(events: Seq[Event], ignores: Boolean, hasB: Boolean): Seq[String] =
    events
      .foldLeft(Map.empty[Int, Row]) { (rows, event) =>
        event.key.fold(Map.empty[Int, Row]) { key =>
          after(rows.get(key), event, ignores).fold(rows - key)(row => rows + (key -> row))
        }
      }
      .map { case (key, row) => text(key, row, hasB) }
      .toSeq

  private def history(events: Seq[Event], ignores: Boolean, hasB: Boolean): Seq[String] =
    events.groupBy(_.key.get).toSeq.flatMap { case (key, ofKey) =>
      val rows = ofKey.scanLeft(Option.empty[Row])(after(_, _, ignores)).tail
      val shown = rows.map(_.map(text(key, _, hasB)))
      val starts = shown.indices.filter(i => i == 0 || shown(i) != shown(i - 1))
      starts.zipWithIndex.flatMap { case (start, place) =>
        val end = starts.lift(place + 1).fold("NULL")(ofKey(_).n.toString)
        shown(start).map(row => s"$row ${ofKey(start).n} $end")
      }
    }

  private def batches(random: Random, truncates: Boolean): Seq[Seq[Event]] = {
    def maybe[T](value: => T) = Option.when(random.nextInt(2) > 0)(value)
    val events = for (n <- 1 to 30) yield {
      if (truncates && random.nextInt(8) == 0) Event(None, None, None, n, gone = false)
      else {
        val (a, b) = (maybe("xy" (random.nextInt(2)).toString), maybe(random.nextInt(2)))
        Event(Some(1 + random.nextInt(3)), a, b, n, random.nextInt(5) == 0)
      }
    }
    val all = random.shuffle(events ++ events.filter(_ => random.nextInt(5) == 0))
    all.grouped((all.size + numBatches - 1) / numBatches).toSeq
  }
}
