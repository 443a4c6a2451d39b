// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.checkpoint

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
import org.apache.spark.sql.execution.streaming.checkpointing.{
  CheckpointFileManager, FileSystemBasedCheckpointFileManager
}
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.internal.SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS

import org.apache.spark.sql.changelog.testing.{
  ChangelogSession, ErrorChecks, QuickFileSystem, Share, Variant
}

/** Files of checkpoints are what they are with Spark's own manager, and start no process. */
class CheckpointFilesSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  private lazy val session = spark
  import session.implicits._

  private val fileManager = STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key
  private val ours = "io.sparkchangelog.ChangelogCheckpointFileManager"
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

  private def hadoopConf: Configuration = {
    val conf = new Configuration
    local.foreach { case (key, value) => conf.set(key, value) }
    conf
  }

  private def checksum(path: Path): File =
    new File(new File(path.getParent.toUri), s".${path.getName}.crc")

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

  test("a file is replaced without the checksum of what it was") {
    val (files, folder) = manager(QuickFileSystem.temporaryDirectory())
    val path = new Path(folder, "7.delta")
    write(
      new FileSystemBasedCheckpointFileManager(path, hadoopConf),
      path,
      "first",
      overwrite = true)
    assert(checksum(path).exists)
    write(files, path, "second", overwrite = true)
    assert(!checksum(path).exists)
    assert(read(files, path) == "second")
    assert(read(new FileSystemBasedCheckpointFileManager(path, hadoopConf), path) == "second")
  }

  test("what is written once has a checksum that Spark's managers check too") {
    val (files, folder) = manager(QuickFileSystem.temporaryDirectory())
    val text = "x" * 1500
    for ((name, change) <- Seq[(String, Array[Byte] => Array[Byte])](
        "flipped" -> (bytes => bytes.updated(1000, (bytes(1000) ^ 1).toByte)),
        "truncated" -> (_.take(512)),
        "emptied" -> (_.take(0)))) {
      val path = new Path(folder, name)
      write(files, path, text, overwrite = false)
      assert(read(files, path) == text)
      assert(read(new FileSystemBasedCheckpointFileManager(path, hadoopConf), path) == text)
      val file = new File(path.toUri)
      val written = file.lastModified
      Files.write(file.toPath, change(Files.readAllBytes(file.toPath)))
      file.setLastModified(written)
      checkError("CHANGELOG_CHECKPOINT_FILE_DAMAGED", "file" -> file.getPath)(read(files, path))
    }
    val edited = new Path(folder, "edited")
    write(files, edited, "one", overwrite = false)
    Files.writeString(new File(edited.toUri).toPath, "another")
    new File(edited.toUri).setLastModified(System.currentTimeMillis() + 10000)
    assert(read(files, edited) == "another")
    files.delete(edited)
    assert(!checksum(edited).exists)
    write(files, edited, "third", overwrite = false)
    assert(read(files, edited) == "third")
  }

  test("of two who write a file at once, one is told that it is there") {
    val (files, folder) = manager(QuickFileSystem.temporaryDirectory())
    val path = new Path(folder, "7")
    val outs = Seq("first", "second").map { text =>
      val out = files.createAtomic(path, overwriteIfPossible = false)
      out.write(text.getBytes(UTF_8))
      out
    }
    outs.head.close()
    intercept[FileAlreadyExistsException](outs.last.close())
    assert(read(files, path) == "first")
    assert(new File(folder.toUri).list().toSet == Set("7", ".7.crc"), "nothing is left behind")
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

  private val changingManagers = for {
    names <- Seq(
      Seq("spark", "ours", "spark"),
      Seq("ours", "spark", "ours"),
      Seq("spark", "ours"))
    providers <- Seq(Seq(Variant.Paged), Seq(Map.empty[String, String], Variant.Paged))
  } yield (names, providers)

  for ((names, providers) <- Share.of(changingManagers, oneIn = 5))
    test(
      s"what another manager wrote is replaced: ${names.mkString(", ")} on ${providers.size}") {
      val checkpoint = QuickFileSystem.temporaryDirectory()
      val input = MemoryStream[(Int, Int)](1, session)
      input.toDF().toDF("k", "n").createOrReplaceTempView("numbers_in_files")
      var sums = Map(1 -> 0, 2 -> 0)
      for (round <- 0 until 6) {
        input.addData((1, round), (2, 1))
        sums = Map(1 -> (sums(1) + round), 2 -> (sums(2) + 1))
        // killed before its commit: the batch is run again, and writes the same state files
        for (attempt <- 0 until 3) {
          val conf = managerConf(names((round + attempt) % names.size)) ++
            providers((round + attempt) % providers.size)
          if (attempt > 0) deleteLast(new File(checkpoint, "commits"))
          rewriteProvider(
            checkpoint,
            conf.getOrElse(Provider, SparkProvider),
            isChecked = conf(fileManager) != ours)
          conf.foreach { case (key, value) => session.conf.set(key, value) }
          try {
            val found = newRowsOfNextBatch(checkpoint.getPath)
            assert(found == sums.view.mapValues(_.toLong).toSet, s"round $round, $attempt")
          } finally conf.keys.foreach(session.conf.unset)
        }
      }
    }

  private val Provider = "spark.sql.streaming.stateStore.providerClass"
  private val SparkProvider =
    "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"

  private def managerConf(name: String): Map[String, String] = local ++ (name match {
    case "ours" => Map(fileManager -> ours)
    case "spark" =>
      Map(
        fileManager -> "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager")
  })

  private def deleteLast(folder: File): Unit = {
    val last = folder.listFiles().filter(_.getName.forall(_.isDigit)).maxBy(_.getName.toInt)
    assert(last.delete())
    new File(folder, s".${last.getName}.crc").delete()
  }

  /** As an editor does, in the newest file below `offsets`. Spark's managers would refuse it then. */
  private def rewriteProvider(checkpoint: File, provider: String, isChecked: Boolean): Unit =
    Option(new File(checkpoint, "offsets").listFiles()).toSeq.flatten
      .filter(_.getName.forall(_.isDigit))
      .maxByOption(_.getName.toInt)
      .foreach { file =>
        val text = Files.readString(file.toPath)
        val changed = text.replaceAll("\"[\\w.]+StateStoreProvider\"", "\"" + provider + "\"")
        if (changed != text) {
          Files.writeString(file.toPath, changed)
          // nobody edits within the second
          file.setLastModified(System.currentTimeMillis() + 10000)
          if (isChecked) new File(file.getParent, s".${file.getName}.crc").delete()
        }
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
