// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.scalatest.Suite

import org.apache.spark.sql.DataFrame

import org.apache.spark.sql.changelog.testing._

/** Tables to ask queries of that are refused: one that changes, rows that only come, and one row for ever. */
private[analysis] trait RefusedChanges extends ChangelogSession with ErrorChecks { this: Suite =>

  protected def views(): Unit = {
    new RawStream(spark, "raw", "op STRING, id INT, g STRING, v INT")
    new RawStream(spark, "events", "id INT, g STRING, v INT")
    spark.sql("SELECT * FROM from_changelog(TABLE(raw), 'op', 'id')").createOrReplaceTempView("t")
    spark.sql("SELECT 'a' AS g, 1 AS v").createOrReplaceTempView("fixed")
  }

  protected def changes(sql: String): DataFrame =
    spark.sql(s"SELECT * FROM to_changelog(TABLE($sql))")
}
