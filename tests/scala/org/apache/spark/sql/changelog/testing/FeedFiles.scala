// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.nio.file.{Files, Path, StandardCopyOption}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.util.Utils

/**
 * A folder into which a file comes for all that arrives together. To Spark it is a source of the first
 * version of its interface: with news, a batch has a projection over a relation in its place; without,
 * a relation without rows.
 */
class FeedFiles(format: String) extends SourceKind(s"$format files") {
  import FeedFiles._

  override def open(session: SparkSession, schema: StructType, partitions: Int): FeedSource =
    new FeedSource {
      private val folder = QuickFileSystem.temporaryDirectory()
      private var numFiles = 0

      override def stream(session: SparkSession): DataFrame =
        session.readStream.schema(schema).format(format).options(Exactly).load(folder.getPath)

      override def add(rows: Seq[Row]): Unit = {
        numFiles += 1
        val written = folder.toPath.resolve(s"_$numFiles")
        session
          .createDataFrame(rows.asJava, schema)
          .coalesce(1) // the order of changes may count
          .write
          .format(format)
          .options(Exactly)
          .save(written.toString)
        Files.move(
          fileIn(written),
          folder.toPath.resolve(f"$numFiles%05d.$format"),
          StandardCopyOption.ATOMIC_MOVE)
        Utils.deleteRecursively(written.toFile)
      }

      override def close(): Unit = Utils.deleteRecursively(folder)
    }

  private def fileIn(folder: Path): Path = {
    val files = Files.list(folder)
    try files.iterator().asScala.filter(_.getFileName.toString.startsWith("part-")).next()
    finally files.close()
  }
}

object FeedFiles {

  /** Texts hold all of a value. */
  val Exactly: Map[String, String] = Map(
    "timestampFormat" -> "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXXXX",
    "timestampNTZFormat" -> "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "ignoreNullFields" -> "false")

  val Json = new FeedFiles("json")
  val Parquet = new FeedFiles("parquet")
}
