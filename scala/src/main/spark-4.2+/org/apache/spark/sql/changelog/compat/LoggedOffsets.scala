// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.connector.read.streaming.Offset
import org.apache.spark.sql.execution.streaming.checkpointing.{
  OffsetMap,
  OffsetSeq,
  OffsetSeqBase,
  OffsetSeqMetadataBase
}

/** What the log of offsets says of a batch, in the forms of this version: sources have places or names. */
private[compat] object LoggedOffsets {
  type Entry = OffsetSeqBase
  type Metadata = OffsetSeqMetadataBase

  def metadata(entry: Entry): Option[Metadata] = entry.metadataOpt

  /** The offsets of sources that have places, in their order. */
  def inOrder(entry: Entry): Option[Seq[Option[Offset]]] = entry match {
    case several: OffsetSeq => Some(several.offsets)
    case _ => None
  }

  /** The offsets of sources that have names. */
  def byName(entry: Entry): Map[String, Option[Offset]] = entry match {
    case named: OffsetMap => named.offsetsMap
    case _ => Map.empty
  }

  /** An entry with other offsets of sources that have places. */
  def withOffsets(entry: Entry, offsets: Seq[Option[Offset]]): Option[Entry] = entry match {
    case several: OffsetSeq => Some(several.copy(offsets = offsets))
    case _ => None
  }

  /** An entry with another time and other settings, if it has any. */
  def withMetadata(
      entry: Entry,
      watermark: Long,
      timestamp: Long,
      settings: Map[String, String]): Option[Entry] = entry match {
    case several: OffsetSeq =>
      several.metadataOpt.map { metadata =>
        several.copy(metadataOpt = Some(metadata.copy(watermark, timestamp, settings)))
      }
    case named: OffsetMap =>
      Some(named.copy(metadata = named.metadata.copy(watermark, timestamp, settings)))
    case _ => None
  }
}
