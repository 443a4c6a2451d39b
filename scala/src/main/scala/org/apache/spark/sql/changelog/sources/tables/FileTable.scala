// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.{
  FileStatusWithMetadata,
  HadoopFsRelation,
  LogicalRelation,
  PartitionDirectory
}

import org.apache.spark.sql.changelog.errors.TableErrors

/**
 * A table of files, by the list of them: rows of new files have come. What was in a file that is gone,
 * or is another one now, nobody knows.
 *
 * @param folder
 *   where lists of files are kept
 */
private[tables] class FileTable(session: SparkSession, override val name: String, folder: Path)
    extends FollowedTable {
  import FileTable._

  private val listings = new FileListings(folder, session.sessionState.newHadoopConf())

  override type Moment = Listed

  override def rowsOnlyCome: Boolean = true

  override def now(): Listed = {
    val relation = read()
    Listed(TableVersion.fingerprint(relation.schema), filesIn(directoriesOf(relation)))
  }

  override def version(start: Option[TableVersion], moment: Listed): TableVersion = {
    val found = TableVersion(name, "", moment.columns, start.fold(0L)(_.version))
    val known = start.fold(Set.empty[ListedFile]) { start =>
      checkSame(start, found)
      listings.read(start.version)
    }
    checkThere(known, moment.files, found.version)
    if (start.nonEmpty && known == moment.files) found
    else {
      val next = found.copy(version = found.version + 1)
      listings.write(next.version, moment.files)
      next
    }
  }

  override def rows(at: TableVersion): LogicalPlan =
    rowsOf(listings.read(at.version), at.version)

  override def changes(from: TableVersion, until: TableVersion): LogicalPlan =
    rowsOf(listings.read(until.version) -- listings.read(from.version), until.version)

  override def size(since: TableVersion): Option[TableSize] = {
    val there = now()
    checkSame(since, TableVersion(name, "", there.columns, since.version))
    val known = listings.read(since.version)
    checkThere(known, there.files, since.version)
    def bytes(files: Set[ListedFile]) = files.toSeq.map(_.length).sum
    Some(TableSize(bytes(there.files), bytes(there.files -- known)))
  }

  override def forget(before: TableVersion): Unit = listings.deleteBefore(before.version)

  private def rowsOf(files: Set[ListedFile], version: Long): LogicalPlan = {
    val relation = read()
    val directories = directoriesOf(relation)
    checkThere(files, filesIn(directories), version)
    val some = directories
      .map { directory =>
        directory.copy(files = directory.files.filter(file => files.contains(toListed(file))))
      }
      .filter(_.files.nonEmpty)
    val source = filesOf(relation)
    val location = new ListedFiles(source.location.rootPaths, source.partitionSchema, some)
    relation.copy(relation = source.copy(location = location)(source.sparkSession))
  }

  private def checkThere(expected: Set[ListedFile], there: Set[ListedFile], version: Long): Unit =
    expected.find(!there.contains(_)).foreach { file =>
      throw TableErrors.filesReplaced(name, file.path, version)
    }

  /** The table with the files that it has now. */
  private def read(): LogicalRelation = {
    FollowedTables
      .relationOf(session.table(name))
      .catalogTable
      .foreach(table => session.sessionState.catalog.refreshTable(table.identifier))
    val relation = FollowedTables.relationOf(session.table(name))
    filesOf(relation).location.refresh()
    relation
  }

  private def directoriesOf(relation: LogicalRelation): Seq[PartitionDirectory] =
    filesOf(relation).location.listFiles(Nil, Nil)

  private def filesIn(directories: Seq[PartitionDirectory]): Set[ListedFile] =
    directories.flatMap(_.files).map(toListed).toSet

  private def filesOf(relation: LogicalRelation): HadoopFsRelation =
    relation.relation.asInstanceOf[HadoopFsRelation]

  private def toListed(file: FileStatusWithMetadata): ListedFile =
    ListedFile(file.getPath.toString, file.getLen, file.getModificationTime)
}

private object FileTable {

  /** The files of a table, and what tells its columns from others. */
  case class Listed(columns: String, files: Set[ListedFile])
}
