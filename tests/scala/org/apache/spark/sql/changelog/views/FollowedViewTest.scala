// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.spark.sql.Row

import org.apache.spark.sql.changelog.config.ChangelogConf

/** Tells a suite what who follows a view sees of a statement. */
trait FollowedViewTest extends ViewTest {
  protected val counts = "SELECT n, count(*) AS customers, sum(total) AS total FROM v GROUP BY n"

  /** With state from the first, so that each refresh reads what has changed and no more. */
  override def beforeEach(): Unit = {
    super.beforeEach()
    spark.conf.set(ChangelogConf.VIEW_STATE.key, "early")
  }

  override def afterEach(): Unit = {
    spark.conf.unset(ChangelogConf.VIEW_STATE.key)
    super.afterEach()
  }

  protected def version: Long = facts("DESCRIBE EXTENDED MATERIALIZED VIEW v")("Version").toLong

  /** What a statement does to the view, as its followers see it: rows as texts, with a sign. */
  protected def changesOf(statement: => Any, columns: String*): Seq[String] = {
    val before = version
    statement
    val changes = spark.sql(s"SELECT * FROM changes('v', from_version => ${before + 1})")
    val shown = if (columns.isEmpty) spark.table("v").columns.toSeq else columns
    changes
      .selectExpr(
        "if(_change_type IN ('insert', 'update_postimage'), '+', '-')",
        s"to_json(struct(${shown.mkString(", ")}))")
      .collect()
      .map(row => row.getString(0) + row.getString(1).replaceAll("[{}\"]", ""))
      .sorted
      .toSeq
  }

  protected def lastRefresh(columns: String*): Row = {
    val refreshes = spark.sql("SHOW REFRESHES OF v")
    refreshes.select(columns.head, columns.tail: _*).head()
  }

  /** How many rows the last statement says it has written and taken back. */
  protected def counted: Row = lastRefresh("rows_written", "rows_retracted")

  /** The view that follows it reads what has changed, and no more, and is right. */
  protected def checkSecond(rowsRead: Option[Long] = None): Unit = {
    // Spark counts no rows if a batch scans files of two snapshots of Iceberg.
    val expected = rowsRead.filter(_ => provider != "iceberg")
    run("REFRESH MATERIALIZED VIEW second INCREMENTAL STRICT")
    check(counts, "second")
    val read = spark.sql("SHOW REFRESHES OF second").select("rows_read").head().getLong(0)
    expected.foreach(rows => assert(read == rows))
  }
}
