// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.File
import java.nio.file.Files

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.functions._
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.sinks.KilledWriter
import org.apache.spark.sql.changelog.testing._

/** Views show what batch Spark gives, however often the process that keeps them is killed. */
class ViewKillSuite extends AnyFunSuite with ChangelogSession {
  private val totals = "SELECT city, count(*) AS n, sum(fare) AS total FROM rides GROUP BY city"
  private val counts = "SELECT n, count(*) AS cities FROM totals GROUP BY n"
  private val changes =
    "from_changelog(TABLE(SELECT * FROM STREAM changes), 'op', key => array('id'))"

  /** Views of cities, and views of those in the other format: their query over `rides`, and columns. */
  private val views = Seq("delta" -> "parquet", "parquet" -> "delta")
    .take(if (KilledWriter.isLong) 2 else 1)
    .flatMap { case (format, other) =>
      val (first, second) = (s"of_$format", s"over_$format")
      Seq(
        View(
          first,
          format,
          totals.replace("rides", changes),
          totals,
          "city STRING, n BIGINT, total BIGINT"),
        View(
          second,
          other,
          counts.replace("totals", s"STREAM $first"),
          counts.replace("totals", s"($totals)"),
          "n BIGINT, cities BIGINT"))
    }

  private case class View(
      name: String,
      format: String,
      query: String,
      batchQuery: String,
      columns: String) {
    def statement: String =
      s"CREATE MATERIALIZED VIEW IF NOT EXISTS $name USING $format AS $query"
  }

  private val latestKillMillis = if (KilledWriter.isLong) 25000 else 8000

  private val home = QuickFileSystem.temporaryDirectory().toPath
  private val feed = Files.createDirectory(home.resolve("feed"))
  private val random = new Random(KilledWriter.seed)
  private lazy val files = new ChangeFiles(spark, feed, random)

  // the catalog that Spark's installation brings, which the tests' own jars lack
  private val writers = {
    val packages = new File(sys.props("spark.changelog.test.home"), ".venv/lib").listFiles()
    val jars = packages.map(new File(_, "site-packages/pyspark/jars")).filter(_.isDirectory)
    new ChildProcess(ViewWriter, home, jars.map(_.getPath + "/*").toSeq)
  }

  private val settings = ChildProcess.session(home) ++ ChangelogSession.DeltaConf +
    ("spark.sql.warehouse.dir" -> home.resolve("warehouse").toString)

  private def start(how: String): Process = {
    val table = s"CREATE TABLE IF NOT EXISTS changes (${ChangeFiles.Columns}, op STRING) " +
      s"USING json OPTIONS (maxFilesPerTrigger 1) LOCATION '$feed'"
    val statements = views.flatMap(view => Seq(view.name, view.statement))
    writers.start(Seq(ChildProcess.line(settings), how, table) ++ statements: _*)
  }

  /** What a process tells until it says `word`: the rows of each view there is. */
  private def told(process: Process, word: String): Map[String, Seq[String]] = {
    val lines =
      Iterator.continually(process.inputReader().readLine()).takeWhile(_ != word).map { line =>
        assert(line != null, s"it did not get to '$word':\n${writers.said}")
        val Array(name, row) = line.split(" ", 2)
        name -> row
      }
    lines.toSeq.groupMap(_._1)(_._2)
  }

  private def rows(view: View, json: Seq[String]): RowMultiset = {
    val session = spark
    import session.implicits._
    val schema = StructType.fromDDL(view.columns)
    RowMultiset.of(
      json
        .toDF("json")
        .select(from_json(col("json"), schema).as("row"))
        .select("row.*")
        .collect())
  }

  private def expected(view: View, number: Int): RowMultiset =
    RowMultiset.of(files.expected(view.batchQuery, number))

  test("views in Delta and in Parquet, and views over views") {
    val rounds = KilledWriter.rounds(few = 1)
    def clue(round: Int) = s"round $round of $rounds, CHANGELOG_KILL_SEED=${KilledWriter.seed}: "
    for (round <- 1 to rounds) withClue(clue(round)) {
      (0 to random.nextInt(2)).foreach(_ => files.add())
      val process = start(if (round % 2 == 0) "run" else "refresh")
      val shown = told(process, "started")
      views.foreach { view =>
        val found = rows(view, shown.getOrElse(view.name, Nil))
        assert((0 to files.size).exists(expected(view, _) == found), s"of no batch:\n$found")
      }
      Thread.sleep(random.nextInt(latestKillMillis).toLong)
      if (!process.isAlive) assert(process.exitValue() == 0, writers.said)
      process.destroyForcibly().waitFor()
    }
    withClue(clue(rounds + 1)) {
      files.add()
      val last = start("refresh")
      told(last, "started")
      val shown = told(last, "finished")
      views.foreach { view =>
        assert(rows(view, shown.getOrElse(view.name, Nil)) == expected(view, files.size), view)
      }
      last.waitFor()
    }
  }
}
