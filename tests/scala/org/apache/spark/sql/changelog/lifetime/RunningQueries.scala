// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.lifetime

import java.io.File
import java.nio.charset.StandardCharsets
import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._
import scala.util.Random

import org.apache.commons.io.FileUtils
import org.scalatest.Assertions._

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing.{ChangelogSession, ChildProcess, QuickFileSystem}

/**
 * Queries that a process runs over files which arrive, and what they have emitted.
 *
 * @param queries
 *   the queries, each with its settings
 * @param settings
 *   the process's own
 */
class RunningQueries(
    spark: SparkSession,
    queries: Seq[(OperatorQuery, Map[String, String])],
    settings: Map[String, String],
    random: Random,
    environment: Map[String, String] = Map.empty) {
  import RunningQueries._

  private val home = QuickFileSystem.temporaryDirectory().toPath
  private val feeds = Files.createDirectory(home.resolve("feeds"))
  private val tables =
    ArrivingTable.Names.map(name => name -> new ArrivingTable(name, feeds, random)).toMap
  private val processes = new ChildProcess(QueryRunner, home, environment = environment)
  private lazy val session = {
    val session = spark.newSession()
    ChangelogSession.Quick.foreach { case (key, value) => session.conf.set(key, value) }
    session
  }
  private lazy val judged = queries.map { case (query, _) =>
    new JudgedQuery(session, query, home.resolve(query.name), tables)
  }

  private var kills = 0

  tables.values.foreach(_.add())

  /** Lets a file arrive for some of the tables, unless there are some that wait to be read. */
  def arrive(): Unit =
    if (tables.values.map(_.size).max - judged.map(_.committed).min < MostWaiting)
      random.nextInt(4) match {
        case 0 => tables("t").add()
        case 1 => tables("u").add()
        case _ => tables.values.foreach(_.add())
      }

  /** Starts a process, and waits until the queries run. */
  def start(): Process = {
    val jobs = queries.flatMap { case (query, conf) => Seq(query.name, ChildProcess.line(conf)) }
    val session = ChildProcess.session(home) ++ settings
    val input = Seq(ChildProcess.line(session), home.toString) ++ jobs
    val process = processes.start(input: _*)
    if (process.inputReader().readLine() != "started") {
      end(process)
      fail(s"it has not started\n${processes.said}")
    }
    process
  }

  /** How many batches of all queries were committed so far. */
  def committed: Int = judged.map(_.committed).sum

  /** What was compared so far, and what has disturbed it. */
  def figures: RunFigures = Troubles.figures(home) + RunFigures(
    compared = judged.map(_.compared).sum,
    notCompared = judged.map(_.notCompared).sum,
    kills = kills)

  /** Compares every batch that was committed since the last call with batch Spark. */
  def judge(): Unit =
    try judged.foreach(_.judge())
    catch {
      case error: Throwable =>
        val kept = Paths.get(
          sys.props("spark.changelog.test.home"),
          "target",
          "lifetime",
          home.getFileName.toString)
        FileUtils.copyDirectory(home.toFile, kept.toFile)
        throw new AssertionError(s"$error\nkept in $kept\n${processes.said}", error)
    }

  /** Waits until a process has read all files, comparing as it goes. */
  def finish(process: Process, seconds: Int): Unit = {
    val deadline = System.nanoTime() + seconds * 1000000000L
    val all = tables.map { case (name, table) => name -> table.size }
    def isDone(query: JudgedQuery) = query.compared > 0 &&
      query.read.forall { case (name, files) => files == all(name) || !query.reads(name) }
    def waiting = judged.filterNot(isDone).map { query =>
      s"$query has read ${query.read} of $all, with ${query.committed} batches"
    }
    judge()
    while (!judged.forall(isDone)) {
      assert(process.isAlive, s"a query has failed\n${processes.said}")
      if (System.nanoTime() >= deadline) {
        val why = s"not done after $seconds s:\n${waiting.mkString("\n")}\n${processes.said}"
        fail(s"$why\n${streamThreads(process)}")
      }
      Thread.sleep(300)
      judge()
    }
  }

  /** What the threads of a process do that run its queries, and their tasks. */
  private def streamThreads(process: Process): String = {
    val jstack = Paths.get(sys.props("java.home"), "bin", "jstack").toString
    val stacks = new ProcessBuilder(jstack, process.pid.toString).start().getInputStream
    val threads = new String(stacks.readAllBytes(), StandardCharsets.UTF_8).split("\n\n")
    threads
      .filter(thread => ThreadNames.exists(name => thread.startsWith("\"" + name)))
      .mkString("\n\n")
  }

  /** Kills a process in the middle of its work. */
  def kill(process: Process): Unit = {
    kills += 1
    end(process)
  }

  /** Kills one of the executors that a process has started, if there is one. */
  def killExecutor(process: Process): Unit = {
    val executors = process.descendants().iterator().asScala.toSeq
    if (executors.nonEmpty) {
      kills += 1
      executors(random.nextInt(executors.size)).destroyForcibly()
    }
  }

  /** Ends a process at once, and all that it has started. */
  def end(process: Process): Unit = {
    val children = process.descendants().iterator().asScala.toSeq
    process.destroyForcibly().waitFor()
    children.foreach(_.destroyForcibly())
  }

  /** Fails if a process has ended by itself. */
  def checkRuns(process: Process): Unit =
    assert(process.isAlive, s"a query has failed\n${processes.said}")

  /** The files in which executors keep what they have shuffled. */
  def shuffleFiles: Seq[File] = {
    val files = FileUtils.iterateFiles(home.resolve("local").toFile, Array("data"), true)
    files.asScala.filter(_.getName.startsWith("shuffle_")).toSeq
  }

  def delete(): Unit = FileUtils.deleteDirectory(home.toFile)
}

object RunningQueries {
  private val MostWaiting = 5
  private val ThreadNames = Seq("stream execution thread", "Executor task launch worker")

  /** Each state store provider with its settings, by name. */
  val Providers: Seq[(String, Map[String, String])] = {
    val class_ = "spark.sql.streaming.stateStore.providerClass"
    val rocksDB = Map(
      class_ -> "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    Seq(
      "in pages" -> Map(class_ -> "io.sparkchangelog.PagedStateStoreProvider"),
      "in memory" -> Map(
        class_ -> "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"),
      "RocksDB" -> rocksDB,
      "RocksDB, format 2, with its changelog" -> (rocksDB ++ Map(
        "spark.sql.streaming.stateStore.checkpointFormatVersion" -> "2",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled" -> "true")))
  }

  /** Where Spark is installed. */
  def sparkHome: Path = {
    val packages = Paths.get(sys.props("spark.changelog.test.venv"), "lib").toFile.listFiles()
    packages.map(_.toPath.resolve("site-packages/pyspark")).find(Files.isDirectory(_)).get
  }
}
