// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.functions

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.{Encoders, Row}

import org.apache.spark.sql.changelog.testing._

/** Truncations that are applied at their place in the order of a feed. */
class TruncationSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Quick)

  /** A change of one key, or a truncation without a key. */
  private case class Change(at: Int, key: Option[Int], value: Option[String], table: String = "t")

  private val debezium: Change => String = {
    case Change(at, None, _, table) => s"""{"op":"t","source":{"table":"$table","lsn":$at}}"""
    case Change(at, Some(key), None, table) =>
      s"""{"op":"d","before":{"id":$key},"source":{"table":"$table","lsn":$at}}"""
    case Change(at, Some(key), Some(value), table) =>
      s"""{"op":"u","after":{"id":$key,"v":"$value"},"source":{"table":"$table","lsn":$at}}"""
  }

  private val canal: Change => String = { case Change(at, key, value, table) =>
    val kind = if (key.isEmpty) "TRUNCATE" else if (value.isEmpty) "DELETE" else "UPDATE"
    val data = key.fold("null")(id => s"""[{"id":"$id","v":"${value.getOrElse("")}"}]""")
    s"""{"type":"$kind","es":$at,"table":"$table","isDdl":${key.isEmpty},"data":$data}"""
  }

  private val goldenGate: Change => String = { case Change(at, key, value, table) =>
    val kind = if (key.isEmpty) "T" else if (value.isEmpty) "D" else "I"
    val image = key.fold("") { id =>
      s""","${if (value.isEmpty) "before" else "after"}":{"id":$id,"v":"${value.getOrElse(
          "")}"}"""
    }
    f"""{"op_type":"$kind","pos":"$at%020d","table":"S.$table"$image}"""
  }

  private val formats = Seq("debezium" -> debezium, "canal" -> canal, "goldengate" -> goldenGate)

  private def call(format: String, more: String = ""): String =
    s"from_$format(TABLE(records), schema => 'id INT, v STRING', key => 'id', table => 't', on_truncate => 'apply'$more)"

  /** The table after the changes, one by one in their order. */
  private def replay(changes: Seq[Change]): Seq[String] = changes
    .filter(_.table == "t")
    .sortBy(_.at)
    .foldLeft(Map.empty[Int, String]) {
      case (_, Change(_, None, _, _)) => Map.empty
      case (rows, Change(_, Some(key), None, _)) => rows - key
      case (rows, Change(_, Some(key), Some(value), _)) => rows + (key -> value)
    }
    .map { case (key, value) => s"$key $value" }
    .toSeq
    .sorted

  private def draw(random: Random, number: Int): Seq[Change] = (1 to number).map { at =>
    val table = if (random.nextInt(6) == 0) "other" else "t"
    if (random.nextInt(8) == 0) Change(at, None, None, table)
    else {
      val value = Option.when(random.nextInt(4) > 0)(s"v$at")
      Change(at, Some(1 + random.nextInt(5)), value, table)
    }
  }

  private def check(
      format: String,
      write: Change => String,
      changes: Seq[Change],
      random: Random,
      sql: String = "SELECT * FROM feed"): Unit = {
    val stream = MemoryStream[Row](1)(Encoders.row(RecordFeed.Schema), spark.sqlContext)
    stream.toDF().createOrReplaceTempView("records")
    spark.sql(s"SELECT * FROM ${call(format)}").createOrReplaceTempView("feed")
    val kept = new KeptTable(spark, sql)
    var delivered = Seq.empty[Change]
    while (delivered.size < changes.size) {
      val batch = changes.slice(delivered.size, delivered.size + 1 + random.nextInt(6))
      delivered ++= batch
      stream.addData(batch.map(change => Row(null, write(change), 0, change.at.toLong)))
      kept.catchUp()
      assert(kept.table == replay(delivered), s"$format after $delivered")
    }
    val feed = new RecordFeed(spark, changes.map(write))
    assert(feed.batch(call(format)) == replay(changes), s"$format as a batch")
  }

  test("random feeds with truncations, in order and shuffled") {
    for (((format, write), number) <- formats.zipWithIndex; isShuffled <- Seq(false, true)) {
      val random = new Random(7L * number + 1)
      val changes = draw(random, 30)
      assert(changes.exists(change => change.key.isEmpty && change.table == "t"))
      check(format, write, if (isShuffled) random.shuffle(changes) else changes, random)
    }
  }

  test("records with the same sequence are ordered by their offset") {
    val random = new Random(8)
    check("canal", change => canal(change.copy(at = change.at / 4)), draw(random, 30), random)
  }

  test("aggregates over a feed that is emptied") {
    val records = Seq(
      Change(1, Some(1), Some("a")),
      Change(2, Some(2), Some("a")),
      Change(3, None, None),
      Change(4, Some(3), Some("a"))).map(debezium)
    val sql = "SELECT v, count(*) AS n FROM feed GROUP BY v"
    Seq(1, 2, 10).foreach { size =>
      assert(
        new RecordFeed(spark, records).stream(call("debezium"), size, sql = sql) == Seq("a 1"))
    }
  }

  test("rows of a snapshot precede every truncation") {
    spark.sql("SELECT 1 AS id, 'old' AS v").createOrReplaceTempView("stored")
    val snapshot = call("debezium", ", snapshot => TABLE(stored)")
    def table(changes: Change*) =
      new RecordFeed(spark, changes.map(debezium)).stream(snapshot)
    assert(table(Change(1, Some(2), Some("new"))) == Seq("1 old", "2 new"))
    assert(table(Change(1, Some(2), Some("new")), Change(2, None, None)) == Nil)
  }

  test("a key of the feed is a key of the changes") {
    val feed = MemoryStream[Row](1)(Encoders.row(RecordFeed.Schema), spark.sqlContext)
    feed.toDF().createOrReplaceTempView("records")
    val changes = new RunningChanges(
      spark.sql(
        s"SELECT * FROM to_changelog(TABLE(SELECT * FROM ${call("debezium")}), mode => 'upsert', key => 'id')"),
      QuickFileSystem.temporaryDirectory())
    try {
      feed.addData(Row(null, debezium(Change(1, Some(1), Some("a"))), 0, 0L))
      assert(changes.next() == Seq("1 a insert"))
      feed.addData(Row(null, debezium(Change(2, None, None)), 0, 1L))
      assert(changes.next().map(_.split(' ').last) == Seq("delete"))
    } finally changes.stop()
  }

  test("without a key, or an order of its rows, it is refused") {
    val keyless =
      "from_debezium(TABLE(records), schema => 'id INT', on_truncate => 'apply')"
    checkError("CHANGELOG_ARGUMENT_INVALID", "argument" -> "on_truncate") {
      new RecordFeed(spark, Nil).batch(keyless)
    }
    checkError("CHANGELOG_ARGUMENT_INVALID", "argument" -> "on_truncate") {
      new RecordFeed(spark, Nil).batch(call("debezium", ", input => 'retract'"))
    }
  }
}
