// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import org.scalatest.Suite

import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.types._
import org.apache.spark.sql.{DataFrame, Encoders, Row}

/** Reads what a query keeps, with Spark's own reader of state. */
trait StateRecords extends ChangelogSession { self: Suite =>

  /** A record's key as JSON, nulls included. */
  protected val keyAsJson: String = "to_json(key, map('ignoreNullFields', 'false'))"

  /**
   * The records of one of a query's operators after each batch.
   *
   * @param sql
   *   a query over `feed`
   * @param record
   *   SQL for the text of a record, over `key` and `value`
   * @param operator
   *   the operator's id; they count from the sources up
   */
  protected def records(
      sql: String,
      feed: Feed,
      record: String,
      conf: Map[String, String] = Map.empty,
      operator: Int = 0)(batches: Seq[String]*): Seq[Set[String]] = {
    conf.foreach { case (key, value) => spark.conf.set(key, value) }
    val stream = MemoryStream[Row](2)(
      Encoders.row(StructType(StructField("op", StringType) +: feed.schema)),
      spark.sqlContext)
    val checkpoint = QuickFileSystem.temporaryDirectory().getPath
    stream.toDF().createOrReplaceTempView("changes")
    val query = spark
      .sql(
        s"SELECT * FROM to_changelog(TABLE(WITH ${feed.name} AS (${feed.read("changes", "op")}) $sql))")
      .writeStream
      .option("checkpointLocation", checkpoint)
      .foreachBatch((batch: DataFrame, _: Long) => batch.collect().foreach(_ => ()))
      .start()
    try {
      batches.map { batch =>
        val changes = batch.map(TextChangelog.parse(_, feed.schema))
        stream.addData(changes.map(change => Row.fromSeq(change.kind +: change.row.toSeq)))
        query.processAllAvailable()
        spark.read
          .format("statestore")
          .option("operatorId", operator)
          .load(checkpoint)
          .selectExpr(record)
          .collect()
          .map(_.getString(0))
          .toSet
      }
    } finally {
      query.stop()
      conf.keys.foreach(spark.conf.unset)
    }
  }
}
