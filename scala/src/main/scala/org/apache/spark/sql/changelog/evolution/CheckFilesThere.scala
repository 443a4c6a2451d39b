// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import java.io.FileNotFoundException

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.compat.SourceBatches

/**
 * Refuses a changed query that reads files anew of which some are gone: Spark's source would give the rows of
 * the others, and say nothing.
 *
 * @param refused
 *   the error, given the reason
 */
private[evolution] class CheckFilesThere(
    session: SparkSession,
    begun: BegunQuery,
    refused: String => AnalysisException) {
  import FirstBatchReads.Read

  /** @param reads what the first batch reads */
  def apply(reads: Seq[Read]): Unit = for {
    case Read.OfStream(stream) <- reads
    source <- SourceBatches.sourceOf(stream) if SourceBatches.readsFiles(source)
    place <- begun.placeOf(stream)
  } {
    val entries = SourceBatches.filesGiven(session, begun.folderOf(place))
    val gone = entries.groupBy(_.getParent).flatMap { case (folder, files) =>
      val there = namesIn(folder)
      files.filterNot(file => there(file.getName))
    }
    gone.headOption.foreach { file =>
      throw refused(
        s"${gone.size} of ${entries.size} files that would be read once more are gone, such as $file")
    }
  }

  private def namesIn(folder: Path): Set[String] = {
    val files = folder.getFileSystem(session.sessionState.newHadoopConf())
    try files.listStatus(folder).map(_.getPath.getName).toSet
    catch { case _: FileNotFoundException => Set.empty }
  }
}
