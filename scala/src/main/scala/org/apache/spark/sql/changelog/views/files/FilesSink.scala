// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.files

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.types.VariantType

import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime
import org.apache.spark.sql.changelog.sinks.ChangelogBatch._
import org.apache.spark.sql.changelog.sinks.table.RowMerge
import org.apache.spark.sql.changelog.sinks.{
  ChangelogBatch, ChangelogSink, SinkInput, SinkOptions
}
import org.apache.spark.sql.changelog.sources.tables.RowDelta

/**
 * FilesSink: stores all rows in immutable files, such as Parquet. Each batch with changes writes a new, complete
 * snapshot.
 *
 * {{{
 *   <path>/batch-7-2/…     rows after batch 7, complete once _SUCCESS exists
 *   <path>/batch-9-3/…     rows after batch 9; batch 8 changed nothing
 * }}}
 *
 * A snapshot depends only on the previous snapshot and the batch. Repeating a batch is therefore idempotent.
 *
 * @param written
 *   receives the newest snapshot after each batch, to show the snapshot to readers
 */
class FilesSink(options: SinkOptions, written: (SparkSession, Path) => Unit)
    extends ChangelogSink(options.format) {
  private val folder = new Path(options.required("path", "the folder of the snapshots is needed"))
  private val provider = options.get("provider").getOrElse("parquet")

  /**
   * Rejects columns that cannot be grouped. Without a key, the sink groups whole rows, and Spark groups all types
   * except VARIANT.
   */
  override protected def check(input: SinkInput): Unit =
    input.checkComparable(
      input.keyOrNone(options.key),
      !_.existsRecursively(_.isInstanceOf[VariantType]))

  override protected def hasFirstBatch(session: SparkSession, queryId: String): Boolean = {
    val first = new Snapshots(session, folder).latest.filter(_._1 == 0)
    first.foreach { case (_, path) => written(session, path) }
    first.nonEmpty
  }

  override def write(batch: ChangelogBatch): Unit = {
    val session = batch.changes.sparkSession
    val snapshots = new Snapshots(session, folder)
    val last = snapshots.latest
    last.map(_._1).filter(_ > batch.batchId).foreach { stored =>
      throw runtime(
        "CHANGELOG_SINK_BATCH_SUPERSEDED",
        "sink" -> format,
        "table" -> folder,
        "query" -> batch.queryId,
        "batch" -> batch.batchId,
        "stored" -> stored)
    }
    if (!last.exists(_._1 == batch.batchId)) {
      val before = last match {
        case Some((_, path)) =>
          session.read.schema(batch.schema).format(provider).load(path.toString)
        case None => session.createDataFrame(java.util.List.of[Row](), batch.schema)
      }
      val changes = batch.input.keyOrNone(options.key) match {
        case Some(key) =>
          batch.newestByKey(key, Some(session.sessionState.conf.numShufflePartitions))
        case None => batch.netRows
      }
      // The changes are read more than once, but the operators must run only once.
      changes.persist()
      try {
        if (last.isEmpty || !changes.isEmpty) {
          val after = apply(before, changes, batch)
          after.write
            .mode("overwrite")
            .format(provider)
            .save(Snapshots.newPath(folder, batch.batchId).toString)
        }
      } finally changes.unpersist()
    }
    snapshots.latest.foreach { case (_, path) => written(session, path) }
  }

  private def apply(before: DataFrame, changes: DataFrame, batch: ChangelogBatch): DataFrame = {
    val names = batch.input.columnNames
    batch.input.keyOrNone(options.key) match {
      case Some(key) =>
        val touched = changes.select(s"$Newest.*").select(ChangelogBatch.columns(key): _*).as("c")
        val isTouched = key
          .map(name => col(RowMerge.column("b", name)) <=> col(RowMerge.column("c", name)))
          .reduceOption(_ && _)
          .getOrElse(lit(true))
        val stay = before.as("b").join(touched, isTouched, "left_anti")
        stay
          .select(ChangelogBatch.columns(names): _*)
          .union(changes.where(!col(Gone)).select(s"$Newest.*"))
      case None =>
        val all = before.withColumn(Net, lit(1L)).unionByName(changes)
        val left = RowDelta.summed(all, names, Net).where(col(Net) > 0)
        RowDelta.copies(left, names, Net, "", "").drop(Net)
    }
  }
}
