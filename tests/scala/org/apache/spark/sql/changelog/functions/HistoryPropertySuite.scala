// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.functions

import scala.collection.mutable
import scala.util.Random

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/**
 * Random histories, with late, deleting, corrected and removed versions, after each batch against intervals computed
 * from all versions, and against the same statement as a batch.
 */
class HistoryPropertySuite extends SeedSuite(numSeeds = 6) {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Quick)

  private val columns = "op STRING, id INT, ts INT, v STRING, n INT, gone BOOLEAN"

  /** Queries whose rows are versions: columns `id`, `ts`, `v`, `n` and `gone`. */
  private val queries = Seq(
    "SELECT * FROM t",
    "SELECT id, ts, v, n, gone FROM t WHERE n > 0",
    "SELECT t.id, t.ts, concat(t.v, s.v) AS v, t.n, t.gone FROM t JOIN t s ON t.id = s.id AND s.ts = t.ts",
    "SELECT id, ts, max(v) AS v, cast(count(*) AS INT) AS n, max(gone) AS gone FROM t GROUP BY id, ts")

  override protected def checkSeed(seed: Long): Unit = {
    val random = new Random(seed)
    val sql = queries(random.nextInt(queries.size))
    val track = Seq(Nil, Seq("v"), Seq("v", "n"))(random.nextInt(3))
    val deletes = random.nextInt(3) > 0
    val feed = s"feed_${math.abs(seed)}"
    val raw = new RawStream(spark, feed, columns)
    def history(t: String): String = {
      val query = s"WITH t AS (SELECT * FROM $t) $sql"
      val tracked = if (track.isEmpty) "" else track.mkString(", track => array('", "', '", "')")
      val condition = if (deletes) ", delete_when => 'gone'" else ""
      s"SELECT * FROM to_changelog(TABLE($query), key => 'id', history => 'scd2', history_by => 'ts'$tracked$condition)"
    }
    val running = new RunningChanges(
      spark.sql(history(s"from_changelog(TABLE($feed), change_type => 'op')")),
      QuickFileSystem.temporaryDirectory())
    val rows = mutable.ArrayBuffer.empty[String]
    try
      for (batch <- 1 to 5) {
        raw.add(changes(random, rows): _*)
        running.next()
        val table = spark
          .createDataFrame(
            spark.sparkContext.parallelize(rows.toSeq.map(text => parse(s"+I $text")), 1),
            raw.toDF.schema)
          .drop("op")
        table.createOrReplaceTempView(s"all_$feed")
        val versions = spark.sql(s"WITH t AS (SELECT * FROM all_$feed) $sql").collect().toSeq
        val expected = intervals(versions, track, deletes)
        val emitted = FoldedChanges(running.all)
        assert(emitted == expected, s"after batch $batch of seed $seed: ${history(feed)}")
        val atOnce = spark.sql(history(s"all_$feed")).drop("_change_type").collect()
        assert(
          atOnce.map(TextChangelog.format).sorted.toSeq == expected,
          s"as a batch, seed $seed")
        if (random.nextInt(3) == 0) running.restart(repeats = random.nextBoolean())
      }
    finally running.stop()
  }

  private def parse(text: String): Row =
    Row.fromSeq(text.split(' ').toSeq.zip(Seq("s", "i", "i", "s", "i", "b")).map {
      case ("NULL", _) => null
      case (word, "i") => word.toInt
      case (word, "b") => word.toBoolean
      case (word, _) => word
    })

  /** Draws the changes of a batch, and applies them to `rows`. */
  private def changes(random: Random, rows: mutable.ArrayBuffer[String]): Seq[String] =
    Seq.fill(1 + random.nextInt(6)) {
      if (rows.nonEmpty && random.nextInt(4) == 0) {
        s"-D ${rows.remove(random.nextInt(rows.size))}"
      } else {
        val time = if (random.nextInt(15) == 0) "NULL" else (1 + random.nextInt(12)).toString
        val row = s"${1 + random.nextInt(2)} $time ${"abc" (random.nextInt(3))} " +
          s"${random.nextInt(3)} ${random.nextInt(4) == 0}"
        rows += row
        s"+I $row"
      }
    }

  /** Returns the intervals of versions, one by one and without windows. */
  private def intervals(versions: Seq[Row], track: Seq[String], deletes: Boolean): Seq[String] = {
    def ends(row: Row) = deletes && row.getAs[Boolean]("gone")
    def tracked(row: Row) = ends(row) +: track.map(row.getAs[Any](_))
    versions
      .filterNot(_.isNullAt(1))
      .groupBy(_.getInt(0))
      .values
      .flatMap { ofKey =>
        val inOrder = ofKey
          .groupBy(_.getInt(1))
          .toSeq
          .sortBy(_._1)
          .map(_._2.maxBy(row => (ends(row), row.getString(2), row.getInt(3), row.getBoolean(4))))
        val runs = mutable.ArrayBuffer.empty[(Int, Row)]
        inOrder.foreach { row =>
          val continues =
            track.nonEmpty && runs.lastOption.exists(run => tracked(run._2) == tracked(row))
          if (continues) runs(runs.size - 1) = (runs.last._1, row)
          else runs += (row.getInt(1) -> row)
        }
        runs.zipWithIndex.collect {
          case ((from, row), index) if !ends(row) =>
            val until = runs.lift(index + 1).map(_._1)
            TextChangelog.format(
              Row.fromSeq(row.toSeq ++ Seq(from, until.map(Int.box).orNull, until.isEmpty)))
        }
      }
      .toSeq
      .sorted
  }
}
