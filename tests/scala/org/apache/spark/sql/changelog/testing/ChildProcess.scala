// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.io.File
import java.lang.ProcessBuilder.Redirect
import java.lang.management.ManagementFactory
import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.classic.SparkSession

/**
 * Processes that a test may kill, in which code of the tests runs.
 *
 * @param main
 *   the object whose `main` they run
 * @param folder
 *   where they run, and where what they complain of is kept
 * @param jars
 *   more jars than this process has
 * @param environment
 *   variables that they see besides those of this process
 */
class ChildProcess(
    main: AnyRef,
    folder: Path,
    jars: Seq[String] = Nil,
    environment: Map[String, String] = Map.empty) {
  private val log = new File(folder.toFile, "complaints.log")

  /** What is for a process of many suites. */
  private val OfParent = Seq("-Xmx", "-Xms", "-Xmn", "-agent")

  /** Starts one, and tells it what to do. */
  def start(input: String*): Process = {
    val flags = ManagementFactory.getRuntimeMXBean.getInputArguments.asScala
      .filterNot(flag => OfParent.exists(flag.startsWith(_)))
    val java = Path.of(sys.props("java.home"), "bin", "java").toString
    val path = (sys.props("java.class.path") +: jars).mkString(File.pathSeparator)
    val command = Seq(java, "-Xmx1g", "-Xms1g", "-Xmn400m") ++ flags ++
      Seq("-cp", path, main.getClass.getName.stripSuffix("$"))
    val builder = new ProcessBuilder(command.asJava)
      .directory(folder.toFile)
      .redirectError(Redirect.appendTo(log))
    builder.environment().putAll(environment.asJava)
    val process = builder.start()
    val writer = process.outputWriter()
    input.foreach(line => writer.write(line + "\n"))
    writer.close()
    process
  }

  /** What they have complained of, without the places in code. */
  def said: String = Files
    .readAllLines(log.toPath)
    .asScala
    .filterNot(line => line.trim.startsWith("at ") || line.trim.startsWith("..."))
    .mkString("\n")
    .takeRight(6000)
}

object ChildProcess {

  /** Settings on a line. */
  def line(settings: Map[String, String]): String =
    settings.map { case (name, value) => s"$name=$value" }.mkString("\t")

  /** What [[line]] has written. */
  def settings(line: String): Map[String, String] = line
    .split('\t')
    .filter(_.nonEmpty)
    .map { setting =>
      val (name, value) = setting.splitAt(setting.indexOf('='))
      name -> value.drop(1)
    }
    .toMap

  /**
   * The session of a process that was told its settings on a line.
   *
   * @param builder
   *   what makes it, with what the process knows itself
   */
  def spark(
      settings: String,
      builder: SparkSession.Builder = SparkSession.builder().master("local[2]")): SparkSession = {
    this.settings(settings).foreach { case (key, value) => builder.config(key, value) }
    val session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    session
  }

  /** Settings of a small session that leaves nothing outside of a folder. */
  def session(folder: Path): Map[String, String] = QuickFileSystem.conf ++ Map(
    "spark.sql.extensions" -> "io.sparkchangelog.ChangelogExtensions",
    "spark.ui.enabled" -> "false",
    "spark.sql.shuffle.partitions" -> "2",
    "spark.sql.session.timeZone" -> "UTC",
    "spark.local.dir" -> folder.resolve("local").toString)
}
