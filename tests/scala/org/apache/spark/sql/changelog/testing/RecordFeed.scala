// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.nio.file.{Files, Paths}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Encoders, Row}

/**
 * Change records as text, as a topic holds them: `key`, `value`, `partition`, `offset`.
 *
 * A line `NULL` is a record without value. A line may begin with its key and a tabulator.
 */
class RecordFeed(spark: SparkSession, records: Seq[String]) {

  private val rows = records.zipWithIndex.map { case (record, offset) =>
    val (key, value) = record.split('\t') match {
      case Array(key, value) => (key, value)
      case _ => (null, record)
    }
    Row(key, if (value == "NULL") null else value, 0, offset.toLong)
  }

  /** The table after all records, read at once. */
  def batch(call: String, sql: String = "SELECT * FROM feed"): Seq[String] = {
    spark.createDataFrame(rows.asJava, RecordFeed.Schema).createOrReplaceTempView("records")
    spark.sql(s"SELECT * FROM $call").createOrReplaceTempView("feed")
    spark.sql(sql).collect().map(TextChangelog.format).sorted.toSeq
  }

  /**
   * The table after all records, kept by a stream that gets them in batches of `size`.
   *
   * @param restarts
   *   whether the query is stopped after every batch and started from its checkpoint
   */
  def stream(
      call: String,
      size: Int = 1,
      restarts: Boolean = false,
      sql: String = "SELECT * FROM feed"): Seq[String] = {
    val stream = MemoryStream[Row](1)(Encoders.row(RecordFeed.Schema), spark.sqlContext)
    stream.toDF().createOrReplaceTempView("records")
    spark.sql(s"SELECT * FROM $call").createOrReplaceTempView("feed")
    val kept = new KeptTable(spark, sql)
    if (!restarts) kept.start()
    rows.grouped(size).foreach { batch =>
      stream.addData(batch)
      if (restarts) kept.catchUp() else kept.processAll()
    }
    kept.stop()
    kept.table
  }
}

object RecordFeed {
  val Schema: StructType =
    StructType.fromDDL("key STRING, value STRING, partition INT, offset BIGINT")

  /** The records of a file below `tests/resources/records`. */
  def read(file: String): Seq[String] = {
    val home = sys.props("spark.changelog.test.home")
    Files.readAllLines(Paths.get(home, "tests", "resources", "records", file)).asScala.toSeq
  }
}
