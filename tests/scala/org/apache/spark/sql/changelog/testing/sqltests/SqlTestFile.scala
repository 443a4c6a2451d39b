// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing.sqltests

import java.net.URI
import java.nio.file.{FileSystem, FileSystems, Files, Path}
import java.util.Collections

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.spark.sql.SQLQueryTestHelper

/**
 * One of the files of SQL statements by which Spark tests itself.
 *
 * @param name
 *   its path below `sql-tests/inputs`
 * @param statements
 *   those of the files it imports first
 * @param settings
 *   what it wants to be set
 */
final case class SqlTestFile(
    name: String,
    statements: Seq[String],
    settings: Seq[(String, String)]) {

  /** The folder below `sql-tests/inputs`, or `.`. */
  def folder: String = if (name.contains('/')) name.take(name.lastIndexOf('/')) else "."
}

/** Reads the files from Spark's test jar. */
object SqlTestFile extends SQLQueryTestHelper {
  private val Import = "--IMPORT "
  // which code is generated, or how batches join, makes no difference to what a query gives
  private val Passed = Seq("spark.sql.codegen.", "spark.sql.autoBroadcastJoinThreshold")

  private lazy val jar: FileSystem = {
    val inputs = getClass.getClassLoader.getResource("sql-tests/inputs").toURI.toString
    FileSystems.newFileSystem(
      URI.create(inputs.takeWhile(_ != '!')),
      Collections.emptyMap[String, AnyRef]())
  }

  private def inputs: Path = jar.getPath("sql-tests", "inputs")

  /** The names of all files. */
  lazy val names: Seq[String] = Using.resource(Files.walk(inputs)) { paths =>
    paths.iterator.asScala
      .filter(_.toString.endsWith(".sql"))
      .map(inputs.relativize(_).toString)
      .toSeq
      .sorted
  }

  def apply(name: String): SqlTestFile = {
    val (comments, code) = splitCommentsAndCodes(read(name))
    val imported = comments.filter(_.startsWith(Import)).flatMap { line =>
      splitCommentsAndCodes(read(line.drop(Import.length).trim))._2
    }
    val others = comments.filterNot(_.startsWith(Import))
    val dimensions = getSparkConfigDimensions(comments).lastOption.toSeq.flatten
    SqlTestFile(
      name,
      getQueries(imported ++ code, others, Nil),
      (getSparkSettings(comments).toSeq ++ dimensions).filterNot { case (key, _) =>
        Passed.exists(key.startsWith)
      })
  }

  private def read(name: String): String = Files.readString(inputs.resolve(name))
}
