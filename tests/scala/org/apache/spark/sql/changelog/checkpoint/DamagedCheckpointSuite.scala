// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.checkpoint

import java.io.File
import java.nio.file.Files

import org.apache.commons.io.FileUtils
import org.apache.hadoop.fs.LocalFileSystem
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS
import org.apache.spark.sql.streaming.StreamingQueryException

import org.apache.spark.sql.changelog.testing._

/**
 * A checkpoint of which a file is truncated, flipped, emptied or missing: the query goes on with the
 * right rows, or says which file it is and what to do.
 */
class DamagedCheckpointSuite extends AnyFunSuite with CheckpointDamage with ErrorChecks {
  import CheckpointDamage.Kind

  private val settings = Map(
    "fs.file.impl" -> classOf[LocalFileSystem].getName,
    "fs.file.impl.disable.cache" -> "true",
    STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key ->
      "io.sparkchangelog.ChangelogCheckpointFileManager",
    "spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "1")

  override protected lazy val spark: SparkSession = {
    val session = ChangelogSession.start()
    settings.foreach { case (key, value) => session.conf.set(key, value) }
    session
  }

  private val kinds = Seq(
    Kind("offsets", "offsets/\\d+"),
    Kind("offsets of the batch before", "offsets/\\d+", 1),
    Kind("commits", "commits/\\d+"),
    Kind("commits of the batch before", "commits/\\d+", 1),
    Kind("metadata", "metadata"),
    Kind("log of a source", "sources/0/\\d+"),
    Kind("log of a source, in one file", "sources/0/\\d+.compact"),
    Kind("record of the query", "changelog/plan.json"),
    Kind("schema of state", "state/\\d+/(0/)?_metadata/.*schema.*"),
    Kind("metadata of an operator", "state/\\d+/_metadata/metadata.*"),
    Kind("where entries belong", "state/\\d+/_metadata/placement"))

  private val stateKinds = Seq(
    Kind("delta", "state/\\d+/0/\\d+\\.delta"),
    Kind("delta of the version before", "state/\\d+/0/\\d+\\.delta", 1),
    Kind("snapshot", "state/\\d+/0/\\d+\\.snapshot"))

  private val conditions = Set(
    "CHANGELOG_CHECKPOINT_FILE_DAMAGED",
    "CHANGELOG_CHECKPOINT_FILE_MISSING",
    "CHANGELOG_CHECKPOINT_LOG_INCOMPLETE",
    "CHANGELOG_QUERY_RECORD_DAMAGED",
    "CHANGELOG_QUERY_RECORD_MISSING")

  check("offsets, commits, metadata and schemas", kinds, Variant.Paged, conditions)
  check("state in pages", stateKinds, Variant.Paged, conditions)
  // where no file has a checksum, nobody sees a bit that is flipped
  check(
    "offsets, commits, metadata and schemas, by another file manager",
    Share.of(kinds, oneIn = 2),
    Variant.Paged ++ QuickFileSystem.conf.map { case (key, value) =>
      key.stripPrefix("spark.hadoop.") -> value
    },
    conditions,
    damages.filterNot(_.name == "flipped"))

  test("a folder that is missing is told, not taken for a beginning") {
    val query = new CheckpointedQuery(spark)
    (1 to 3).foreach(_ => query.arrive())
    query.run()
    query.keep()
    query.arrive()
    for (lost <- Seq(Seq("offsets"), Seq("offsets", "commits"))) {
      query.restore()
      lost.foreach(name => FileUtils.deleteDirectory(new File(query.checkpoint, name)))
      val error = checkError("CHANGELOG_CHECKPOINT_LOG_INCOMPLETE")(query.run())
      assert(error.getMessage.contains(s"checkpoint/${lost.head}"), error)
    }
    query.restore()
    FileUtils.deleteDirectory(new File(query.checkpoint, "sources"))
    intercept[StreamingQueryException](query.run())
    query.restore()
    FileUtils.deleteDirectory(new File(query.checkpoint, "changelog"))
    checkError("CHANGELOG_QUERY_RECORD_MISSING")(query.run())
    query.restore()
    query.run()
    assert(query.table == query.expected)
  }

  test("of two drivers on one checkpoint one goes on, and rows stay right") {
    val query = new CheckpointedQuery(spark)
    (1 to 20).foreach(_ => query.arrive())
    val drivers = (1 to 2).map { number =>
      val output = Files.createDirectory(query.folder.toPath.resolve(s"driver-$number"))
      val settings = ChildProcess.session(output) ++ Variant.Paged ++ Map(
        "spark.hadoop.fs.file.impl" -> classOf[LocalFileSystem].getName,
        STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key ->
          "io.sparkchangelog.ChangelogCheckpointFileManager")
      val process = new ChildProcess(CheckpointDriver, output)
        .start(ChildProcess.line(settings), query.folder.getPath, output.toString)
      (output, process)
    }
    drivers.foreach(_._2.waitFor())
    query.run()
    val all = drivers.map { case (output, _) =>
      output.toFile.listFiles.toSeq.filter(_.getName.forall(_.isDigit)).map { file =>
        file.getName.toLong -> Files.readString(file.toPath).linesIterator.toSeq.sorted
      }
    }
    assert(all.exists(_.nonEmpty), "no driver has run")
    val batches =
      (all :+ query.emitted.view.mapValues(_.sorted).toSeq).flatten.groupMap(_._1)(_._2)
    batches.foreach { case (batch, rows) =>
      assert(rows.distinct.size == 1, s"batch $batch was not the same for both")
    }
    assert(FoldedChanges(batches.values.flatMap(_.head).toSeq) == query.expected)
    val errors = drivers.map(_._1.resolve("error")).filter(Files.exists(_)).map(Files.readString)
    info(errors.mkString("; "))
    // or that another has written a file of the first batch
    errors.foreach { error =>
      val found = Seq("concurrent", "already exists", "should be empty on batch 0")
      assert(found.exists(error.toLowerCase.contains(_)), error)
    }
  }
}
