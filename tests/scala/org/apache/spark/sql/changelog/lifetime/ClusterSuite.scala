// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.lifetime

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing.ChangelogSession

/**
 * Queries in a cluster of two executors emit what batch Spark gives, whatever becomes of tasks:
 * executors are killed, shuffle files lost, commits of state fail after they are written, slow
 * tasks run twice, and what has failed runs on the other executor.
 */
class ClusterSuite extends AnyFunSuite with ChangelogSession {
  private val seconds = sys.env.get("CHANGELOG_CLUSTER_SECONDS").map(_.toInt)
  private val isLong = seconds.isDefined
  private val seed = sys.env.get("CHANGELOG_CLUSTER_SEED").fold(System.nanoTime())(_.toLong)
  private val random = new Random(seed)
  private val QueriesAtOnce = if (isLong) 4 else 2
  private val LongestRun = 120

  /** For how many seconds a cluster is disturbed where nobody asks for more. */
  private val Few = 5

  private val settings = Map(
    "spark.master" -> "local-cluster[2,1,1024]",
    "spark.executor.memory" -> "1024m",
    "spark.executor.extraClassPath" -> sys.props("java.class.path"),
    "spark.executor.extraJavaOptions" -> "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.deploy.maxExecutorRetries" -> "-1",
    "spark.task.maxFailures" -> "50",
    "spark.stage.maxConsecutiveAttempts" -> "50",
    "spark.network.timeout" -> "20s",
    "spark.network.timeoutInterval" -> "10s",
    "spark.executor.heartbeatInterval" -> "2s",
    "spark.shuffle.io.retryWait" -> "100ms",
    "spark.locality.wait" -> "500ms",
    "spark.excludeOnFailure.enabled" -> "true",
    "spark.excludeOnFailure.task.maxTaskAttemptsPerNode" -> "49",
    "spark.excludeOnFailure.stage.maxFailedTasksPerExecutor" -> "50",
    "spark.excludeOnFailure.application.maxFailedTasksPerExecutor" -> "1000",
    "spark.excludeOnFailure.application.maxFailedExecutorsPerNode" -> "1000",
    "spark.speculation" -> "true",
    "spark.speculation.interval" -> "200ms",
    "spark.speculation.quantile" -> "0.5",
    "spark.speculation.minTaskRuntime" -> "1s",
    "spark.hadoop.fs.file.impl" -> classOf[UnreliableFileSystem].getName,
    s"spark.hadoop.${UnreliableFileSystem.Failures}" -> "25",
    "spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "0",
    "spark.sql.streaming.stateStore.maintenanceInterval" -> "2s",
    "spark.sql.changelog.unmatchedRetraction" -> "fail")

  private val environment =
    Map("SPARK_HOME" -> RunningQueries.sparkHome.toString, "SPARK_SCALA_VERSION" -> "2.13")

  // all of them by dev/cluster only
  RunningQueries.Providers
    .take(if (isLong) RunningQueries.Providers.size else 1)
    .foreach { case (provider, conf) =>
      test(s"state $provider, whatever becomes of tasks") {
        withClue(s"CHANGELOG_CLUSTER_SEED=$seed: ") {
          val length = seconds.getOrElse(Few)
          var figures = RunFigures()
          for (start <- 0 until length by LongestRun) {
            val queries = random.shuffle(OperatorQuery.all).take(QueriesAtOnce).map(_ -> conf)
            figures += run(queries, math.min(LongestRun, length - start))
          }
          info(figures.toString)
          figures.check()
        }
      }
    }

  /** Runs queries for some seconds, from their first batches on. */
  private def run(
      queries: Seq[(OperatorQuery, Map[String, String])],
      seconds: Int): RunFigures = {
    // what has failed goes to the other executor at once; or executors are killed: where both were done,
    // a task had none left that it may run at, and took its query with it
    val alternates = isLong && random.nextBoolean()
    val attempts = Map(
      "spark.excludeOnFailure.task.maxTaskAttemptsPerExecutor" -> (if (alternates) "1" else "49"))
    val running = new RunningQueries(spark, queries, settings ++ attempts, random, environment)
    val driver = running.start()
    try {
      running.finish(driver, seconds = 300)
      // so that one is lost however short a run is
      if (!alternates) running.killExecutor(driver)
      val end = System.nanoTime() + seconds * 1000000000L
      while (System.nanoTime() < end) {
        running.arrive()
        Thread.sleep(random.nextInt(2500).toLong)
        if (random.nextInt(3) == 0) disturb(driver, running, kill = !alternates)
        running.checkRuns(driver)
        running.judge()
      }
      running.finish(driver, seconds = 300)
    } finally running.end(driver)
    val figures = running.figures
    running.delete()
    figures
  }

  /** Kills an executor, if it may, or takes away shuffle files. */
  private def disturb(driver: Process, running: RunningQueries, kill: Boolean): Unit =
    if (kill && random.nextBoolean()) running.killExecutor(driver)
    else running.shuffleFiles.filter(_ => random.nextBoolean()).foreach(_.delete())
}
