// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.connector.read.streaming.{
  MicroBatchStream,
  ReadLimit,
  SupportsAdmissionControl
}
import org.apache.spark.sql.execution.streaming.runtime.StreamProgress

/** What sources have to give, beyond what a batch reads. */
private[compat] object LatestOffsets {

  /**
   * Lets them find out. A batch whose offsets were written before a run began is read without that, and
   * Kafka's source, which tells in its metrics how far behind it is, fails after such a batch.
   */
  def find(offsets: StreamProgress): Unit = offsets.foreach {
    case (source: MicroBatchStream with SupportsAdmissionControl, offset) if isKafka(source) =>
      source.latestOffset(source.deserializeOffset(offset.json), ReadLimit.allAvailable())
    case _ =>
  }

  private def isKafka(source: MicroBatchStream): Boolean =
    source.getClass.getName == "org.apache.spark.sql.kafka010.KafkaMicroBatchStream"
}
