// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import java.io.File

import scala.jdk.CollectionConverters._

import org.apache.commons.io.FileUtils
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** How often a query that runs for long writes all of its state. */
class SnapshotLagSuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    Variant.Paged ++ Map(
      "spark.sql.shuffle.partitions" -> "1",
      "spark.sql.streaming.minBatchesToRetain" -> "1000",
      "spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "2",
      "spark.sql.streaming.stateStore.multiplierForMinVersionDiffToLog" -> "1"))

  test("Spark knows of snapshots, and does not ask for one with every batch") {
    val raw = new RawStream(spark, "raw", "op STRING, id INT, g STRING")
    spark
      .sql("SELECT * FROM from_changelog(TABLE(raw), 'op', key => array('id'))")
      .createOrReplaceTempView("rows")
    val changes =
      spark.sql("SELECT * FROM to_changelog(TABLE(SELECT g, count(*) AS c FROM rows GROUP BY g))")
    val checkpoint = QuickFileSystem.temporaryDirectory()
    val query = new RunningChanges(changes, checkpoint)
    try {
      for (id <- 1 to 18) {
        raw.add(s"+I $id a")
        query.next()
      }
    } finally query.stop()
    val names = FileUtils
      .listFiles(new File(checkpoint, "state"), null, true)
      .asScala
      .map(_.getName)
    assert(names.count(_.endsWith(".delta")) == 18)
    // every third version is one, if maintenance does its work
    assert(names.count(_.endsWith(".snapshot")) <= 6)
  }
}
