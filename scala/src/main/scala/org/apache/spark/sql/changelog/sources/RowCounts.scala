// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.execution.datasources.{
  HadoopFsRelation,
  LogicalRelation,
  PartitionDirectory
}
import org.apache.spark.sql.sources.DataSourceRegister

import org.apache.spark.sql.changelog.sources.tables.FollowedTables.Files
import org.apache.spark.sql.changelog.sources.tables.ListedFiles

/**
 * Says how many rows a plan that is no stream gives, reading little: formats that know it are asked, few bytes
 * are gone through, of more a part is. For what isn't in files statistics have to do.
 */
private[changelog] object RowCounts {

  /** None if nothing tells. */
  def apply(session: SparkSession, rows: LogicalPlan): Option[Long] = rows.collectLeaves() match {
    case Seq(relation @ Files(files))
        if files.location.sizeInBytes > AtMost && !knowsRows(files) =>
      ofPart(session, relation, files).orElse(bySize(relation))
    case leaves if leaves.nonEmpty && leaves.forall(Files.unapply(_).isDefined) =>
      Some(Dataset.ofRows(session, rows).count())
    case leaves =>
      val counts = leaves.map(bySize)
      if (counts.forall(_.isDefined)) Some(counts.flatten.sum) else None
  }

  /** As many as there are in some of the files, for each byte of all. */
  private def ofPart(
      session: SparkSession,
      relation: LogicalPlan,
      files: HadoopFsRelation): Option[Long] = {
    val part = smallest(files.location.listFiles(Nil, Nil))
    val listed =
      new ListedFiles(files.location.rootPaths, files.location.partitionSchema, part)
    val some = relation.transform { case logical: LogicalRelation =>
      logical.copy(relation = files.copy(location = listed)(session))
    }
    if (listed.sizeInBytes == 0) None
    else {
      val rowsPerByte = Dataset.ofRows(session, some).count().toDouble / listed.sizeInBytes
      Some(math.round(rowsPerByte * files.location.sizeInBytes))
    }
  }

  /** The smallest files, as many of them as are gone through. */
  private def smallest(directories: Seq[PartitionDirectory]): Seq[PartitionDirectory] = {
    val files = directories.flatMap(_.files).sortBy(_.getLen)
    val bytes = files.scanLeft(0L)(_ + _.getLen).tail
    val taken = files.zip(bytes).takeWhile(_._2 <= AtMost).map(_._1.getPath).toSet
    directories.map { directory =>
      directory.copy(files = directory.files.filter(file => taken(file.getPath)))
    }
  }

  private def bySize(plan: LogicalPlan): Option[Long] = {
    val stats = plan.stats
    stats.rowCount.map(_.toLong).orElse {
      if (stats.sizeInBytes >= plan.conf.defaultSizeInBytes) None
      else Some((stats.sizeInBytes / EstimationUtils.getSizePerRow(plan.output)).toLong)
    }
  }

  /** Whether files say themselves how many rows are in them. */
  private def knowsRows(files: HadoopFsRelation): Boolean = files.fileFormat match {
    case format: DataSourceRegister => KnowRows.contains(format.shortName())
    case _ => false
  }

  private val KnowRows = Set("parquet", "orc", "delta")

  /** How many bytes are gone through. */
  private val AtMost = 64L << 20
}
