// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing.RowMultiset

/** Makes a sink that keeps nothing: it makes one row per key with and without knowing what is netted. */
class BothWaysProvider extends ChangelogSinkProvider("both-ways") {
  override protected def sink(session: SparkSession, options: SinkOptions): ChangelogSink =
    new BothWaysSink(options)
}

private class BothWaysSink(options: SinkOptions) extends ChangelogSink("both-ways") {
  override protected def check(input: SinkInput): Unit = {
    input.keyOrNone(options.key)
    ()
  }

  override def write(batch: ChangelogBatch): Unit =
    batch.input.keyOrNone(options.key).foreach { key =>
      // the query's operators run once in a batch
      batch.changes.persist()
      try
        for (partitions <- Seq(None, Some(2))) {
          val unknown = batch.copy(nettedBy = None)
          compare(batch, batch.byKey(key, partitions), unknown.byKey(key, partitions))
          compare(batch, batch.newestByKey(key, partitions), unknown.newestByKey(key, partitions))
        }
      finally batch.changes.unpersist()
      val isUsed = batch.isNettedBy(key)
      BothWays.counts(isUsed) += 1
      BothWays.last = isUsed
    }

  private def compare(batch: ChangelogBatch, netted: DataFrame, wanted: DataFrame): Unit = {
    val (rows, expected) = (RowMultiset.of(netted.collect()), RowMultiset.of(wanted.collect()))
    if (rows != expected) {
      val changes = batch.changes.collect().mkString("\n")
      throw new AssertionError(
        s"netted by ${batch.nettedBy}:\n$rows\nexpected:\n$expected\nchanges:\n$changes")
    }
  }
}

object BothWays {
  val Format: String = classOf[BothWaysProvider].getName

  /** How many batches were netted by their key, and how many were not. */
  val counts = scala.collection.concurrent.TrieMap(true -> 0, false -> 0)

  /** Whether the last one was. */
  @volatile var last = false
}
