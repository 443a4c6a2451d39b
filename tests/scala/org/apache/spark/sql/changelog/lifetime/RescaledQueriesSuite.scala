// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.lifetime

import java.nio.file.{Files, Path}

import scala.util.Random

import org.apache.commons.io.FileUtils
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing.{ChangelogSession, QuickFileSystem, Share}

/**
 * Queries of every operator go on in other numbers of partitions, with each state store; after each batch they are
 * compared with batch Spark.
 */
class RescaledQueriesSuite extends AnyFunSuite with ChangelogSession {

  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Interpreted)

  for {
    ((provider, conf), number) <- RunningQueries.Providers.zipWithIndex
    (query, index) <- Share.of(OperatorQuery.all, oneIn = 5).zipWithIndex
    if Share.isAll || index % RunningQueries.Providers.size == number
  } test(s"${query.name}, state $provider")(goesOn(query, conf))

  private val distinct =
    OperatorQuery.all.find(_.name == "distinct of rows that only come").get

  for ((provider, conf) <- Share.ofWays(RunningQueries.Providers, "spread"))
    test(s"${distinct.name}, spread over partitions, state $provider") {
      goesOn(distinct, conf + ("spark.sql.changelog.aggregate.distinctSplit.enabled" -> "true"))
    }

  private def goesOn(query: OperatorQuery, conf: Map[String, String]): Unit = {
    // readers of state know no blanks in paths
    val life = new Life(query.copy(name = query.name.replaceAll("\\W+", "-")), conf)
    life.run()
    life.rescale(5)
    life.run()
    life.rescale(1)
    life.rescale(4)
    life.run()
  }

  private class Life(query: OperatorQuery, conf: Map[String, String]) {
    private val home = QuickFileSystem.temporaryDirectory().toPath
    private val folder = home.resolve(query.name)
    private val checkpoint = folder.resolve("checkpoint")
    private val random = new Random(query.name.hashCode)
    private val tables = ArrivingTable.Names.map { name =>
      name -> new ArrivingTable(name, home.resolve("feeds"), random)
    }.toMap
    private val judged = new JudgedQuery(spark.newSession(), query, folder, tables)

    /** Begins the query in a new session, lets two more files of each table arrive, and ends it. */
    def run(): Unit = {
      val session = newSession()
      val running = QueryRunner.start(session, home, query)
      val before = judged.compared
      try
        (1 to 2).foreach { _ =>
          tables.values.foreach(_.add())
          running.processAllAvailable()
        }
      finally running.stop()
      judged.judge()
      assert(judged.compared >= before + 2)
    }

    private def newSession(): SparkSession = {
      val session = spark.newSession()
      conf.foreach { case (key, value) => session.conf.set(key, value) }
      session
    }

    def rescale(partitions: Int): Unit = {
      val into = folder.resolve("rescaled")
      val spread = spark
        .sql(s"RESCALE CHECKPOINT '$checkpoint' INTO '$into' PARTITIONS $partitions")
        .collect()
      val numbers = numbersIn(into)
      assert(spread.map(_.getInt(1)).toSeq.sorted == numbers.sorted)
      assert(numbers.toSet.subsetOf(Set(1, partitions)))
      assert(entriesIn(checkpoint) == entriesIn(into))
      FileUtils.deleteDirectory(checkpoint.toFile)
      Files.move(into, checkpoint)
    }

    /** In how many partitions the operators of a checkpoint have their state. */
    private def numbersIn(checkpoint: Path): Seq[Int] = {
      val metadata = newSession().read.format("state-metadata").load(checkpoint.toString)
      metadata.select("numPartitions").collect().map(_.getInt(0)).toSeq
    }

    private def byKind(entry: Row): Seq[Row] = {
      val value = entry.getStruct(1)
      val kinds = value.getLong(0)
      val bits = (0 until 64).map(1L << _).filter(bit => (kinds & bit) != 0)
      bits.map(bit => Row(entry.getStruct(0), Row.fromSeq(bit +: value.toSeq.tail)))
    }

    /** The entries of all operators, but for what is found by time. Of values each kind of them stands by itself. */
    private def entriesIn(checkpoint: Path): Set[(Long, Row)] = {
      val session = newSession()
      val metadata = session.read.format("state-metadata").load(checkpoint.toString)
      val operators = metadata.select("operatorId", "operatorName").collect()
      val byTime = Set("changelogRowTtl", "changelogTemporalFilter", "changelogEmit")
      operators.toSet.filterNot(row => byTime(row.getString(1))).flatMap { row: Row =>
        val state = session.read.format("statestore").option("operatorId", row.getLong(0))
        val entries = state.load(checkpoint.toString).select("key", "value").collect()
        val all =
          if (row.getString(1) == "changelogDistinct") entries.flatMap(byKind) else entries
        all.map(row.getLong(0) -> _)
      }
    }
  }
}
