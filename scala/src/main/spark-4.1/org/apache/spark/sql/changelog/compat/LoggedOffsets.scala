// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.connector.read.streaming.Offset
import org.apache.spark.sql.execution.streaming.checkpointing.{OffsetSeq, OffsetSeqMetadata}

/** What the log of offsets says of a batch, in the one form of this version: sources have places. */
private[compat] object LoggedOffsets {
  type Entry = OffsetSeq
  type Metadata = OffsetSeqMetadata

  def metadata(entry: Entry): Option[Metadata] = entry.metadata

  /** The offsets of sources that have places, in their order. */
  def inOrder(entry: Entry): Option[Seq[Option[Offset]]] = Some(entry.offsets)

  /** The offsets of sources that have names. */
  def byName(entry: Entry): Map[String, Option[Offset]] = Map.empty

  /** An entry with other offsets of sources that have places. */
  def withOffsets(entry: Entry, offsets: Seq[Option[Offset]]): Option[Entry] =
    Some(entry.copy(offsets = offsets))

  /** An entry with another time and other settings, if it has any. */
  def withMetadata(
      entry: Entry,
      watermark: Long,
      timestamp: Long,
      settings: Map[String, String]): Option[Entry] =
    entry.metadata.map { metadata =>
      entry.copy(metadata = Some(metadata.copy(watermark, timestamp, settings)))
    }
}
