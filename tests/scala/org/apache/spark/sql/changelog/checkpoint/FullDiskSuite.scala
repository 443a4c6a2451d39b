// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.checkpoint

import java.nio.file.{Files, Paths}
import java.util.concurrent.atomic.AtomicInteger

import scala.util.{Failure, Random, Try}

import org.apache.commons.io.FileUtils
import org.apache.hadoop.fs.{LocalFileSystem, Path}
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS

import org.apache.spark.sql.changelog.testing.FailingCheckpointFiles._
import org.apache.spark.sql.changelog.testing._

/** A checkpoint that a full disk keeps from being written: once there is room again, rows are right. */
class FullDiskSuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Quick ++ Variant.Paged)

  private val fileManager = STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key

  private val managers = Seq(
    "another file manager" -> Map(fileManager -> classOf[FailingCheckpointFiles].getName),
    "ChangelogCheckpointFileManager" -> Map(
      fileManager -> classOf[FailingLocalCheckpointFiles].getName,
      "fs.file.impl" -> classOf[LocalFileSystem].getName,
      "fs.file.impl.disable.cache" -> "true"))

  /** Files of each batch, and of the first one only, by what their paths end with. */
  private val ofEachBatch =
    Seq("/offsets/\\d+", "/commits/\\d+", "/sources/0/\\d+(\\.compact)?", "/\\d+\\.delta")
  private val ofFirstBatch = Seq(
    "checkpoint/metadata",
    "/changelog/plan.json",
    "/_metadata/schema",
    "/_metadata/metadata",
    "/_metadata/placement",
    "/offsets/0",
    "/commits/0")

  private val faults = Seq(AtCreation, Within(5), AtClose, AfterClose)

  /** Runs the query once, with a disk that is full as soon as such a file is written. */
  private def runOnFullDisk(query: CheckpointedQuery, files: String, fault: Fault): Unit = {
    val hits = new AtomicInteger
    faultFor = path =>
      if (!isAmong(path, files)) None
      else {
        hits.incrementAndGet()
        Some(fault)
      }
    val outcome =
      try Try(query.run())
      finally faultFor = _ => None
    assert(hits.get > 0, s"no file $files was written")
    outcome match {
      case Failure(error) =>
        val texts = Iterator.iterate(error)(_.getCause).takeWhile(_ != null).map(_.toString)
        assert(texts.exists(_.contains("No space left on device")), error)
      // a file that is there may go unnoticed
      case _ => assert(fault == AfterClose || files.contains("_metadata"), files)
    }
  }

  private def isAmong(path: Path, files: String): Boolean =
    path.toUri.getPath.matches(s".*$files")

  private def withConf(conf: Map[String, String])(body: => Unit): Unit = {
    val before = conf.keys.toSeq.map(key => key -> spark.conf.getOption(key))
    conf.foreach { case (key, value) => spark.conf.set(key, value) }
    try body
    finally
      before.foreach { case (key, value) =>
        value.fold(spark.conf.unset(key))(spark.conf.set(key, _))
      }
  }

  for ((name, conf) <- managers) {
    test(s"a full disk again and again, $name") {
      withConf(conf) {
        val query = new CheckpointedQuery(spark)
        query.arrive()
        query.run()
        for (files <- ofEachBatch; fault <- faults) {
          query.arrive()
          runOnFullDisk(query, files, fault)
        }
        query.run()
        assert(query.table == query.expected)
      }
    }

    test(s"a disk that is full when the query begins, $name") {
      withConf(conf) {
        for (files <- ofFirstBatch; fault <- Seq(Within(5), AfterClose)) withClue(files) {
          val query = new CheckpointedQuery(spark)
          query.arrive()
          runOnFullDisk(query, files, fault)
          query.run()
          assert(query.table == query.expected)
        }
      }
    }

    // where mount -t tmpfs -o size=2m tmpfs FOLDER gave one
    sys.env.get("CHANGELOG_SMALL_DISK").foreach { folder =>
      test(s"a small disk that gets full, $name")(withConf(conf)(runOnSmallDisk(folder)))
    }
  }

  private def runOnSmallDisk(folder: String): Unit = {
    val home = Files.createTempDirectory(Paths.get(folder), "query")
    val ballast = home.resolve("ballast")
    val query = new CheckpointedQuery(spark, home.toFile)
    val random = new Random(1)
    var numFull = 0
    // of what is left of a first file that was cut short Spark's managers say to delete it
    query.arrive()
    query.run()
    for (round <- 1 to 60) {
      query.arrive()
      val room = home.toFile.getUsableSpace.toInt - random.nextInt(60000)
      Files.write(ballast, Array.ofDim[Byte](math.max(0, room)))
      try query.run()
      catch {
        case error: Exception =>
          val texts = Iterator.iterate[Throwable](error)(_.getCause).takeWhile(_ != null)
          assert(texts.exists(_.toString.contains("No space left on device")), error)
          numFull += 1
      } finally Files.delete(ballast)
      if (random.nextBoolean()) {
        query.run()
        assert(query.table == query.expected, s"round $round")
      }
    }
    query.run()
    assert(query.table == query.expected)
    FileUtils.deleteDirectory(home.toFile)
    info(s"it was full $numFull times")
    assert(numFull > 10)
  }
}
