// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.util.Utils

/** A Delta table to which changes are appended, in a session with [[ChangelogSession.DeltaConf]]. */
object FeedDeltaTables extends SourceKind("Delta") {

  override def open(session: SparkSession, schema: StructType, partitions: Int): FeedSource =
    new FeedSource {
      private val folder = QuickFileSystem.temporaryDirectory()
      add(Nil)

      override def stream(session: SparkSession): DataFrame =
        session.readStream.format("delta").load(folder.getPath)

      override def add(rows: Seq[Row]): Unit = session
        .createDataFrame(rows.asJava, schema)
        .coalesce(1) // the order of changes may count
        .write
        .format("delta")
        .mode("append")
        .save(folder.getPath)

      override def close(): Unit = Utils.deleteRecursively(folder)
    }
}
