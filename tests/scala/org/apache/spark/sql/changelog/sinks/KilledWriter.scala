// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import java.io.File
import java.lang.ProcessBuilder.Redirect
import java.lang.management.ManagementFactory
import java.nio.file.{Files, Path}
import java.util.concurrent.TimeUnit

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Random

import org.scalatest.Assertions._

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.testing._

/**
 * Writes random changes through a sink by a process that is killed again and again, and compares
 * what is kept with batch Spark.
 *
 * @param queries
 *   the queries that are kept, each by the sink's format and options
 * @param conf
 *   settings of the process that writes
 */
class KilledWriter(
    spark: SparkSession,
    queries: Seq[KilledWriter.Query],
    conf: Map[String, String] = Map.empty) {
  import KilledWriter._

  private val seed = sys.env.get("CHANGELOG_KILL_SEED").fold(System.nanoTime())(_.toLong)
  private val random = new Random(seed)
  private val home = QuickFileSystem.temporaryDirectory().toPath
  private val feed = Files.createDirectory(home.resolve("feed"))
  private val table = mutable.Map.empty[Int, (String, Int)]
  private val versions = mutable.ArrayBuffer(Seq.empty[Row])

  /**
   * Runs the process `rounds` times until it is killed, then once to its end.
   *
   * @param target
   *   reads what is kept
   * @param atomic
   *   whether what is kept must be the result of some batch also after a kill
   */
  def run(rounds: Int, atomic: Boolean)(target: => Seq[Row]): Unit = {
    for (round <- 1 to rounds) withClue(s"round $round of $rounds, CHANGELOG_KILL_SEED=$seed: ") {
      (1 to FilesPerRound).foreach(_ => addFile())
      val writer = start()
      Thread.sleep(random.nextInt(LatestKillMillis).toLong)
      if (!writer.isAlive) assert(writer.exitValue() == 0, said())
      writer.destroyForcibly().waitFor()
      if (atomic) {
        val kept = RowMultiset.of(target)
        assert(versions.indices.exists(expected(_) == kept), s"of no batch:\n$kept")
      }
    }
    addFile()
    val last = start()
    assert(last.inputReader().readLine() == "finished", s"CHANGELOG_KILL_SEED=$seed\n${said()}")
    assert(last.waitFor(60, TimeUnit.SECONDS))
    val kept = RowMultiset.of(target)
    assert(kept == expected(versions.size - 1), s"CHANGELOG_KILL_SEED=$seed")
  }

  /** A process in which the queries run. */
  private def start(): Process = {
    val flags = ManagementFactory.getRuntimeMXBean.getInputArguments.asScala
      .filterNot(flag => flag.startsWith("-Xmx") || flag.startsWith("-agent"))
    val java = Path.of(sys.props("java.home"), "bin", "java").toString
    val classPath =
      Seq("-cp", sys.props("java.class.path"), SinkWriter.getClass.getName.stripSuffix("$"))
    val command = java +: "-Xmx1g" +: (flags ++ classPath).toSeq
    val log = new File(home.toFile, "writer.log")
    val writer = new ProcessBuilder(command.asJava)
      .redirectError(Redirect.appendTo(log))
      .start()
    val settings = Map(
      "spark.sql.extensions" -> "io.sparkchangelog.ChangelogExtensions",
      "spark.ui.enabled" -> "false",
      "spark.sql.shuffle.partitions" -> "2",
      "spark.sql.session.timeZone" -> "UTC",
      "spark.local.dir" -> home.resolve("local").toString) ++ conf
    val input = writer.outputWriter()
    input.write(line(settings))
    queries.zipWithIndex.foreach { case (query, index) =>
      val checkpoint = home.resolve(s"checkpoint-$index").toString
      val lines = Seq(query.sql, feed.toString, checkpoint, query.format).map(_ + "\n")
      (lines :+ line(query.options)).foreach(input.write)
    }
    input.close()
    assert(writer.inputReader().readLine() == "started", Files.readString(log.toPath))
    writer
  }

  /** What the processes have complained of. */
  private def said(): String = Files.readString(home.resolve("writer.log")).takeRight(6000)

  private def line(settings: Map[String, String]): String =
    settings.map { case (name, value) => s"$name=$value" }.mkString("", "\t", "\n")

  /** Adds a file of changes, which becomes a batch. */
  private def addFile(): Unit = {
    val changes = (1 to ChangesPerFile).flatMap { _ =>
      val id = random.nextInt(Ids)
      val old = table.get(id)
      val row =
        (if (random.nextInt(9) == 0) null else s"city ${random.nextInt(12)}", random.nextInt(100))
      old match {
        case None =>
          table(id) = row
          Seq(json(id, row, "+I"))
        case Some(before) if random.nextInt(3) == 0 =>
          table -= id
          Seq(json(id, before, "-D"))
        case Some(before) =>
          table(id) = row
          Seq(json(id, before, "-U"), json(id, row, "+U"))
      }
    }
    val number = versions.size
    val unfinished = Files.writeString(home.resolve("unfinished"), changes.mkString("\n"))
    Files.setLastModifiedTime(
      unfinished,
      java.nio.file.attribute.FileTime.fromMillis(1700000000000L + number * 1000L))
    Files.move(unfinished, feed.resolve(f"$number%05d.json"))
    versions += table.map { case (id, (city, fare)) => Row(id, city, fare) }.toSeq
  }

  private def json(id: Int, row: (String, Int), op: String): String = {
    val city = Option(row._1).fold("null")(name => "\"" + name + "\"")
    s"""{"id":$id,"city":$city,"fare":${row._2},"op":"$op"}"""
  }

  private lazy val batchSession = spark.newSession()

  /** The rows of all queries after a number of files. */
  private def expected(version: Int): RowMultiset = known.getOrElseUpdate(
    version, {
      val schema = StructType.fromDDL(SinkWriter.Columns)
      batchSession
        .createDataFrame(versions(version).asJava, schema)
        .createOrReplaceTempView("rides")
      RowMultiset.of(queries.flatMap(query => batchSession.sql(query.sql).collect()))
    })

  private val known = mutable.Map.empty[Int, RowMultiset]
}

object KilledWriter {

  case class Query(sql: String, format: String, options: Map[String, String])

  private val FilesPerRound = 5
  private val ChangesPerFile = 40
  private val Ids = 150
  private val LatestKillMillis = 8000

  /** Whether `dev/kill` runs, and not all tests. */
  def isLong: Boolean = sys.env.contains("CHANGELOG_KILL_ROUNDS")

  /** How often writers are killed: as the environment says, else a few times. */
  def rounds(few: Int): Int = sys.env.get("CHANGELOG_KILL_ROUNDS").fold(few)(_.toInt)
}
