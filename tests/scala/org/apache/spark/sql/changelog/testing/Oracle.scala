// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.collection.mutable
import scala.util.Try

import org.apache.spark.sql.catalyst.optimizer.EliminateLimits
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.{
  MemoryStream,
  MicroBatchExecution,
  StreamingQueryWrapper
}
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.types.{StringType, StructField, StructType}
import org.apache.spark.sql.{DataFrame, Encoders, Row}
import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.RowKind

/**
 * Holds a query that is kept up to date against the same query run as a batch.
 *
 * After every step, what the query has emitted so far is replayed into an empty table, which must
 * then equal batch Spark's result over everything that has arrived. On the way it is checked that
 * nothing is taken back that was not there, and that no batch says more than it must.
 */
class Oracle(spark: SparkSession) {
  import Oracle._

  /** Runs the batch queries: small ones, for which compiling code takes longer than they do. */
  private lazy val batchSession: SparkSession = {
    val session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    // in tests Spark fails where a second run of its own rule would drop a limit above an offset
    session.conf.set("spark.sql.optimizer.excludedRules", EliminateLimits.ruleName)
    session
  }

  /** Does something, such as registering a function, in all sessions that queries run in. */
  def inSessions(body: SparkSession => Unit): Unit = Seq(spark, batchSession).foreach(body)

  /** Whether batch Spark takes the program's query. */
  def accepts(program: Program): Boolean = {
    program.feeds.foreach { feed =>
      batchSession
        .createDataFrame(java.util.Collections.emptyList[Row](), feed.schema)
        .createOrReplaceTempView(feed.name)
    }
    program.createViews(batchSession)
    Try(batchSession.sql(program.sql).queryExecution.optimizedPlan).isSuccess
  }

  /** Runs `program` and checks it after every step. Returns the changes emitted per step. */
  def check(program: Program, variant: Variant = Variant()): Seq[Seq[Change]] =
    run(program, variant, compares = true)

  /**
   * Like [[check]], for a query that batch Spark may answer in several ways: its result is not
   * compared, but nothing may be taken back that was not given.
   */
  def run(
      program: Program,
      variant: Variant = Variant(),
      compares: Boolean = false): Seq[Seq[Change]] =
    withConf(variant.conf) {
      val run = new Run(program, variant, compares)
      try program.steps.map(run.step)
      finally run.stop()
    }

  /** Checks a program in several ways; all must emit the same net changes. */
  def checkAll(program: Program, variants: Seq[Variant] = Variant.all): Unit =
    variants.foreach { variant =>
      try check(program, variant)
      catch {
        case error: Throwable =>
          throw new AssertionError(s"in variant [$variant] of\n${program.sql}\n$error", error)
      }
    }

  private class Run(program: Program, variant: Variant, compares: Boolean) {
    private val streams = program.feeds.map { feed =>
      val encoder = Encoders.row(rawSchema(feed))
      feed.name -> MemoryStream[Row](feed.partitions)(encoder, spark.sqlContext)
    }.toMap
    private val tables = program.feeds.map { feed =>
      feed.name -> (if (feed.upsert) new UpsertTable(feed) else new RetractTable)
    }.toMap
    private val checkpoint = QuickFileSystem.temporaryDirectory()
    private val emitted = mutable.ArrayBuffer.empty[Change]
    private val replayed = new RowMultiset
    private val upserted = mutable.Map.empty[Seq[Any], Row]
    private val changes = query()
    private var running: Option[StreamingQuery] = None

    /** The changes the program's query gives, over streams. */
    private def query(): DataFrame = {
      program.feeds.foreach { feed =>
        val raw = s"${feed.name}_changes"
        streams(feed.name).toDF().createOrReplaceTempView(raw)
        spark.sql(feed.read(raw, ChangeType)).createOrReplaceTempView(feed.name)
      }
      program.createViews(spark)
      val key = if (variant.key.isEmpty) "" else s", key => ${names(variant.key)}"
      spark.sql(
        s"SELECT * FROM to_changelog(TABLE(${program.sql}), mode => '${variant.mode}'$key)")
    }

    def step(step: Step): Seq[Change] = {
      val before = emitted.size
      running match {
        case Some(query) => locked(query)(arrive(step))
        case None => arrive(step)
      }
      val query = running.getOrElse(start())
      query.processAllAvailable()
      if (variant.restart) stopQuery() else running = Some(query)
      val now = emitted.drop(before).toSeq
      verify(now)
      now
    }

    /** No batch begins before everything that arrives together has arrived. */
    private def locked(query: StreamingQuery)(body: => Unit): Unit = query
      .asInstanceOf[StreamingQueryWrapper]
      .streamingQuery
      .asInstanceOf[MicroBatchExecution]
      .withProgressLocked(body)

    private def arrive(step: Step): Unit = program.feeds.foreach { feed =>
      val changes = step.changes.getOrElse(feed.name, Nil)
      changes.foreach(tables(feed.name).add)
      streams(feed.name).addData(changes.map(rawRow))
    }

    def stop(): Unit = {
      stopQuery()
      running = None
      Utils.deleteRecursively(checkpoint)
    }

    private def stopQuery(): Unit = {
      running.foreach(_.stop())
      running = None
    }

    private def start(): StreamingQuery = {
      val query = changes.writeStream
        .option("checkpointLocation", checkpoint.getPath)
        .foreachBatch { (batch: DataFrame, _: Long) =>
          val kinds = RowKind.ChangeTypes.zip(RowKind.Symbols).toMap
          batch.collect().foreach { row =>
            emitted += Change(kinds(row.getString(row.size - 1)), Row.fromSeq(row.toSeq.init))
          }
        }
        .start()
      running = Some(query)
      query
    }

    private def verify(now: Seq[Change]): Unit = {
      val actual =
        if (variant.mode == "upsert") {
          now.foreach(upsert)
          checkOneChangePerKey(now)
          RowMultiset.of(upserted.values)
        } else {
          now.foreach(replayed.replay)
          checkMinimal(now)
          checkPairs(now)
          replayed
        }
      if (compares) compare(now, actual)
    }

    private def compare(now: Seq[Change], actual: RowMultiset): Unit = {
      val expected = RowMultiset.of(batch())
      if (actual != expected) {
        throw new AssertionError(
          s"after ${now.mkString("\n  ", "\n  ", "\n")}the table is\n$actual\nnot\n$expected")
      }
    }

    private def batch(): Seq[Row] = {
      program.feeds.foreach { feed =>
        val table = tables(feed.name)
        dataFrame(table.rows, feed.schema).createOrReplaceTempView(feed.name)
        if (feed.upsert) checkBatchReads(feed, table)
      }
      program.createViews(batchSession)
      batchSession.sql(program.sql).collect().toSeq
    }

    /** A batch `from_changelog` over everything so far must give the same table. */
    private def checkBatchReads(feed: Feed, table: FeedTable): Unit = {
      val raw = s"${feed.name}_changes_so_far"
      dataFrame(table.changes.map(rawRow), rawSchema(feed)).createOrReplaceTempView(raw)
      val read = RowMultiset.of(batchSession.sql(feed.read(raw, ChangeType)).collect())
      val expected = RowMultiset.of(table.rows)
      assert(read == expected, s"a batch reads ${feed.name} as\n$read\nnot\n$expected")
    }

    private def dataFrame(rows: Seq[Row], schema: StructType): DataFrame =
      batchSession.createDataFrame(java.util.Arrays.asList(rows: _*), schema)

    private def upsert(change: Change): Unit = {
      assert(change.kind != "-U", s"$change in upsert mode")
      val key = keyOf(change.row)
      if (change.isRetraction) {
        assert(upserted.contains(key), s"$change takes back a row that is not there")
        upserted -= key
      } else upserted(key) = change.row
    }

    private def checkOneChangePerKey(now: Seq[Change]): Unit =
      now.groupBy(change => keyOf(change.row)).foreach { case (key, changes) =>
        assert(changes.size == 1, s"key $key changes more than once: ${changes.mkString(", ")}")
      }

    private def keyOf(row: Row): Seq[Any] = {
      val names = changes.columns
      RowMultiset.normalize(Row.fromSeq(variant.key.map(name => row.get(names.indexOf(name)))))
    }

    /** What a batch takes back and gives again need not be said at all. */
    private def checkMinimal(now: Seq[Change]): Unit = {
      val (gone, come) = now.partition(_.isRetraction)
      val both =
        gone.map(_.row).map(RowMultiset.withSigns).toSet &
          come.map(_.row).map(RowMultiset.withSigns).toSet
      assert(both.isEmpty, s"both taken back and given: ${both.mkString(", ")}")
    }

    /** `-U` is always followed by its `+U`. */
    private def checkPairs(now: Seq[Change]): Unit = {
      val unpaired = now.map(_.kind).mkString(" ").replace("-U +U", "")
      assert(!unpaired.contains("U"), s"an update has only one half: ${now.mkString(", ")}")
    }
  }

  private def withConf[T](conf: Map[String, String])(body: => T): T = {
    val before = conf.keys.map(key => key -> spark.conf.getOption(key)).toMap
    val sessions = Seq(spark, batchSession)
    sessions.foreach(session =>
      conf.foreach { case (key, value) => session.conf.set(key, value) })
    try body
    finally
      sessions.foreach { session =>
        before.foreach {
          case (key, Some(value)) => session.conf.set(key, value)
          case (key, None) => session.conf.unset(key)
        }
      }
  }
}

object Oracle {
  private val ChangeType = "_op"

  private def names(columns: Seq[String]): String = columns.mkString("array('", "', '", "')")

  private def rawSchema(feed: Feed): StructType =
    StructType(StructField(ChangeType, StringType) +: feed.schema.fields)

  private def rawRow(change: Change): Row = Row.fromSeq(change.kind +: change.row.toSeq)
}
