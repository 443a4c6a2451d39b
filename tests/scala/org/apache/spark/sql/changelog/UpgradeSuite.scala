// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import java.nio.file.{Files, Path, Paths, StandardCopyOption}

import scala.jdk.CollectionConverters._

import org.apache.commons.io.FileUtils
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/**
 * Queries that were started by an earlier version go on from their checkpoints.
 *
 * `tests/resources/upgrade/<version>/<query>` holds checkpoints as they were after [[first]]. A new
 * version adds its own (`SPARK_GENERATE_GOLDEN_FILES=1`) and leaves the others alone, unless its
 * release notes say that a query needs a new checkpoint.
 */
class UpgradeSuite extends AnyFunSuite with ChangelogSession {
  private val home = Paths.get(sys.props("spark.changelog.test.home"), "tests/resources/upgrade")
  private val version = "0.1.0"

  /** Stands for the input's directory in the checkpoints kept. */
  private val Input = "/input"

  private val first = Seq("+I,a,1,1.5", "+I,a,2,2.5", "+I,b,3,NaN")
  private val second = Seq("-D,a,2,2.5", "-D,b,3,NaN", "+I,b,4,0.5", "+I,c,1,1.0")

  /** A query, and what it emits in its second batch. */
  private val queries: Seq[(String, String, Seq[String])] = Seq(
    (
      "buffers",
      "SELECT g, count(*), sum(n), avg(d), sum(d), bit_or(n) FROM t GROUP BY g",
      Seq(
        "a 1 1 1.5 1.5 1 update_postimage",
        "a 2 3 2.0 4.0 3 update_preimage",
        "b 1 3 NaN NaN 3 update_preimage",
        "b 1 4 0.5 0.5 4 update_postimage",
        "c 1 1 1.0 1.0 1 insert")),
    (
      "values",
      "SELECT g, min(n), max_by(d, n), count(DISTINCT n) FROM t GROUP BY g",
      Seq(
        "a 1 1.5 1 update_postimage",
        "a 1 2.5 2 update_preimage",
        "b 3 NaN 1 update_preimage",
        "b 4 0.5 1 update_postimage",
        "c 1 1.0 1 insert")),
    (
      "cascade",
      "SELECT c, count(*) FROM (SELECT g, count(*) AS c FROM t GROUP BY g) GROUP BY c",
      Seq("1 1 update_preimage", "1 3 update_postimage", "2 1 delete")),
    (
      "join",
      """SELECT a.g, a.n, b.c FROM t a LEFT JOIN (SELECT g, count(*) AS c FROM t GROUP BY g) b
        |ON a.g = b.g AND a.n < b.c""".stripMargin,
      Seq(
        "a 1 2 delete",
        "a 1 NULL insert",
        "a 2 NULL delete",
        "b 3 NULL delete",
        "b 4 NULL insert",
        "c 1 NULL insert")),
    (
      "rank",
      "SELECT g, n FROM (SELECT *, rank() OVER (PARTITION BY g ORDER BY n DESC) AS r FROM t) WHERE r <= 1",
      Seq("a 1 insert", "a 2 delete", "b 3 delete", "b 4 insert", "c 1 insert")))

  private def directory(version: String, query: String): Path =
    home.resolve(version).resolve(query)

  /** Runs a query over files `0.csv`, `1.csv`, ..., the first `done` of which it has read before. */
  private def run(sql: String, done: Int, batches: Seq[Seq[String]])(
      checkpointFor: Path => Path): Seq[String] = {
    val input = Files.createTempDirectory("upgrade-input")
    val checkpoint = checkpointFor(input)
    def arrive(number: Int): Unit = {
      val file = Files.createTempFile("upgrade", ".csv")
      Files.write(file, batches(number).asJava)
      Files.move(file, input.resolve(s"$number.csv"), StandardCopyOption.ATOMIC_MOVE)
      ()
    }
    (0 until done).foreach(arrive)
    spark.readStream
      .schema("op STRING, g STRING, n INT, d DOUBLE")
      .csv(input.toString)
      .createOrReplaceTempView("raw")
    val running = new RunningChanges(
      spark.sql(s"""SELECT * FROM to_changelog(TABLE(
           |WITH t AS (SELECT * FROM from_changelog(TABLE(raw), 'op')) $sql))""".stripMargin),
      checkpoint.toFile)
    try
      (done until batches.size).map { number =>
        arrive(number)
        running.next()
      }.last
    finally {
      running.stop()
      FileUtils.deleteDirectory(input.toFile)
    }
  }

  private def newCheckpoint(): Path = Files.createTempDirectory("upgrade-checkpoint")

  /** Copies a checkpoint, whose source's log names its files by their full path. */
  private def copy(from: Path, to: Path, path: String, newPath: String): Unit = {
    FileUtils.copyDirectory(from.toFile, to.toFile)
    // a source has one log for each time the query reads it
    to.resolve("sources").toFile.listFiles().map(_.toPath).foreach { log =>
      Files.deleteIfExists(log.resolve(".0.crc"))
      val entries = new String(Files.readAllBytes(log.resolve("0")), "UTF-8")
      Files.write(log.resolve("0"), entries.replace(path, newPath).getBytes("UTF-8"))
    }
  }

  for ((name, sql, expected) <- queries) {
    if (sys.env.get("SPARK_GENERATE_GOLDEN_FILES").contains("1")) {
      test(s"write the checkpoint of $name") {
        val checkpoint = newCheckpoint()
        var path = ""
        FileUtils.deleteDirectory(directory(version, name).toFile)
        run(sql, done = 0, Seq(first)) { input =>
          path = input.toString
          checkpoint
        }
        copy(checkpoint, directory(version, name), path, Input)
      }
    }

    test(s"$name, from the start") {
      assert(run(sql, done = 0, Seq(first, second))(_ => newCheckpoint()) == expected)
    }

    val versions = Option(home.toFile.list()).getOrElse(Array.empty[String]).sorted
    versions.filter(v => Files.exists(directory(v, name))).foreach { version =>
      test(s"$name, from a checkpoint of version $version") {
        val emitted = run(sql, done = 1, Seq(first, second)) { input =>
          val checkpoint = newCheckpoint()
          copy(directory(version, name), checkpoint, Input, input.toString)
          checkpoint
        }
        assert(emitted == expected)
      }
    }
  }
}
