// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.snapshots

import java.io.File

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.testing._

/** A feed that goes on from a snapshot. */
class SnapshotSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {

  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf =
      ChangelogSession.DeltaConf ++ ChangelogSession.MostlyInterpreted)

  private val rows = Seq("(1, 'Oslo', 5, 10)", "(2, 'Rome', 7, 10)", "(3, NULL, 1, 10)")

  private def values(rows: Seq[String]): String =
    s"SELECT * FROM VALUES ${rows.mkString(", ")} AS t(id, city, fare, ts)"

  private def write(format: String, folder: File, rows: String*): Unit =
    spark.sql(values(rows)).write.format(format).mode("overwrite").save(folder.getPath)

  /** A table of files, and the query that reads it. */
  private def table(format: String): (File, String) = {
    val folder = new File(QuickFileSystem.temporaryDirectory(), "t")
    write(format, folder, rows: _*)
    (folder, s"SELECT * FROM $format.`${folder.getPath}`")
  }

  private val overlap = Seq(
    Seq("+I 2 Rome 7 10", "+I 4 Bern 2 12"),
    Seq("-U 1 Oslo 5 10", "+U 1 Oslo 6 11", "-D 3 NULL 1 13", "-D 9 Paris 3 2"),
    Seq("+U 4 Bern 3 13", "+I 3 Nice 4 15"))

  private val kinds = for {
    sequence <- Seq("", ", sequence_by => 'ts'")
    format <- Seq("values", "parquet", "delta")
  } yield (format, sequence)

  for ((format, sequence) <- Share.of(kinds, oneIn = 2)) {
    test(s"the feed goes on from a snapshot of $format$sequence, with restarts") {
      val snapshot = if (format == "values") values(rows) else table(format)._2
      val life = new SnapshotLife(spark, snapshot, sequence)
      life.check()
      assert(life.table == Seq("1 Oslo 5 10", "2 Rome 7 10", "3 NULL 1 10"))
      overlap.foreach { changes =>
        life.arrive(changes: _*)
        life.check()
      }
      assert(life.copies.isEmpty)
      assert(life.table == Seq("1 Oslo 6 11", "2 Rome 7 10", "3 Nice 4 15", "4 Bern 3 13"))
    }
  }

  for (format <- Seq("parquet", "delta")) {
    test(s"the first batch, run again, has the rows that it had, whatever became of $format") {
      val (folder, snapshot) = table(format)
      val life =
        new SnapshotLife(spark, snapshot, sql = "SELECT city, sum(fare) FROM rides GROUP BY city")
      life.arrive("+U 2 Rome 8 11")
      var copies = 0
      intercept[Exception](life.run { batch =>
        copies = life.copies.size
        batch == 0
      })
      // versions of Delta can be read again
      assert(copies == (if (format == "delta") 0 else 1))
      write(format, folder, "(1, 'Oslo', 50, 10)", "(7, 'Nice', 1, 10)")
      life.check()
      assert(life.table == Seq("NULL 1", "Oslo 5", "Rome 8"))
      life.arrive("+U 1 Oslo 9 12")
      life.check()
      assert(life.table == Seq("NULL 1", "Oslo 9", "Rome 8"))
      assert(life.copies.isEmpty)
    }
  }

  test("a table that has changed after the first batch is not read again") {
    val (folder, snapshot) = table("parquet")
    val life = new SnapshotLife(spark, snapshot)
    life.run()
    write("parquet", folder, "(8, 'Nice', 1, 10)")
    life.check()
    write("parquet", folder, "(9, 'Nice', 1, 10)")
    life.arrive("-D 1 Oslo 5 11")
    life.check()
    assert(life.table == Seq("2 Rome 7 10", "3 NULL 1 10"))
  }

  test(
    "changes older than the snapshot's rows are skipped and counted, in the first batch and later") {
    val life = new SnapshotLife(spark, values(rows), ", sequence_by => 'ts'")
    life.arrive("+U 1 Bern 4 8", "-D 2 Rome 7 9", "+U 3 Nice 1 11", "-D 5 Paris 1 1")
    life.check()
    assert(life.table == Seq("1 Oslo 5 10", "2 Rome 7 10", "3 Nice 1 11"))
    assert(life.outdated == 2)
    life.arrive("+U 1 Bern 4 9", "+U 5 Paris 1 0", "+U 3 Nice 2 10", "+U 3 Nice 3 12")
    life.check()
    assert(life.table == Seq("1 Oslo 5 10", "2 Rome 7 10", "3 Nice 3 12"))
    assert(life.outdated == 3)
  }

  test(
    "without a sequence the feed replaces what the snapshot has, and takes back nothing that is not there") {
    spark.conf.set("spark.sql.changelog.unmatchedRetraction", "fail")
    try {
      val life = new SnapshotLife(spark, values(rows))
      life.arrive("-D 9 Paris 1 1", "+I 1 Bern 4 8", "-D 2 Rome 7 9")
      life.check()
      assert(life.table == Seq("1 Bern 4 8", "3 NULL 1 10"))
      assert(life.outdated == 0)
    } finally spark.conf.unset("spark.sql.changelog.unmatchedRetraction")
  }

  test("aggregates, joins and a second reading of the same feed stand above it") {
    Seq(
      "SELECT city, count(*), sum(fare), max(ts) FROM rides GROUP BY city",
      "SELECT a.id, b.id FROM rides a JOIN rides b ON a.city = b.city AND a.id < b.id",
      "SELECT id FROM rides WHERE fare > (SELECT avg(fare) FROM rides)").foreach { sql =>
      val life = new SnapshotLife(spark, values(rows), ", sequence_by => 'ts'", sql)
      life.arrive("+U 1 Rome 4 11", "+I 5 Rome 4 11")
      life.check()
      assert(life.progress.head.sources.length == 2)
      life.arrive("-D 2 Rome 7 12", "+I 6 Oslo 4 12")
      life.check()
      life.arrive("+U 3 Oslo 9 12")
      life.check()
    }
  }

  test("the snapshot's columns are found by name, and written as INSERT would") {
    val life = new SnapshotLife(
      spark,
      "SELECT ts, CAST(5 AS BIGINT) AS fare, 'x' AS more, CITY, id FROM VALUES (1L, 'Oslo', 3) AS t(ts, CITY, id)")
    life.check()
    assert(life.table == Seq("3 Oslo 5 1"))
  }

  private def refused(
      condition: String,
      parameters: (String, String)*)(arguments: String): Unit = {
    val schema = s"op STRING, ${SnapshotLife.Rides.toDDL}"
    spark
      .createDataFrame(java.util.List.of[Row](), StructType.fromDDL(schema))
      .createOrReplaceTempView("batch_feed")
    spark.readStream
      .schema(schema)
      .csv(QuickFileSystem.temporaryDirectory().getPath)
      .createOrReplaceTempView("stream_feed")
    Seq("batch_feed", "stream_feed").foreach { feed =>
      checkError(condition, parameters: _*) {
        spark.sql(s"SELECT * FROM from_changelog(TABLE($feed), 'op', $arguments)").collect()
      }
    }
  }

  test("what no feed can go on from is refused") {
    val key = "key => 'id', snapshot =>"
    refused(
      "CHANGELOG_SNAPSHOT_COLUMN_MISSING",
      "column" -> "ts",
      "columns" -> "id, city, fare",
      "function" -> "from_changelog")(s"$key TABLE(SELECT 1 AS id, 'Oslo' AS city, 2 AS fare)")
    refused("CHANGELOG_SNAPSHOT_COLUMN_TYPE", "found" -> "BOOLEAN", "expected" -> "INT")(
      s"$key TABLE(SELECT true AS id, 'Oslo' AS city, 2 AS fare, 3 AS ts)")
    refused("CHANGELOG_SNAPSHOT_KEY_MISSING", "function" -> "from_changelog")(
      s"snapshot => TABLE(${values(rows)})")
    refused("CHANGELOG_SNAPSHOT_STREAMING", "function" -> "from_changelog")(
      s"$key TABLE(stream_feed)")
    refused("CHANGELOG_SNAPSHOT_STREAMING")(
      s"$key TABLE(SELECT * FROM from_changelog(TABLE(stream_feed), 'op'))")
    refused("CHANGELOG_ARGUMENT_INVALID", "argument" -> "input")(
      s"input => 'retract', $key TABLE(${values(rows)})")
    refused("CHANGELOG_ARGUMENT_INVALID", "argument" -> "snapshot")(
      s"key => 'id', snapshot => 't'")
    checkError("CHANGELOG_ARGUMENT_INVALID", "argument" -> "table") {
      spark.readStream.format("changelog-initial-snapshot").load()
    }
  }

  test("rows of a snapshot without key, or of one key, are refused") {
    val repeated = values(rows :+ "(2, 'Bern', 1, 3)")
    Seq("", ", sequence_by => 'ts'").foreach { sequence =>
      val life = new SnapshotLife(spark, repeated, sequence)
      checkError("CHANGELOG_SNAPSHOT_KEY_REPEATED", "key" -> "2")(life.run())
      checkError("CHANGELOG_SNAPSHOT_KEY_REPEATED", "key" -> "2")(life.expected)
    }
    val without = values(rows :+ "(NULL, 'Bern', 1, 3)")
    checkError("CHANGELOG_KEY_NULL")(new SnapshotLife(spark, without).run())
    val dropping = new SnapshotLife(spark, without, ", on_error => 'drop'")
    dropping.check()
    assert(dropping.table.size == 3)
  }

  test("a copy that is gone before its batch is done is told") {
    val life = new SnapshotLife(spark, table("parquet")._2)
    intercept[Exception](life.run(_ => true))
    life.copies.foreach(Utils.deleteRecursively)
    checkError("CHANGELOG_SNAPSHOT_GONE")(life.run())
  }

  test("a common table expression is read in batch, and told where a stream can't") {
    val feed = "(SELECT 'c' AS op, 1 AS id)"
    val text = "WITH t AS (SELECT 2 AS id) SELECT id FROM " +
      s"from_changelog(TABLE$feed, 'op', key => 'id', snapshot => TABLE(t)) ORDER BY id"
    assert(spark.sql(text).collect().map(_.getInt(0)).toSeq == Seq(1, 2))
    new RawStream(spark, "raw", "op STRING, id INT")
    checkError("CHANGELOG_ARGUMENT_INVALID", "argument" -> "snapshot") {
      spark.sql(
        s"SELECT * FROM to_changelog(TABLE(${text.replace(feed, "(raw)").replace(" ORDER BY id", "")}))")
    }
  }

  test("EXPLAIN CHANGELOG tells of the snapshot") {
    val life = new SnapshotLife(spark, values(rows))
    val session = life.changes().sparkSession
    val text = session
      .sql("EXPLAIN CHANGELOG SELECT * FROM to_changelog(TABLE(rides))")
      .head()
      .getString(0)
    assert(text.contains("the first batch begins with a snapshot"), text)
  }

  test("Debezium's events go on from a table, with and without the position of its rows") {
    def event(id: Int, city: String, lsn: Int) =
      s"""{"op": "u", "after": {"id": $id, "city": "$city"}, "source": {"lsn": $lsn}}"""
    def gone(id: Int, lsn: Int) =
      s"""{"op": "d", "before": {"id": $id}, "source": {"lsn": $lsn}}"""
    val feed = new RecordFeed(spark, Seq(event(1, "Bern", 5), gone(2, 9), event(4, "Nice", 9)))
    def check(snapshot: String, arguments: String = "")(rows: String*): Unit = {
      val from =
        "from_debezium(TABLE(records), schema => 'id BIGINT, city STRING', key => 'id', " +
          s"snapshot => TABLE($snapshot)$arguments)"
      assert(feed.batch(from) == rows)
      assert(feed.stream(from, size = 100) == rows)
      assert(feed.stream(from, size = 1, restarts = true) == rows)
    }
    val table = "SELECT * FROM VALUES (1, 'Oslo'), (2, 'Rome'), (3, NULL) AS t(id, city)"
    check(table)("1 Bern", "3 NULL", "4 Nice")
    check(s"SELECT *, 7 AS source_lsn FROM ($table)")("1 Oslo", "3 NULL", "4 Nice")
    check(s"SELECT *, 7 AS source_lsn FROM ($table)", ", metadata => 'source.lsn'")(
      "1 Oslo 7",
      "3 NULL 7",
      "4 Nice 9")
    check(table, ", metadata => array('source.lsn', 'offset')")(
      "1 Bern 5 0",
      "3 NULL NULL NULL",
      "4 Nice 9 2")
    checkError("CHANGELOG_SNAPSHOT_COLUMN_MISSING", "column" -> "city") {
      check("SELECT 1 AS id")()
    }
    checkError("CHANGELOG_KEY_NULL")(check("SELECT CAST(NULL AS INT) AS id, 'x' AS city")())
    checkError("CHANGELOG_SNAPSHOT_KEY_MISSING") {
      feed.batch(
        "from_debezium(TABLE(records), schema => 'id INT', snapshot => TABLE(SELECT 1 AS id))")
    }
  }

  test("a value that an event does not send is the snapshot's") {
    val event =
      """{"op": "u", "after": {"id": 1, "city": "__debezium_unavailable_value", "n": 2}, "source": {"lsn": 5}}"""
    val feed = new RecordFeed(spark, Seq(event))
    val from =
      "from_debezium(TABLE(records), schema => 'id INT, city STRING, n INT', key => 'id', " +
        "snapshot => TABLE(SELECT 1 AS id, 'Oslo' AS city, 1 AS n))"
    assert(feed.batch(from) == Seq("1 Oslo 2"))
    assert(feed.stream(from) == Seq("1 Oslo 2"))
  }

  test("a compacted topic and Canal's messages go on from a table") {
    val topic = new RecordFeed(spark, Seq("1\tNULL", "2\t{\"n\":5}", "9\tNULL"))
    val upsert = "from_upsert_kafka(TABLE(records), schema => 'id INT, n INT', key => 'id', " +
      "snapshot => TABLE(SELECT * FROM VALUES (1, 1), (2, 2), (3, 3) AS t(id, n)))"
    val canal = "from_canal(TABLE(records), schema => 'id INT, n INT', key => 'id', " +
      "snapshot => TABLE(SELECT * FROM VALUES (1, 1), (2, 2), (3, 3) AS t(id, n)))"
    val messages = new RecordFeed(
      spark,
      Seq(
        """{"type": "DELETE", "es": 1, "data": [{"id": "1", "n": "1"}]}""",
        """{"type": "UPDATE", "es": 2, "data": [{"id": "2", "n": "5"}]}"""))
    Seq(topic -> upsert, messages -> canal).foreach { case (feed, from) =>
      val rows = Seq("2 5", "3 3")
      assert(feed.batch(from) == rows)
      assert(feed.stream(from, size = 100) == rows)
      assert(feed.stream(from, size = 1, restarts = true) == rows)
    }
  }
}
