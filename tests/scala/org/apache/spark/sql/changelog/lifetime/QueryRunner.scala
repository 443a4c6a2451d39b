// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.lifetime

import java.nio.file.{Files, Path, StandardCopyOption}

import scala.io.Source
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.streaming.StreamingQuery

import org.apache.spark.sql.changelog.testing.{ChildProcess, TextChangelog}

/**
 * Runs queries over files that arrive, in a process of its own that a test may kill.
 *
 * What to do comes by standard input: the session's settings, the folder, and then for each query
 * its name and settings. It says `started` when they run, and ends when one of them has failed.
 * What each batch has emitted is kept in a file, one change a line.
 */
object QueryRunner {

  def main(arguments: Array[String]): Unit = {
    // a test that is ended takes it along
    ProcessHandle.current().parent().ifPresent { parent =>
      parent.onExit().thenRun(() => Runtime.getRuntime.halt(1))
      ()
    }
    // where workers of a cluster in this process find Spark
    sys.env.get("SPARK_HOME").foreach(home => sys.props("spark.test.home") = home)
    val lines = Source.stdin.getLines()
    val builder = SparkSession.builder()
    ChildProcess.settings(lines.next()).foreach { case (key, value) =>
      builder.config(key, value)
    }
    val spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    val home = Path.of(lines.next())
    spark.sparkContext.addSparkListener(new Troubles(home))
    val queries = lines
      .grouped(2)
      .map { job =>
        val session = spark.newSession()
        ChildProcess.settings(job(1)).foreach { case (key, value) =>
          session.conf.set(key, value)
        }
        start(session, home, OperatorQuery.named(job(0)))
      }
      .toSeq
    println("started")
    // each session knows its own queries only
    while (queries.forall(_.isActive)) Thread.sleep(100)
    queries.filterNot(_.isActive).foreach { query =>
      System.err.println(s"${query.name} has ended")
      query.exception.foreach(_.printStackTrace())
    }
    Runtime.getRuntime.halt(1)
  }

  /** Starts a query over the tables in a folder, which also takes its checkpoint and its changes. */
  def start(session: SparkSession, home: Path, query: OperatorQuery): StreamingQuery = {
    ArrivingTable.stream(session, home.resolve("feeds"))
    val folder = Files.createDirectories(home.resolve(query.name))
    session
      .sql(query.changes)
      .writeStream
      .queryName(query.name)
      .option("checkpointLocation", folder.resolve("checkpoint").toString)
      .foreachBatch { (batch: DataFrame, id: Long) =>
        keep(folder, id, batch.collect().map(TextChangelog.format).toSeq)
      }
      .start()
  }

  /** Keeps a batch's changes; those of an earlier run that was not committed are replaced. */
  private def keep(folder: Path, batch: Long, changes: Seq[String]): Unit = {
    val file = folder.resolve(s"batch-$batch")
    if (Files.exists(file)) {
      val before = Files.readAllLines(file).asScala
      if (before.sorted != changes.sorted)
        Files.writeString(folder.resolve(s"differs-$batch"), before.mkString("\n"))
    }
    val unfinished = folder.resolve("unfinished")
    Files.writeString(unfinished, changes.map(_ + "\n").mkString)
    Files.move(unfinished, file, StandardCopyOption.ATOMIC_MOVE)
  }
}
