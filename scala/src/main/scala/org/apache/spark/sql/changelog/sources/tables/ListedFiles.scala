// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.datasources.{FileIndex, PartitionDirectory}
import org.apache.spark.sql.types.StructType

/** Some files of a table, by their partitions. */
private[sources] class ListedFiles(
    override val rootPaths: Seq[Path],
    override val partitionSchema: StructType,
    directories: Seq[PartitionDirectory])
    extends FileIndex {

  /** Spark doesn't look at filters on partitions again. */
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
