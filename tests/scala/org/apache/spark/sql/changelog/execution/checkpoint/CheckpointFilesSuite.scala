// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.checkpoint

import java.io.File
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files

import scala.jdk.CollectionConverters._

import jdk.jfr.Recording
import jdk.jfr.consumer.RecordingFile
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, LocalFileSystem, Path}
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.internal.SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS

import org.apache.spark.sql.changelog.testing.{ChangelogSession, QuickFileSystem}

/** Files of checkpoints are what they are with Spark's own manager, and start no process. */
class CheckpointFilesSuite extends AnyFunSuite with ChangelogSession {
  private lazy val session = spark
  import session.implicits._

  private val fileManager = STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key
  private val ours = "io.sparkchangelog.LocalCheckpointFileManager"
  private val local =
    Map(
      "fs.file.impl" -> classOf[LocalFileSystem].getName,
      "fs.file.impl.disable.cache" -> "true")

  private def manager(
      folder: File,
      conf: Map[String, String] = local): (CheckpointFileManager, Path) = {
    val hadoopConf = new Configuration
    (conf + (fileManager -> ours)).foreach { case (key, value) => hadoopConf.set(key, value) }
    val path = new Path(folder.toURI)
    (CheckpointFileManager.create(path, hadoopConf), path)
  }

  private def write(
      files: CheckpointFileManager,
      path: Path,
      text: String,
      overwrite: Boolean): Unit = {
    val out = files.createAtomic(path, overwrite)
    try out.write(text.getBytes(UTF_8))
    finally out.close()
  }

  private def read(files: CheckpointFileManager, path: Path): String = {
    val in = files.open(path)
    try new String(in.readAllBytes(), UTF_8)
    finally in.close()
  }

  test("a file is there whole, or not at all") {
    val (files, folder) = manager(QuickFileSystem.temporaryDirectory())
    val path = new Path(folder, "a/b with space/7")
    assert(files.isLocal && !files.exists(path))
    val out = files.createAtomic(path, overwriteIfPossible = false)
    out.write("half".getBytes(UTF_8))
    out.flush()
    assert(!files.exists(path))
    out.cancel()
    assert(files.list(path.getParent).isEmpty)
    write(files, path, "whole", overwrite = false)
    assert(read(files, path) == "whole")
    assert(files.list(path.getParent).map(_.getPath.getName).toSeq == Seq("7"))
  }

  test("a file that is there is replaced only if that is asked for") {
    val (files, folder) = manager(QuickFileSystem.temporaryDirectory())
    val path = new Path(folder, "7")
    write(files, path, "first", overwrite = false)
    intercept[FileAlreadyExistsException](write(files, path, "second", overwrite = false))
    assert(read(files, path) == "first")
    write(files, path, "third", overwrite = true)
    assert(read(files, path) == "third")
    files.delete(path)
    files.delete(path)
    assert(!files.exists(path))
  }

  test("no process is started for a file") {
    val (files, folder) = manager(QuickFileSystem.temporaryDirectory())
    files.mkdirs(folder)
    assert(processesStarted {
      write(files, new Path(folder, "7"), "text", overwrite = true)
      write(files, new Path(folder, "7"), "text", overwrite = true)
      read(files, new Path(folder, "7"))
      files.list(folder)
      files.delete(new Path(folder, "7"))
    } == 0)
    assert(processesStarted(new ProcessBuilder("true").start().waitFor()) == 1)
  }

  test("files elsewhere are written as Spark does") {
    // a file system of somebody's own, though its files are on this machine
    val (files, folder) = manager(
      QuickFileSystem.temporaryDirectory(),
      Map(
        "fs.file.impl" -> classOf[QuickFileSystem].getName,
        "fs.file.impl.disable.cache" -> "true"))
    val path = new Path(folder, "7")
    write(files, path, "first", overwrite = false)
    assert(read(files, path) == "first")
    intercept[FileAlreadyExistsException](write(files, path, "second", overwrite = false))
  }

  test("a query goes on with another file manager") {
    val checkpoint = QuickFileSystem.temporaryDirectory().getPath
    val input = MemoryStream[(Int, Int)](1, session)
    input.toDF().toDF("k", "n").createOrReplaceTempView("numbers_in_files")
    val names = Seq(None, Some(ours), None, Some(ours))
    val newRows = names.zipWithIndex.map { case (name, index) =>
      input.addData((1, index), (2, 1))
      name.foreach(session.conf.set(fileManager, _))
      local.foreach { case (key, value) => session.conf.set(key, value) }
      try newRowsOfNextBatch(checkpoint)
      finally (local.keys ++ name.map(_ => fileManager)).foreach(session.conf.unset)
    }
    assert(
      newRows == Seq(
        Set(1 -> 0, 2 -> 1),
        Set(1 -> 1, 2 -> 2),
        Set(1 -> 3, 2 -> 3),
        Set(1 -> 6, 2 -> 4)))
  }

  private def newRowsOfNextBatch(checkpoint: String): Set[(Int, Long)] = {
    var found = Set.empty[(Int, Long)]
    val query = session
      .sql("""SELECT k, n FROM to_changelog(TABLE(
          |SELECT k, sum(n) AS n FROM from_changelog(TABLE(numbers_in_files)) GROUP BY k))
          |WHERE _change_type IN ('insert', 'update_postimage')""".stripMargin)
      .writeStream
      .option("checkpointLocation", checkpoint)
      .foreachBatch { (batch: DataFrame, _: Long) =>
        found ++= batch.as[(Int, Long)].collect()
      }
      .start()
    try query.processAllAvailable()
    finally query.stop()
    found
  }

  private def processesStarted(run: => Unit): Int = {
    val file = Files.createTempFile("processes", ".jfr")
    val recording = new Recording
    try {
      recording.enable("jdk.ProcessStart")
      recording.start()
      run
      recording.stop()
      recording.dump(file)
      RecordingFile
        .readAllEvents(file)
        .asScala
        .count(_.getEventType.getName == "jdk.ProcessStart")
    } finally {
      recording.close()
      Files.delete(file)
    }
  }
}
