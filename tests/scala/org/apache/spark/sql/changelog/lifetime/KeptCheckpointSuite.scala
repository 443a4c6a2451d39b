// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.lifetime

import java.io.{FileInputStream, FileOutputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}
import java.util.zip.{ZipEntry, ZipInputStream, ZipOutputStream}

import scala.jdk.CollectionConverters._
import scala.util.Random

import org.apache.commons.io.FileUtils
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.{DataFrame, Row}

import org.apache.spark.sql.changelog.testing.{
  ChangelogSession, ErrorChecks, QuickFileSystem, RowMultiset, Share
}

/**
 * Queries of every operator go on from checkpoints that an earlier version has written, each with
 * one of the state stores, and those of some operators with each.
 *
 * `tests/resources/upgrade/<version>/operators` holds the files of both tables, and a checkpoint of
 * each query as it was after the first of them, with what the query had emitted. A new version adds
 * its own (`SPARK_GENERATE_GOLDEN_FILES=1`), as does a new query; what is there is left alone, unless
 * release notes say that a query needs a new checkpoint: then its file is to be deleted first. Another
 * line of Spark than the main one has a folder of its own, with a query of each family of operators in one store; both
 * go on from the other's.
 *
 * Many of them are forked before they go on, and go on as another query afterwards, or are kept from it, as by a
 * watermark. Unless all is tested, every second query goes on, and those of each family, in one way each.
 */
class KeptCheckpointSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  import OperatorQuery.OfEachFamily

  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.MostlyInterpreted)

  private val MainLine = "4.2"

  private val resources =
    Paths.get(sys.props("spark.changelog.test.home"), "tests/resources/upgrade")
  private val line = SPARK_VERSION.split('.').take(2).mkString(".")
  private val isOnMainSpark = line == MainLine
  private val newest = if (isOnMainSpark) "0.1.0" else s"0.1.0-spark-$line"

  /** The line of Spark with which the checkpoints of a version were made. */
  private def lineOf(version: String): String =
    version.split("-spark-").lift(1).getOrElse(MainLine)

  /** Whether Spark words a query otherwise than `version`: since 4.2 `collect_list` says whether it keeps NULLs. */
  private def isReworded(query: OperatorQuery, version: String): Boolean =
    query.name == "replayed aggregate" && (lineOf(version) == "4.1") != ChangelogSession.isSpark41

  /** Whether EVOLVE rebuilds a query: typed functions record how they read their input, which has changed since. */
  private def isRebuilt(query: OperatorQuery): Boolean = query.name == "grouped map"

  /** How many files of each table a kept checkpoint has read, and how many there are. */
  private val FilesBefore = 2
  private val FilesInAll = 4

  private val generates = sys.env.get("SPARK_GENERATE_GOLDEN_FILES").contains("1")

  /** Stands for the feeds' folder in the checkpoints kept. */
  private val Feeds = "/feeds"

  private def folderOf(version: String): Path = resources.resolve(version).resolve("operators")

  private def isKept(version: String, zip: String): Boolean =
    Files.exists(folderOf(version).resolve(zip))

  private val versions = Option(resources.toFile.list()).fold(Seq.empty[String])(_.toSeq).sorted

  /** What a query is changed to, and what is to become of its operators. */
  private case class Change(edit: String => String, states: Set[String])

  private def where(condition: String): Change =
    Change(sql => s"SELECT * FROM ($sql) WHERE $condition", Set("kept"))

  private def adding(column: String, states: String*): Change =
    Change(sql => s"SELECT *, $column AS added FROM ($sql)", states.toSet)

  private val Forked: Map[String, Change] = Map(
    "aggregate" -> where("n > 1"),
    "extremes" -> where("hi > lo"),
    "distinct" -> where("d > 1"),
    "cascade" -> adding("(SELECT count(*) FROM u)", "kept", "rebuilt"),
    "inner join" -> adding("v + w", "kept"),
    "shared parts" -> adding("s + c", "kept"),
    "temporal join" -> adding("v + w", "rebuilt", "dropped"),
    "rank, all rows" -> where("v > 3"),
    "normalize" -> adding("v + 1", "kept"),
    "replayed aggregate" -> where("m > 10"),
    "replayed window" -> where("s > 20"),
    "grouped map" -> adding("n + 1", "kept"),
    "unique" -> where("n > 1"))

  /** What keeps some from becoming others. */
  private val Bounded: Map[String, String] =
    Seq("sessions", "running window", "windows that are over")
      .map(_ -> "state older than the watermark is gone")
      .toMap ++ Map(
      "rows that leave" -> "rows deleted by ROW_TTL would return",
      "lookup join" -> "with the current table of lookup")

  private def slug(name: String): String = name.replaceAll("\\W+", "-")

  /** Each query with a state store that it is kept with, and the file's name. */
  private val kept: Seq[(OperatorQuery, (String, Map[String, String]), String)] =
    OperatorQuery.all.zipWithIndex.flatMap { case (query, index) =>
      val (usual, others) = RunningQueries.Providers.zipWithIndex.partition { case (_, number) =>
        number == index % RunningQueries.Providers.size
      }
      val more = if (OfEachFamily(query.name)) others else Nil
      usual.map { case (provider, _) => (query, provider, s"${slug(query.name)}.zip") } ++
        more.map { case (provider, _) =>
          (query, provider, s"${slug(query.name)}-${slug(provider._1)}.zip")
        }
    }

  /** Those of each family in their usual store, and some of the others. */
  private val tested =
    if (generates) kept
    else {
      val (ofFamilies, others) = kept.partition { case (query, _, zip) =>
        OfEachFamily(query.name) && zip == s"${slug(query.name)}.zip"
      }
      ofFamilies ++ Share.of(others, oneIn = 6)
    }

  /**
   * Versions of which a checkpoint goes on as another query, or is kept from it: one of them, unless all
   * is tested.
   */
  private def changedOf(query: OperatorQuery, zip: String): Seq[String] = {
    val possible = versions.filter { version =>
      isKept(version, zip) &&
      (Forked.contains(query.name) && !isReworded(query, version) && !isRebuilt(query) ||
        Bounded.contains(query.name))
    }
    if (possible.isEmpty) Nil else Share.ofWays(possible, zip)
  }

  /** Whether a checkpoint only goes on as it was. What is forked, or changed, goes on before that, too. */
  private def goesOn(query: OperatorQuery, zip: String, version: String): Boolean =
    Share.isAll || generates || !changedOf(query, zip).contains(version)

  private def isToBeKept(query: OperatorQuery, zip: String): Boolean =
    isOnMainSpark || OfEachFamily(query.name) && zip == s"${slug(query.name)}.zip"

  if (generates) test("write the tables' files") {
    val feeds = QuickFileSystem.temporaryDirectory().toPath
    val random = new Random(1)
    ArrivingTable.Names.foreach { name =>
      val table = new ArrivingTable(name, feeds, random)
      (1 to FilesInAll).foreach(_ => table.add())
    }
    val target = folderOf(newest).resolve("feeds")
    if (!Files.exists(target)) FileUtils.copyDirectory(feeds.toFile, target.toFile)
  }

  for ((query, (provider, conf), zip) <- tested) {
    if (generates && !isKept(newest, zip) && isToBeKept(query, zip))
      test(s"write the checkpoint of ${query.name}, state $provider") {
        val started = new Started(newest, query, conf)
        started.run()
        write(started.home, query.name, folderOf(newest).resolve(zip))
      }

    versions
      .filter(version => isKept(version, zip) || generates && version == newest)
      .filter(version => goesOn(query, zip, version))
      .foreach { version =>
        test(s"${query.name}, state $provider, from a checkpoint of version $version") {
          val started = new Started(version, query, conf)
          read(folderOf(version).resolve(zip), started.home, query.name)
          if (!isReworded(query, version)) started.goOn()
          else {
            val error = checkError("CHANGELOG_QUERY_CHANGED")(started.run())
            assert(error.getMessage.contains(s"Spark: was ${lineOf(version)}."), error)
          }
        }
      }
  }

  for {
    (query, (provider, conf), zip) <- tested
    change <- Forked.get(query.name).toSeq
    version <- changedOf(query, zip)
  } test(s"${query.name}, state $provider, from version $version, is forked, and changed") {
    val started = new Started(version, query, conf)
    read(folderOf(version).resolve(zip), started.home, query.name)
    started.fork()
    started.goOn()
    started.change(change.edit(query.sql), change.states)
  }

  for {
    (query, (provider, conf), zip) <- tested
    obstacle <- Bounded.get(query.name)
    version <- changedOf(query, zip)
  } test(s"${query.name}, state $provider, from version $version, can't become another") {
    val started = new Started(version, query, conf)
    read(folderOf(version).resolve(zip), started.home, query.name)
    started.goOn()
    val error = checkError("CHANGELOG_EVOLUTION_NOT_POSSIBLE") {
      started.change(s"SELECT DISTINCT * FROM (${query.sql})", Set.empty)
    }
    val reason = error.getMessageParameters.get("reason")
    assert(reason.contains(obstacle), reason)
    // it goes on as it was
    started.run()
  }

  /** A query over the kept files of a version. */
  private class Started(version: String, query: OperatorQuery, conf: Map[String, String]) {
    val home: Path = QuickFileSystem.temporaryDirectory().toPath
    private val tables = ArrivingTable.Names.map { name =>
      name -> new ArrivingTable(name, home.resolve("feeds"), new Random(0))
    }.toMap
    private val judged = {
      val session = spark.newSession()
      session.conf.set("spark.sql.codegen.wholeStage", "false")
      new JudgedQuery(session, query, home.resolve(query.name), tables)
    }
    (0 until FilesBefore).foreach(arrive)

    private def arrive(number: Int): Unit = tables.foreach { case (name, table) =>
      val file = folderOf(version).resolve(f"feeds/$name/$number%05d.json")
      table.arrive(Files.readString(file))
    }

    /** Runs it over the files that are there, and over more as they arrive. */
    def run(more: Range = 0 until 0): Unit = {
      val session = spark.newSession()
      // what a query has that was begun by a version that knew no such setting is not touched by it
      val others = Option.when(version != newest)("spark.sql.changelog.state.partitions" -> "3")
      (conf + ("spark.sql.shuffle.partitions" -> "1") ++ others).foreach { case (key, value) =>
        session.conf.set(key, value)
      }
      val running = QueryRunner.start(session, home, query)
      try {
        running.processAllAvailable()
        more.foreach { number =>
          arrive(number)
          running.processAllAvailable()
        }
      } finally running.stop()
      judged.judge()
    }

    /** Goes on from a checkpoint; what it holds is compared with batch Spark after each file. */
    def goOn(): Unit = {
      judged.judge()
      val before = judged.compared
      assert(before >= FilesBefore)
      run(more = FilesBefore until FilesInAll)
      assert(judged.compared >= before + FilesInAll - FilesBefore)
    }

    private def checkpoint: Path = home.resolve(query.name).resolve("checkpoint")

    /** Puts a fork of the checkpoint in its place. */
    def fork(): Unit = {
      val made = home.resolve("fork")
      spark.sql(s"FORK CHECKPOINT '$checkpoint' INTO '$made'")
      FileUtils.deleteDirectory(checkpoint.toFile)
      Files.move(made, checkpoint)
      ()
    }

    /**
     * Goes on as another query, and compares its rows with batch Spark.
     *
     * @param states
     *   what is to become of its operators
     */
    def change(sql: String, states: Set[String]): Unit = {
      val session = spark.newSession()
      conf.foreach { case (key, value) => session.conf.set(key, value) }
      ArrivingTable.stream(session, home.resolve("feeds"))
      val changes = query.copy(sql = sql).changes
      val into = home.resolve("changed")
      val fates =
        session.sql(s"EVOLVE CHECKPOINT '$checkpoint' INTO '$into' AS $changes").collect()
      assert(fates.map(_.getString(1)).toSet == states, fates.mkString("\n"))
      val held = new RowMultiset
      val running = session
        .sql(changes)
        .writeStream
        .option("checkpointLocation", into.toString)
        .foreachBatch { (batch: DataFrame, _: Long) =>
          batch.collect().foreach { row =>
            val isGone = Set("delete", "update_preimage")(row.getString(row.size - 1))
            held.add(Row.fromSeq(row.toSeq.init), if (isGone) -1 else 1)
          }
        }
        .start()
      try running.processAllAvailable()
      finally running.stop()
      val batch = spark.newSession()
      tables.values.foreach { table =>
        table.read(batch, table.size, Seq.fill(table.size)(0L), None)
      }
      assert(held == RowMultiset.of(batch.sql(sql).collect()))
    }
  }

  /** Keeps a query's folder, whose source's log names files by their full path. */
  private def write(home: Path, query: String, zip: Path): Unit = {
    val root = home.resolve(query)
    val output = new ZipOutputStream(new FileOutputStream(zip.toFile))
    try
      FileUtils.listFiles(root.toFile, null, true).asScala.toSeq.map(_.toPath).sorted.foreach {
        file =>
          val entry = new ZipEntry(root.relativize(file).toString)
          entry.setTime(0)
          output.putNextEntry(entry)
          output.write(moved(file, Files.readAllBytes(file), s"$home/feeds", Feeds))
          output.closeEntry()
      }
    finally output.close()
  }

  private def read(zip: Path, home: Path, query: String): Unit = {
    val input = new ZipInputStream(new FileInputStream(zip.toFile))
    try
      Iterator.continually(input.getNextEntry).takeWhile(_ != null).foreach { entry =>
        val file = home.resolve(query).resolve(entry.getName)
        Files.createDirectories(file.getParent)
        Files.write(file, moved(file, input.readAllBytes(), Feeds, s"$home/feeds"))
      }
    finally input.close()
  }

  private def moved(file: Path, bytes: Array[Byte], from: String, to: String): Array[Byte] =
    if (!file.toString.contains("/sources/")) bytes
    else new String(bytes, UTF_8).replace(from, to).getBytes(UTF_8)
}
