// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.io.File
import java.nio.file.Files

import scala.util.Random

import org.apache.commons.io.FileUtils

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.streaming.Trigger

/**
 * A query over files of changes, begun anew from text and checkpoint for each run, with what it
 * emits kept by batch.
 */
class CheckpointedQuery(
    spark: SparkSession,
    val folder: File = QuickFileSystem.temporaryDirectory(),
    shape: CheckpointedQuery.Shape = CheckpointedQuery.Sums) {
  private val input = new File(folder, "input")
  private val kept = new File(folder, "kept")
  private val random = new Random(7)
  private var rows = Map.empty[Int, (String, Int)]
  private var batches = Map.empty[Long, Seq[String]]
  private var keptBatches = batches
  private var numFiles = 0
  input.mkdirs()

  val checkpoint = new File(folder, "checkpoint")

  /** Lets a file of changes arrive. */
  def arrive(): Unit = {
    val lines = Seq.fill(20)(random.nextInt(60)).distinct.flatMap { id =>
      val before = rows.get(id).map { case (g, n) => s"-D,$id,$g,$n" }
      val after =
        Option.when(random.nextInt(3) > 0)((s"g${random.nextInt(5)}", random.nextInt(9)))
      rows = after.fold(rows - id)(row => rows + (id -> row))
      before.toSeq ++ after.map { case (g, n) => s"+I,$id,$g,$n" }
    }
    numFiles += 1
    val file = new File(input, s"$numFiles.csv")
    Files.writeString(file.toPath, lines.mkString("\n"))
    // they are read in this order
    file.setLastModified(1700000000000L + numFiles * 1000)
  }

  /** Processes what has arrived, from the checkpoint. */
  def run(): Unit = {
    spark.readStream
      .schema("op STRING, id INT, g STRING, n INT")
      .option("maxFilesPerTrigger", 1)
      .csv(input.getPath)
      .createOrReplaceTempView("checkpointed_raw")
    val query = spark
      .sql(s"""SELECT * FROM to_changelog(TABLE(WITH numbers AS (
          |SELECT * FROM from_changelog(TABLE(checkpointed_raw), 'op', key => array('id')))
          |${shape.sql}))""".stripMargin)
      .writeStream
      .option("checkpointLocation", checkpoint.getPath)
      .trigger(Trigger.AvailableNow())
      .foreachBatch { (batch: DataFrame, id: Long) =>
        batches += id -> batch.collect().map(TextChangelog.format).toSeq
      }
      .start()
    try query.awaitTermination()
    finally query.stop()
  }

  /** What it has emitted, by batch. */
  def emitted: Map[Long, Seq[String]] = batches

  /** What it has emitted, as a table. */
  def table: Seq[String] = FoldedChanges(batches.values.flatten.toSeq)

  /** What batch Spark would give. */
  def expected: Seq[String] = shape.expected(rows).sorted

  /** Remembers how everything is. */
  def keep(): Unit = {
    FileUtils.deleteDirectory(kept)
    FileUtils.copyDirectory(checkpoint, kept)
    keptBatches = batches
  }

  /** Puts it back. */
  def restore(): Unit = {
    FileUtils.deleteDirectory(checkpoint)
    FileUtils.copyDirectory(kept, checkpoint)
    batches = keptBatches
  }
}

object CheckpointedQuery {

  /**
   * @param sql
   *   the query over `numbers`
   * @param expected
   *   what it gives over rows of `id`, `g` and `n`
   */
  final case class Shape(sql: String, expected: Map[Int, (String, Int)] => Seq[String])

  val Sums: Shape = Shape(
    "SELECT g, count(*) AS c, sum(n) AS s FROM numbers GROUP BY g",
    rows =>
      rows.values
        .groupMap(_._1)(_._2)
        .map { case (g, ns) => s"$g ${ns.size} ${ns.sum}" }
        .toSeq)

  val Pairs: Shape = Shape(
    "SELECT a.id, b.n FROM numbers a JOIN numbers b ON a.g = b.g AND a.n < b.n",
    rows =>
      for ((id, (g, n)) <- rows.toSeq; (other, m) <- rows.values.toSeq if other == g && n < m)
        yield s"$id $m")
}
