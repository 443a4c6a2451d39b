// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import org.scalatest.Assertions._

import org.apache.spark.sql.classic.SparkSession

/** What EXPLAIN CHANGELOG says of a query over tables that change, in a session of its own. */
object ExplainedQuery {
  def apply(
      spark: SparkSession,
      sql: String,
      feeds: Seq[Feed],
      conf: Map[String, String]): String = {
    val session = spark.newSession()
    conf.foreach { case (key, value) => session.conf.set(key, value) }
    feeds.foreach { feed =>
      val changes = new RawStream(session, s"${feed.name}_raw", s"_op STRING, ${feed.columns}")
      assert(changes.toDF.isStreaming)
      session.sql(feed.read(s"${feed.name}_raw", "_op")).createOrReplaceTempView(feed.name)
    }
    session.sql(s"EXPLAIN CHANGELOG $sql").head().getString(0)
  }
}
