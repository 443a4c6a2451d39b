// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.types._
import org.apache.spark.sql.{DataFrame, Encoders, Row}

import org.apache.spark.sql.changelog.testing._

/** What is in the state store, as Spark's own reader shows it. */
class ChangelogAggregateStateSuite extends AnyFunSuite with ChangelogSession {
  private val schema = StructType.fromDDL("g STRING, n INT")

  /** The number of records in state after each batch. */
  private def stateSizes(sql: String, conf: Map[String, String])(
      batches: Seq[String]*): Seq[Long] = states(sql, conf)(batches: _*)(_.count())

  /** What `read` makes of the state after each batch. */
  private def states[T](sql: String, conf: Map[String, String])(batches: Seq[String]*)(
      read: DataFrame => T): Seq[T] = {
    conf.foreach { case (key, value) => spark.conf.set(key, value) }
    val stream = MemoryStream[Row](2)(
      Encoders.row(StructType(StructField("op", StringType) +: schema)),
      spark.sqlContext)
    val checkpoint = QuickFileSystem.temporaryDirectory().getPath
    stream.toDF().createOrReplaceTempView("changes")
    val query = spark
      .sql(s"""SELECT * FROM to_changelog(TABLE(
           |WITH t AS (SELECT * FROM from_changelog(TABLE(changes), 'op')) $sql))""".stripMargin)
      .writeStream
      .option("checkpointLocation", checkpoint)
      .foreachBatch((batch: DataFrame, _: Long) => batch.collect().foreach(_ => ()))
      .start()
    try {
      batches.map { batch =>
        val changes = batch.map(TextChangelog.parse(_, schema))
        stream.addData(changes.map(change => Row.fromSeq(change.kind +: change.row.toSeq)))
        query.processAllAvailable()
        read(spark.read.format("statestore").load(checkpoint))
      }
    } finally {
      query.stop()
      conf.keys.foreach(spark.conf.unset)
    }
  }

  private val smallHeads = Map("spark.sql.changelog.aggregate.headSize" -> "1")
  private val values = (1 to 8).map(n => s"a $n")

  for ((provider, conf) <- Variant.Providers) {
    test(s"an emptied group leaves no state, $provider") {
      val sql = "SELECT g, count(*), sum(n) FROM t GROUP BY g"
      assert(
        stateSizes(sql, conf)(
          Seq("+I a 1", "+I a 2", "+I b 1", "+I c 1", "-D c 1"),
          Seq("-D a 1"),
          Seq("-D a 2"),
          Seq("-D b 1")) == Seq(2, 2, 1, 0))
    }

    test(s"a group takes the values its heads have no room for along, $provider") {
      val sql = "SELECT g, min(n), max(n), min(n) FILTER (WHERE n > 4) FROM t GROUP BY g"
      val sizes = stateSizes(sql, conf ++ smallHeads)(
        values.map("+I " + _),
        Seq("+I b 1", "-D a 1", "+I a 1"),
        values.map("-D " + _),
        Seq("-D b 1"))
      assert(sizes.head > 3 && sizes.tail == Seq(sizes.head + 1, 1, 0))
    }

    test(s"a group emptied by rows it never had waits for them, $provider") {
      val early = (11 to 18).map(n => s"a $n")
      val sizes = stateSizes("SELECT g, min(n) FROM t GROUP BY g", conf ++ smallHeads)(
        values.map("+I " + _),
        early.map("-D " + _),
        early.map("+I " + _),
        values.map("-D " + _))
      assert(sizes(1) > sizes.head && sizes(2) == sizes.head && sizes.last == 0)
    }
  }

  test("min and max of one argument keep its values once") {
    val numbers = (1 to 9).map(n => s"+I a $n")
    val counts = states("SELECT g, min(n), max(n) FROM t GROUP BY g", smallHeads)(numbers) {
      state => state.where("key.table = 1").select("value.count", "value.group.*").collect().toSeq
    }
    assert(
      counts.head.nonEmpty && counts.head.forall(row => row.getLong(0) == 1 && row.isNullAt(1)))
    val values = states("SELECT g, min(n), max(n) FROM t GROUP BY g", smallHeads)(numbers)(
      _.select("key.*").collect().toSeq.map(_.toSeq))
    assert(values.head.distinct.size == values.head.size && values.head.size < 1 + 9)
  }

  private def columnsOfGroups(state: DataFrame): Seq[String] = {
    val values = state.select("value.*")
    (if (values.columns.contains("group")) values.select("group.*") else values).columns.toSeq
  }

  test("a group's rows are counted once, by the query's own count(*) if there is one") {
    for ((calls, names) <- Seq(
        "count(*), min(n), count(n), count(1)" ->
          Seq("count(1)", "count(n)", "min(n).head", "min(n).tail"),
        "count(*) FILTER (WHERE n > 1)" ->
          Seq("count(1) where (n > 1)", "count(1)"),
        "count(n)" -> Seq("count(n)", "count(1)"))) {
      val sql = s"SELECT g, $calls FROM t GROUP BY g"
      val columns = states(sql, Map.empty)(Seq("+I a 1"))(columnsOfGroups)
      assert(columns == Seq(names))
    }
  }
}
