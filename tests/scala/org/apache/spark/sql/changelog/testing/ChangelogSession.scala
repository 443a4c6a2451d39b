// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.util.TimeZone

import scala.jdk.CollectionConverters._
import scala.reflect.ClassTag

import org.scalatest.BeforeAndAfterAll

import org.apache.spark.scheduler.SparkListenerInterface
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryListenerBus
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.execution.ui.SQLAppStatusListener
import org.apache.spark.util.Utils
import org.apache.spark.{SPARK_VERSION, SparkConf, SparkContext}

/** Gives a suite one session with the extension enabled, in the SparkContext that suites of a process share. */
trait ChangelogSession extends TestShare with BeforeAndAfterAll {

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
    try ChangelogSession.end(spark)
    finally super.afterAll()
}

object ChangelogSession {

  /** Whether the tests run on Spark 4.1, which can't do all that later ones can. */
  val isSpark41: Boolean = SPARK_VERSION.startsWith("4.1.")

  val isSpark43: Boolean = SPARK_VERSION.startsWith("4.3.")

  private val hasDelta = !isSpark43

  /** Whether a test failed because there is no release of Delta for this version of Spark. */
  def lacksDelta(error: Throwable): Boolean = !hasDelta && Iterator
    .iterate(error)(_.getCause)
    .takeWhile(_ != null)
    .exists(cause => WithoutDelta.exists(String.valueOf(cause.getMessage).contains))

  private val WithoutDelta = Seq(
    "CHANGELOG_DELTA_NOT_SUPPORTED",
    "Failed to find the data source: delta",
    "org/apache/spark/sql/delta/",
    "io/delta/")

  /** The settings of a session with Delta's extension beside ours, or without it where Delta has no release. */
  lazy val DeltaConf: Map[String, String] =
    if (!hasDelta) Map.empty
    else
      Map(
        "spark.sql.extensions" ->
          "io.sparkchangelog.ChangelogExtensions,io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog" -> "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions" -> "1",
        // in how many tasks a folder is listed: thousands, else, for a few files
        "spark.sql.sources.parallelPartitionDiscovery.parallelism" -> "2")

  /** The same with one more extension. */
  def deltaConfWith(extension: Class[_]): Map[String, String] = {
    val ours = "io.sparkchangelog.ChangelogExtensions"
    val before = DeltaConf.getOrElse(Extensions, ours)
    DeltaConf + (Extensions -> s"$before,${extension.getName}")
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

  /** What sessions have in common. */
  private val Base: Map[String, String] = QuickFileSystem.conf ++ QuickFileContext.conf ++ Map(
    "spark.master" -> "local[2]",
    "spark.app.name" -> "spark-changelog tests",
    "spark.ui.enabled" -> "false",
    "spark.sql.shuffle.partitions" -> "2",
    "spark.sql.streaming.stateStore.maintenanceInterval" -> "600s",
    "spark.sql.streaming.stateStore.pages.keptFor" -> "0", // a query that starts again reads its files
    "spark.sql.streaming.metricsEnabled" -> "false",
    "spark.sql.streaming.noDataMicroBatches.enabled" -> "false",
    "spark.sql.session.timeZone" -> "UTC",
    "spark.sql.codegen.cache.maxEntries" -> "2000",
    "spark.sql.ui.retainedExecutions" -> "10",
    "spark.ui.retainedJobs" -> "10",
    "spark.ui.retainedStages" -> "10",
    "spark.shuffle.compress" -> "false")

  private val Extensions = "spark.sql.extensions"

  /** The running SparkContext of this process, and what it was configured with. */
  private var running = Option.empty[(SparkContext, Map[String, String])]

  /**
   * A small local session with a catalog of its own, with the extension unless `extension` is false. It uses the
   * SparkContext of the session before, unless `conf` has other settings that only a SparkContext reads.
   */
  def start(extension: Boolean = true, conf: Map[String, String] = Map.empty): SparkSession = {
    // times are read and shown in UTC, whatever another suite in this process has set
    TimeZone.setDefault(TimeZone.getTimeZone("UTC"))
    val ours =
      if (extension) Map(Extensions -> "io.sparkchangelog.ChangelogExtensions") else Map.empty
    val (ofSession, ofContext) =
      (Base ++ ours ++ conf).partition { case (key, _) =>
        key.startsWith("spark.sql.") || key.startsWith("spark.databricks.")
      }
    val builder = SparkSession.builder().sparkContext(context(ofContext))
    ofSession.foreach { case (key, value) => builder.config(key, value) }
    // Spark itself takes them from the SparkContext only
    ofSession.get(Extensions).toSeq.flatMap(_.split(',')).foreach { name =>
      val extension = Utils.classForName[SparkSessionExtensions => Unit](name)
      builder.withExtensions(extension.getConstructor().newInstance())
    }
    builder.getOrCreate()
  }

  private def context(conf: Map[String, String]): SparkContext = {
    SparkSession.clearActiveSession()
    SparkSession.clearDefaultSession()
    running.foreach { case (context, before) => if (before != conf) context.stop() }
    running match {
      case Some((context, _)) if !context.isStopped => context
      case _ =>
        val folder = "spark.local.dir" -> QuickFileSystem.temporaryDirectory().getPath
        val context = new SparkContext(new SparkConf().setAll(conf + folder))
        running = Some(context -> conf)
        context
    }
  }

  /** Stops the SparkContext of this process, for a suite that makes one of its own. */
  def stopContext(): Unit = running.foreach { case (context, _) => context.stop() }

  /** Ends what a session and those made of it have begun, and keep in this process. */
  def end(session: SparkSession): Unit = if (!session.sparkContext.isStopped) {
    session.sharedState.activeStreamingQueries.values.asScala.foreach(_.stop())
    StateStore.stop()
    session.sharedState.cacheManager.clearCache()
    removeListeners[StreamingQueryListenerBus](session.sparkContext)
    removeListeners[SQLAppStatusListener](session.sparkContext)
    SparkSession.clearActiveSession()
    SparkSession.clearDefaultSession()
  }

  /** Each session, and each catalog, has listeners of its own, which Spark never removes. */
  private def removeListeners[T <: SparkListenerInterface: ClassTag](
      context: SparkContext): Unit =
    context.listenerBus.findListenersByClass[T]().foreach(context.listenerBus.removeListener)
}
