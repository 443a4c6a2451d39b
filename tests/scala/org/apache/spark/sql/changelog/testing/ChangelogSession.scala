// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.util.TimeZone

import org.scalatest.{BeforeAndAfterAll, Suite}

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.classic.SparkSession

/** Gives a suite one session with the extension enabled. */
trait ChangelogSession extends BeforeAndAfterAll { this: Suite =>

  protected lazy val spark: SparkSession = ChangelogSession.start()

  private var numChecks = 0

  /** Checks something with each state store provider; unless all is tested, with one of them by turns. */
  protected def onProviders(check: => Unit): Unit = {
    numChecks += 1
    val providers = Variant.Providers
    val checked = if (Share.isAll) providers else Seq(providers(numChecks % providers.size))
    checked.foreach { case (name, conf) =>
      conf.foreach { case (key, value) => spark.conf.set(key, value) }
      try withClue(name)(check)
      finally conf.keys.foreach(spark.conf.unset)
    }
  }

  override protected def afterAll(): Unit =
    try {
      spark.streams.active.foreach(_.stop())
      spark.stop()
    } finally super.afterAll()
}

object ChangelogSession {

  /** Whether the tests run on Spark 4.1, which can't do all that later ones can. */
  val isSpark41: Boolean = SPARK_VERSION.startsWith("4.1.")

  /** What a session with Delta's extension beside ours is configured with. */
  val DeltaConf: Map[String, String] = QuickFileContext.conf ++ Map(
    "spark.sql.extensions" ->
      "io.sparkchangelog.ChangelogExtensions,io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog" -> "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions" -> "1",
    // in how many tasks a folder is listed: thousands, else, for a few files
    "spark.sql.sources.parallelPartitionDiscovery.parallelism" -> "2")

  /** The same with one more extension. */
  def deltaConfWith(extension: Class[_]): Map[String, String] = {
    val extensions = "spark.sql.extensions"
    DeltaConf + (extensions -> s"${DeltaConf(extensions)},${extension.getName}")
  }

  /** For a few rows at a time, for which compiling takes longer than they do. */
  val Interpreted: Map[String, String] = Map(
    "spark.sql.codegen.wholeStage" -> "false",
    "spark.sql.codegen.factoryMode" -> "NO_CODEGEN")

  /** The same, in as few tasks as possible. */
  val Quick: Map[String, String] = Interpreted ++ Map(
    "spark.sql.adaptive.enabled" -> "false",
    "spark.sql.shuffle.partitions" -> "1")

  /**
   * Code that is compiled for one thing in three, by its name, and interpreted for the others: it takes
   * longer to compile than to run. All is compiled where all is tested.
   */
  def codeFor(what: String): Map[String, String] =
    Share.ofWays(Seq(Map.empty[String, String], Interpreted, Interpreted), what).head

  /** Code that is interpreted, unless all is tested: for suites of what others run compiled, too. */
  val MostlyInterpreted: Map[String, String] = if (Share.isAll) Map.empty else Interpreted

  /** A small local session, with the extension unless `extension` is false. */
  def start(extension: Boolean = true, conf: Map[String, String] = Map.empty): SparkSession = {
    // times are read and shown in UTC, whatever another suite in this process has set
    TimeZone.setDefault(TimeZone.getTimeZone("UTC"))
    val builder = SparkSession
      .builder()
      .master("local[2]")
      .appName("spark-changelog tests")
      .config("spark.ui.enabled", "false")
      .config("spark.sql.shuffle.partitions", "2")
      .config("spark.sql.streaming.stateStore.maintenanceInterval", "600s")
      .config("spark.sql.streaming.metricsEnabled", "false")
      .config("spark.sql.streaming.noDataMicroBatches.enabled", "false")
      .config("spark.sql.session.timeZone", "UTC")
      .config("spark.local.dir", QuickFileSystem.temporaryDirectory().getPath)
      .config("spark.sql.codegen.cache.maxEntries", "2000")
      .config("spark.sql.ui.retainedExecutions", "10")
      .config("spark.ui.retainedJobs", "10")
      .config("spark.ui.retainedStages", "10")
      .config("spark.shuffle.compress", "false")
    QuickFileSystem.conf.foreach { case (key, value) => builder.config(key, value) }
    if (extension) {
      builder.config("spark.sql.extensions", "io.sparkchangelog.ChangelogExtensions")
    }
    conf.foreach { case (key, value) => builder.config(key, value) }
    builder.getOrCreate()
  }
}
