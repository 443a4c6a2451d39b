// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import java.nio.file.Files
import java.util.UUID
import java.util.concurrent.TimeUnit

import scala.collection.mutable
import scala.util.Random

import org.scalatest.Assertions._

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Column, DataFrame}

import org.apache.spark.sql.changelog.lifetime.{ArrivingTable, OperatorQuery, ReadBatches}
import org.apache.spark.sql.changelog.plans.ChangelogOutput
import org.apache.spark.sql.changelog.testing._

/**
 * Writes random queries of [[OperatorQuery]] through a sink, each by a process that is killed again and
 * again, and compares what is kept with batch Spark.
 *
 * @param sink
 *   the sink
 * @param random
 *   decides which queries, what changes, and when processes are killed
 * @param conf
 *   settings of the process that writes
 */
class KilledQueries(
    spark: SparkSession,
    sink: KilledQueries.Sink,
    random: Random,
    conf: Map[String, String] = Map.empty) {
  import KilledQueries._

  private val batch = spark.newSession()
  ChangelogSession.Quick.foreach { case (key, value) => batch.conf.set(key, value) }
  private val streaming = spark.newSession()
  private val empty = QuickFileSystem.temporaryDirectory().toPath
  ArrivingTable.Names.foreach(name => Files.createDirectory(empty.resolve(name)))
  ArrivingTable.stream(streaming, empty)

  /** What was killed, for the report of a run. */
  def told: String = counts.map { case (query, kills) => s"$query ${kills}x" }.mkString(", ")

  private val counts = mutable.LinkedHashMap.empty[String, Int].withDefaultValue(0)

  /** Kills processes `rounds` times, a few times for each query, and then lets them end. */
  def run(rounds: Int): Unit = {
    val queries = Iterator.continually(random.shuffle(OperatorQuery.all)).flatten.filter(fits)
    for (first <- 1 to rounds by KillsOfOne) {
      val query = queries.next()
      val kills = math.min(KillsOfOne, rounds - first + 1)
      val where = s"'${query.name}', kill $first and on of $rounds"
      withClue(s"$where, CHANGELOG_KILL_SEED=${KilledWriter.seed}: ") {
        new Killed(query, s"killed_${UUID.randomUUID().toString.take(8)}").run(kills)
      }
      counts(query.name) += kills
    }
  }

  /** Whether the sink can keep a query, as far as its plan over empty tables tells. */
  private def fits(query: OperatorQuery): Boolean =
    sink.takes(PlannedChanges(streaming, query.changes))

  private class Killed(query: OperatorQuery, table: String) {
    private val home = QuickFileSystem.temporaryDirectory().toPath
    private val feeds = Files.createDirectory(home.resolve("feeds"))
    private val checkpoint = home.resolve("checkpoint")
    private val tables = ArrivingTable.Names
      .map(name => name -> new ArrivingTable(name, feeds, random))
      .toMap
    private val batches = new ReadBatches(batch, query, checkpoint, tables)
    private val writers = new ChildProcess(QueryWriter, home)

    def run(kills: Int): Unit = {
      for (_ <- 1 to kills) {
        tables.values.foreach(table => (0 to random.nextInt(MostFiles)).foreach(_ => table.add()))
        val writer = start()
        Thread.sleep(random.nextInt(LatestKillMillis).toLong)
        if (!writer.isAlive) assert(writer.exitValue() == 0, writers.said)
        writer.destroyForcibly().waitFor()
        if (sink.isAtomic) checkKept(lastWritten)
      }
      tables.values.foreach(_.add())
      val last = start()
      assert(last.inputReader().readLine() == "finished", writers.said)
      assert(last.waitFor(60, TimeUnit.SECONDS))
      assert(batches.expected(batches.lastBegun.get).isDefined)
      tables.foreach { case (name, table) =>
        assert(
          Set(0, table.size).contains(batches.read(name)),
          s"not all files of $name were read")
      }
      checkKept(batches.lastBegun.toSeq)
    }

    private def start(): Process = {
      val settings = ChildProcess.session(home) ++ conf
      val writer = writers.start(
        ChildProcess.line(settings),
        feeds.toString,
        query.name,
        checkpoint.toString,
        sink.format,
        ChildProcess.line(sink.options(table)))
      assert(writer.inputReader().readLine() == "started", writers.said)
      writer
    }

    /** The batches of which one is the last that was written: it may not be committed. */
    private def lastWritten: Seq[Long] =
      Seq(batches.lastCommitted, batches.lastBegun).flatten.distinct

    private def checkKept(allowed: Seq[Long]): Unit = {
      val schema = batches.schema
      val kept = sink.read(table, schema).fold(RowMultiset.of(Nil)) { stored =>
        val columns = schema.map { field =>
          val column: Column = stored.col(s"`${field.name}`")
          column.cast(field.dataType)
        }
        RowMultiset.of(stored.select(columns: _*).collect())
      }
      val results = allowed.map(batches.expected)
      // before the first batch is committed, nothing may be kept
      val none = if (batches.lastCommitted.isEmpty) Seq(RowMultiset.of(Nil)) else Nil
      val expected = none ++ results.flatten.map(RowMultiset.of(_))
      if (results.forall(_.isDefined))
        assert(
          expected.contains(kept),
          s"after batch ${allowed.mkString(" or ")}, expected\n${expected.mkString("\nor\n")}")
    }
  }
}

object KilledQueries {
  private val KillsOfOne = 2
  private val MostFiles = 3
  private val LatestKillMillis = 8000

  /**
   * @param options
   *   the sink's options for a table of some name
   * @param read
   *   reads that table, of a schema; none as long as nothing was written
   * @param isAtomic
   *   whether what is kept must be the result of some batch also after a kill
   * @param takes
   *   whether the sink can keep a query
   */
  case class Sink(
      format: String,
      options: String => Map[String, String],
      read: (String, StructType) => Option[DataFrame],
      isAtomic: Boolean,
      takes: ChangelogOutput => Boolean)

  /** Whether rows that change can be told by a key. */
  def hasKey(output: ChangelogOutput): Boolean =
    PlannedChanges.isInsertOnly(output) || output.upsertKeys.exists(_.nonEmpty)
}
