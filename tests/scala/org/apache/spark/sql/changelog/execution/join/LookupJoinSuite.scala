// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import scala.collection.mutable
import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.types.StringType
import org.apache.spark.sql.{DataFrame, Encoders, Row}

import org.apache.spark.sql.changelog.testing._

/** Joins with a table as it is when rows come. */
class LookupJoinSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  private val orders = Feed("orders", "id INT, cur INT, amount INT", insertOnly = true)
  private val columns = "cur INT, rate INT, nr INT"
  private val tables = Seq(
    "keyed by the join key" -> Feed("rates", columns, key = Seq("cur")),
    "of newest rows" -> Feed("rates", columns, key = Seq("cur"), upsert = true),
    "keyed by another column" -> Feed("rates", columns, key = Seq("nr")),
    "without a key" -> Feed("rates", columns))
  private val queries = Seq(
    "SELECT o.*, r.rate FROM orders o JOIN %s r ON o.cur = r.cur",
    "SELECT o.id, r.rate, r.nr FROM orders o LEFT JOIN %s r ON o.cur = r.cur AND r.rate < o.amount " +
      "WHERE o.id > 0",
    "SELECT o.* FROM orders o LEFT SEMI JOIN %s r ON o.cur = r.cur",
    "SELECT o.* FROM orders o LEFT ANTI JOIN %s r ON o.cur = r.cur AND r.rate < o.amount")

  tables.zipWithIndex.foreach { case ((name, rates), index) =>
    test(s"each row is joined once, with the table after its batch, $name") {
      val query = queries(index)
      check(query, rates, seed = index, queries((index + 1) % queries.size))
    }
  }

  /** Runs queries over the same changes, batch by batch, against joins of the batch's rows. */
  private def check(first: String, rates: Feed, seed: Long, second: String): Unit =
    Seq(first, second).foreach { sql =>
      val random = new Random(seed)
      val values = new RandomValues(random, wraps = false, small = true)
      val changelogs = Seq(orders, rates).map(new RandomChangelog(random, _, values))
      val table = if (rates.upsert) new UpsertTable(rates) else new RetractTable(rates.insertOnly)
      val streams = Seq(orders, rates).map { feed =>
        val schema = feed.schema.add("op", StringType)
        val stream = MemoryStream[Row](1)(Encoders.row(schema), spark.sqlContext)
        stream.toDF().createOrReplaceTempView(s"${feed.name}_changes")
        spark.sql(feed.read(s"${feed.name}_changes", "op")).createOrReplaceTempView(feed.name)
        stream
      }
      val emitted = mutable.ArrayBuffer.empty[Row]
      val query = spark
        .sql(
          s"SELECT * FROM to_changelog(TABLE(${sql.format("lookup(TABLE(rates))")}), 'append')")
        .writeStream
        .option("checkpointLocation", QuickFileSystem.temporaryDirectory().getPath)
        .foreachBatch { (batch: DataFrame, _: Long) =>
          emitted ++= batch.drop("_change_type").collect()
          ()
        }
      val running = query.start()
      val session = spark.newSession()
      try
        (1 to 5).foreach { _ =>
          val Seq(rows, changes) =
            changelogs.map(changelog => Seq.fill(random.nextInt(15))(changelog.next()).flatten)
          // rates first: a batch that begins too early has no orders
          changes.foreach(table.add)
          streams(1).addData(changes.map(change => Row.fromSeq(change.row.toSeq :+ change.kind)))
          running.processAllAvailable()
          assert(emitted.isEmpty)
          streams(0).addData(rows.map(change => Row.fromSeq(change.row.toSeq :+ change.kind)))
          running.processAllAvailable()
          view(session, orders, rows.map(_.row))
          view(session, rates, table.rows)
          val expected = RowMultiset.of(session.sql(sql.format("rates")).collect())
          assert(RowMultiset.of(emitted) == expected)
          emitted.clear()
        }
      finally running.stop()
    }

  private def view(
      session: org.apache.spark.sql.classic.SparkSession,
      feed: Feed,
      rows: Seq[Row]): Unit =
    session
      .createDataFrame(java.util.List.of(rows: _*), feed.schema)
      .createOrReplaceTempView(feed.name)

  test("changes of the same batch are in the table, later ones change nothing") {
    val stream = new RawStream(spark, "raw", "side STRING, k INT, v INT")
    val query = new RunningChanges(
      spark.sql("""SELECT * FROM to_changelog(TABLE(
          |SELECT l.v, r.n FROM (SELECT * FROM raw WHERE side = 'l') l LEFT JOIN lookup(TABLE(
          |SELECT k, sum(v) AS n FROM raw WHERE side = 'r' GROUP BY k)) r ON l.k = r.k))""".stripMargin),
      QuickFileSystem.temporaryDirectory())
    try {
      stream.add("l 1 10", "r 1 5", "r 1 6")
      assert(query.next() == Seq("10 11 insert"))
      stream.add("r 1 7")
      assert(query.next() == Nil)
      stream.add("l 1 12", "l 2 13")
      assert(query.next() == Seq("12 18 insert", "13 NULL insert"))
      val records = spark.read
        .format("statestore")
        .option("operatorId", 1)
        .load(query.checkpoint.getPath)
      assert(records.selectExpr("key.side").collect().map(_.getByte(0)).toSeq == Seq(1))
    } finally query.stop()
  }

  test("a batch query joins with the table") {
    val sql = "SELECT l.a, r.b FROM VALUES (1, 2) AS l(k, a) JOIN %s r ON l.k = r.k"
    val table = "(SELECT * FROM VALUES (1, 3) AS r(k, b))"
    val looked = spark.sql(sql.format(s"lookup(TABLE($table))")).collect()
    assert(looked.toSeq == Seq(Row(2, 3)))
  }

  test("rows that are taken back can't be joined once") {
    new RawStream(spark, "raw", "op STRING, k INT, v INT")
    val changes = "(SELECT * FROM from_changelog(TABLE(raw), 'op'))"
    val error = intercept[Exception](
      start(s"SELECT l.v, r.v AS w FROM $changes l JOIN lookup(TABLE($changes)) r ON l.k = r.k"))
    assert(
      error.getMessage.contains("[CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES] ChangelogLookupJoin"))
  }

  test("a lookup that is not joined with is refused") {
    new RawStream(spark, "raw", "k INT, v INT")
    Seq(
      "SELECT * FROM lookup(TABLE(raw))",
      "SELECT l.v FROM raw r RIGHT JOIN lookup(TABLE(raw)) l ON l.k = r.k",
      "SELECT k FROM raw WHERE k IN (SELECT k FROM lookup(TABLE(raw)))").foreach { sql =>
      val error = intercept[Exception](start(sql))
      val condition = "CHANGELOG_LOOKUP_MISPLACED"
      assert(error.getMessage.contains(s"[$condition]"), sql)
    }
  }

  private def start(sql: String): Unit = spark
    .sql(s"SELECT * FROM to_changelog(TABLE($sql))")
    .writeStream
    .format("noop")
    .option("checkpointLocation", QuickFileSystem.temporaryDirectory().getPath)
    .start()
    .stop()
}
