// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.File
import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._
import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Row
import org.apache.spark.sql.functions._
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.lifetime.{ArrivingTable, OperatorQuery, ReadBatches}
import org.apache.spark.sql.changelog.sinks.KilledWriter
import org.apache.spark.sql.changelog.testing._

/**
 * Views show what batch Spark gives, whatever their query, and however often the process that keeps them
 * is killed.
 */
class ViewKillSuite extends AnyFunSuite with ChangelogSession {
  private val KillsOfOne = 2
  private val latestKillMillis = if (KilledWriter.isLong) 25000 else 8000
  private val random = new Random(KilledWriter.seed)
  private lazy val session = spark.newSession()

  /**
   * Views never wait until a row is final, and keep none that leaves as time passes; nor are there tables for
   * them that are no SQL.
   */
  private val queries = OperatorQuery.all
    .filter(query => query.ttl.isEmpty && !query.sql.contains("now()"))
    .filter(query => !query.sql.contains("mapped_") && !query.sql.contains("(names)"))
    .map(_.copy(mode = "retract", passed = None))

  test("views in Delta and in Parquet, and views over views") {
    ChangelogSession.Quick.foreach { case (key, value) => session.conf.set(key, value) }
    val formats = Iterator.continually(random.shuffle(Seq("delta", "parquet"))).flatten
    val drawn = Iterator.continually(random.shuffle(queries)).flatten
    val rounds = KilledWriter.rounds(few = 1)
    for (first <- 1 to rounds by KillsOfOne) {
      val (query, format) = (drawn.next(), formats.next())
      val kills = math.min(KillsOfOne, rounds - first + 1)
      val where = s"'${query.name}' in $format, kill $first and on of $rounds"
      withClue(s"$where, CHANGELOG_KILL_SEED=${KilledWriter.seed}: ") {
        new Killed(query, format).run(kills)
      }
      note(s"$kills kills of '${query.name}' in $format")
    }
  }

  /** A view of a query, and one of the other format over it. */
  private class Killed(query: OperatorQuery, format: String) {
    private val home = QuickFileSystem.temporaryDirectory().toPath
    private val feeds = Files.createDirectory(home.resolve("feeds"))
    private val tables = ArrivingTable.Names
      .map(name => name -> new ArrivingTable(name, feeds, random))
      .toMap
    private val other = if (format == "delta") "parquet" else "delta"
    private val schema = new ReadBatches(session, query, home, tables).schema
    private val counts =
      s"SELECT ${schema.head.name} AS k, count(*) AS n FROM rows GROUP BY ${schema.head.name}"
    private val countsSchema =
      new StructType().add("k", schema.head.dataType).add("n", "BIGINT")
    private val views = Seq(
      "first" -> statement("first", format, query.sql),
      "second" -> statement("second", other, counts.replace("rows", "STREAM first")))

    // the catalog that Spark's installation brings, which the tests' own jars lack
    private val writers = {
      val packages = new File(sys.props("spark.changelog.test.home"), ".venv/lib").listFiles()
      val jars = packages.map(new File(_, "site-packages/pyspark/jars")).filter(_.isDirectory)
      new ChildProcess(ViewWriter, home, jars.map(_.getPath + "/*").toSeq)
    }

    private val settings = ChildProcess.session(home) ++ ChangelogSession.DeltaConf +
      ("spark.sql.warehouse.dir" -> home.resolve("warehouse").toString)

    private def statement(name: String, format: String, query: String): String =
      s"CREATE MATERIALIZED VIEW IF NOT EXISTS $name USING $format AS $query"

    def run(kills: Int): Unit = {
      for (round <- 1 to kills) {
        tables.values.foreach(table => (0 to random.nextInt(2)).foreach(_ => table.add()))
        val process = start(if (round % 2 == 0) "run" else "refresh")
        check(told(process, "started"))
        Thread.sleep(random.nextInt(latestKillMillis).toLong)
        if (!process.isAlive) assert(process.exitValue() == 0, writers.said)
        process.destroyForcibly().waitFor()
      }
      tables.values.foreach(_.add())
      val last = start("refresh")
      check(told(last, "started"))
      val shown = told(last, "finished")
      val batches = check(shown)
      val all = batches.expected(batches.lastCommitted.get).get
      assert(rows(shown, "first", schema) == RowMultiset.of(all))
      assert(rows(shown, "second", countsSchema) == counted(all))
      tables.foreach { case (name, table) =>
        assert(
          Set(0, table.size).contains(batches.read(name)),
          s"not all files of $name were read")
      }
      last.waitFor()
    }

    private def start(how: String): Process = {
      val statements = views.flatMap { case (name, statement) => Seq(name, statement) }
      writers.start(Seq(ChildProcess.line(settings), how, feeds.toString) ++ statements: _*)
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

    /** Each view that is shown holds the rows of some batch, the first those of the last one written. */
    private def check(shown: Map[String, Seq[String]]): ReadBatches = {
      val checkpoint =
        shown
          .getOrElse("checkpoint", Nil)
          .find(_.startsWith("first "))
          .map(_.drop("first ".length))
      val batches =
        new ReadBatches(session, query, Path.of(checkpoint.getOrElse(home.toString)), tables)
      val results = (0L to batches.lastBegun.getOrElse(-1L)).map(batches.expected)
      val written = batches.lastCommitted.getOrElse(-1L).toInt
      val none = RowMultiset.of(Nil)
      if (results.forall(_.isDefined)) {
        val sets = none +: results.map(rows => RowMultiset.of(rows.get))
        val found = rows(shown, "first", schema)
        assert(sets.drop(written + 1).contains(found), s"of no batch since $written:\n$found")
        val counts = rows(shown, "second", countsSchema)
        val counted = none +: results.map(rows => this.counted(rows.get))
        assert(counted.contains(counts), s"of no batch:\n$counts")
      }
      batches
    }

    private def counted(all: Seq[Row]): RowMultiset = {
      session.createDataFrame(all.asJava, schema).createOrReplaceTempView("rows")
      RowMultiset.of(session.sql(counts).collect())
    }

    private def rows(
        shown: Map[String, Seq[String]],
        view: String,
        schema: StructType): RowMultiset = {
      import session.implicits._
      val json =
        shown.getOrElse(view, Nil).toDF("json").select(from_json(col("json"), schema).as("row"))
      RowMultiset.of(json.select("row.*").collect())
    }
  }
}
