// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import java.io.File

import scala.jdk.CollectionConverters._

import org.apache.commons.io.FileUtils
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.streaming.Trigger

import org.apache.spark.sql.changelog.testing._

/** Which files of a query's state stay if each run ends before Spark's maintenance begins. */
class ShortRunsSuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    ChangelogSession.Quick ++ Map(
      "spark.sql.streaming.minBatchesToRetain" -> "2",
      "spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "2"))

  Variant.Providers.foreach { case (provider, conf) =>
    test(s"old files of state $provider are deleted") {
      val session = spark.cloneSession()
      conf.foreach { case (name, value) => session.conf.set(name, value) }
      val raw = new RawStream(session, "raw", "op STRING, id INT, g STRING")
      val changes = session.sql(
        "SELECT * FROM to_changelog(TABLE(SELECT g, count(*) AS c FROM " +
          "from_changelog(TABLE(raw), 'op', key => array('id')) GROUP BY g))")
      val checkpoint = QuickFileSystem.temporaryDirectory()
      for (id <- 1 to 12) {
        raw.add(s"+I $id a")
        changes.writeStream
          .format("noop")
          .option("checkpointLocation", checkpoint.getPath)
          .trigger(Trigger.AvailableNow())
          .start()
          .awaitTermination()
      }
      val versions = FileUtils
        .listFiles(new File(checkpoint, "state"), Array("delta", "snapshot", "zip"), true)
        .asScala
        .map(_.getName.takeWhile(_.isDigit).toInt)
      // every third version is complete by itself, and versions before the third last are deleted by the next
      assert(versions.min >= 6 && versions.max == 12)
    }
  }
}
