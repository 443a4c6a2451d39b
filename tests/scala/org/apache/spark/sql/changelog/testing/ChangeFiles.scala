// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.nio.file.Path

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Random

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Encoders, Row}

/**
 * Random changes of a table `rides`, as files that arrive one after the other; and those changes
 * themselves as `changes`, a table that only grows.
 */
class ChangeFiles(spark: SparkSession, folder: Path, random: Random) {
  import ChangeFiles._

  private val table = mutable.Map.empty[Int, (String, Int)]
  private val versions = mutable.ArrayBuffer(Seq.empty[Row])
  private val arrived = mutable.ArrayBuffer(Seq.empty[String])
  private lazy val batchSession = spark.newSession()

  /** The number of files that have arrived. */
  def size: Int = versions.size - 1

  /** The rows of a query in batch Spark after a number of files. */
  def expected(sql: String, files: Int): Seq[Row] = known.getOrElseUpdate(
    (sql, files), {
      batchSession
        .createDataFrame(versions(files).asJava, StructType.fromDDL(Columns))
        .createOrReplaceTempView("rides")
      val texts =
        batchSession.createDataset(arrived.take(files + 1).flatten.toSeq)(Encoders.STRING)
      batchSession.read
        .schema(s"$Columns, op STRING")
        .json(texts)
        .createOrReplaceTempView("changes")
      batchSession.sql(sql).collect().toSeq
    })

  private val known = mutable.Map.empty[(String, Int), Seq[Row]]

  /** Adds a file of changes. */
  def add(): Unit = {
    val changes = (1 to ChangesPerFile).flatMap { _ =>
      val id = random.nextInt(Ids)
      val old = table.get(id)
      val row =
        (if (random.nextInt(9) == 0) null else s"city ${random.nextInt(12)}", random.nextInt(100))
      old match {
        case None =>
          table(id) = row
          Seq(json(id, row, "+I"))
        case Some(before) if random.nextInt(3) == 0 =>
          table -= id
          Seq(json(id, before, "-D"))
        case Some(before) =>
          table(id) = row
          Seq(json(id, before, "-U"), json(id, row, "+U"))
      }
    }
    val number = versions.size
    ArrivingFile.write(folder, number, "json", changes)
    arrived += changes
    versions += table.map { case (id, (city, fare)) => Row(id, city, fare) }.toSeq
  }

  private def json(id: Int, row: (String, Int), op: String): String = {
    val city = Option(row._1).fold("null")(name => "\"" + name + "\"")
    s"""{"id":$id,"city":$city,"fare":${row._2},"op":"$op"}"""
  }
}

object ChangeFiles {
  val Columns = "id INT, city STRING, fare INT"

  private val ChangesPerFile = 40
  private val Ids = 150
}
