// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.File

import org.scalatest.Suite

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** Gives a suite a session in which views and Delta tables can be made, in a folder of its own. */
trait ViewSession extends ChangelogSession { this: Suite =>
  protected val warehouse: File = QuickFileSystem.temporaryDirectory()

  /** The configuration of the session. */
  protected def sessionConf: Map[String, String] =
    ChangelogSession.DeltaConf ++ ChangelogSession.Quick ++ Map(
      "spark.sql.warehouse.dir" -> warehouse.getPath,
      "spark.sql.streaming.stateStore.pages.keptFor" -> "1min")

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf = sessionConf)

  protected def run(sql: String): Seq[Row] = spark.sql(sql).collect().toSeq
}
