// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.json4s._
import org.json4s.jackson.Serialization

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.datasources.{FileIndex, PartitionDirectory}
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.checkpoint.TextFile

/**
 * ListedFile: a file at one time.
 *
 * @param partition
 *   the values of the partition columns; empty without partitions
 */
private[tables] case class ListedFile(
    path: String,
    length: Long,
    modified: Long,
    partition: String = "") {

  /** Returns the file without its partition. */
  def anywhere: ListedFile = copy(partition = "")
}

/** FileListings: the table's files at each version still needed, stored beside a checkpoint. */
private[tables] class FileListings(folder: Path, conf: Configuration) {
  private implicit val formats: Formats = Serialization.formats(NoTypeHints)
  private lazy val files = CheckpointFileManager.create(folder, conf)

  def write(version: Long, listed: Set[ListedFile]): Unit =
    file(version).write(
      Serialization.write(listed.toSeq.sortBy(file => (file.path, file.partition))))

  def read(version: Long): Set[ListedFile] =
    Serialization.read[Seq[ListedFile]](file(version).read()).toSet

  def deleteBefore(version: Long): Unit =
    if (files.exists(folder)) {
      files.list(folder).map(_.getPath).foreach { path =>
        val number = path.getName.stripPrefix(TableVersion.Listing).toLongOption
        if (path.getName.startsWith(TableVersion.Listing) && number.exists(_ < version))
          files.delete(path)
      }
    }

  private def file(version: Long) =
    new TextFile(new Path(folder, s"${TableVersion.Listing}$version"), conf)
}

/** ListedFiles: some files of a table, by partition. */
private[sources] class ListedFiles(
    override val rootPaths: Seq[Path],
    override val partitionSchema: StructType,
    directories: Seq[PartitionDirectory])
    extends FileIndex {

  /** Applies the partition filters, because Spark doesn't apply partition filters again. */
  override def listFiles(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): Seq[PartitionDirectory] =
    partitionFilters.reduceOption(And) match {
      case None => directories
      case Some(filter) =>
        val bound = filter.transform { case column: AttributeReference =>
          val place = partitionSchema.fieldIndex(column.name)
          BoundReference(place, partitionSchema(place).dataType, nullable = true)
        }
        val predicate = Predicate.createInterpreted(bound)
        directories.filter(directory => predicate.eval(directory.values))
    }

  override def inputFiles: Array[String] =
    directories.flatMap(_.files.map(_.getPath.toString)).toArray

  override def sizeInBytes: Long = directories.flatMap(_.files.map(_.getLen)).sum

  override def refresh(): Unit = ()
}
