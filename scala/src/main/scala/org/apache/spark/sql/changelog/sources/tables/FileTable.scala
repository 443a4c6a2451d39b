// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.json4s._
import org.json4s.jackson.Serialization

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.{
  FileIndex, FileStatusWithMetadata, HadoopFsRelation, LogicalRelation, PartitionDirectory
}
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.types.{StringType, StructType, TimestampType}

import org.apache.spark.sql.changelog.checkpoint.TextFile
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/**
 * FileTable: a table followed by the list of its files. Rows of new files are inserts. For a removed or replaced file,
 * the old rows are unknown.
 *
 * @param folder
 *   the folder of the file lists
 */
private[tables] class FileTable(session: SparkSession, override val name: String, folder: Path)
    extends FollowedTable {
  import FileTable._

  private val listings = new FileListings(folder, session.sessionState.newHadoopConf())

  override type TableSnapshot = Listed

  override def tracksOnlyInserts: Boolean = true

  /** The last file list. */
  private var listed: Option[Listed] = None

  override def now(): Listed = {
    val shared = SharedVersions.of(session, name)(list())
    // Partition values of type TIMESTAMP depend on the view's time zone.
    val isSame =
      shared.zone == zone || !shared.partitionSchema.exists(_.dataType == TimestampType)
    val found = if (isSame) shared else list().inPartitionsOf(shared)
    listed = Some(found)
    found
  }

  private def zone: String = session.sessionState.conf.sessionLocalTimeZone

  private def list(): Listed = {
    val relation = FollowedTables.current(session, name).asInstanceOf[LogicalRelation]
    val files = filesOf(relation)
    Listed(relation.schema, files.partitionSchema, zone, files.location.listFiles(Nil, Nil))
  }

  override def version(start: Option[TableVersion], snapshot: Listed): TableVersion = {
    val found = TableVersion(name, "", snapshot.columns, start.fold("0")(_.version))
    val known = start.fold(Set.empty[ListedFile]) { start =>
      checkSame(widened(start, snapshot), found)
      listings.read(start.number)
    }
    checkExist(known, snapshot.files, found.version)
    if (start.nonEmpty && known == snapshot.files) found
    else {
      val next = found.at(found.number + 1)
      listings.write(next.number, snapshot.files)
      next
    }
  }

  /** Returns a version with the columns of the table now, if those only were added. Older files have NULL there. */
  private def widened(at: TableVersion, now: Listed): TableVersion =
    if (now.addsColumns(to = at.columns)) at.copy(columns = now.columns) else at

  override def rows(at: TableVersion): LogicalPlan =
    rowsOf(listings.read(at.number), at.version)

  override def changes(from: TableVersion, until: TableVersion): LogicalPlan =
    rowsOf(listings.read(until.number) -- listings.read(from.number), until.version)

  override def size(since: TableVersion): Option[TableSize] = {
    val there = now()
    checkSame(widened(since, there), TableVersion(name, "", there.columns, since.version))
    val known = listings.read(since.number)
    checkExist(known, there.files, since.version)
    def bytes(files: Set[ListedFile]) = files.toSeq.map(_.length).sum
    Some(TableSize(bytes(there.files), bytes(there.files -- known)))
  }

  override def forget(before: TableVersion): Unit = listings.deleteBefore(before.number)

  private def rowsOf(files: Set[ListedFile], version: String): LogicalPlan = {
    val known = listed.filter(known => files.subsetOf(known.files)).getOrElse(list())
    checkExist(files, known.files, version)
    val relation =
      FollowedTables.relationOf(session.table(name)).asInstanceOf[LogicalRelation]
    val source = filesOf(relation)
    val location = new ListedFiles(
      source.location.rootPaths,
      source.partitionSchema,
      known.of(files).directories)
    relation.copy(relation = source.copy(location = location)(source.sparkSession))
  }

  private def checkExist(
      expected: Set[ListedFile],
      there: Set[ListedFile],
      version: String): Unit =
    expected.find(!there.contains(_)).foreach { file =>
      throw analysis(
        "CHANGELOG_TABLE_FILES_REPLACED",
        "table" -> name,
        "version" -> version,
        "file" -> file.path)
    }

  private def filesOf(relation: LogicalRelation): HadoopFsRelation =
    relation.relation.asInstanceOf[HadoopFsRelation]
}

private object FileTable {

  /**
   * Listed: the files of a table, by partition.
   *
   * @param schema
   *   the table's columns
   * @param zone
   *   the time zone of TIMESTAMP partition values
   */
  case class Listed(
      schema: StructType,
      partitionSchema: StructType,
      zone: String,
      directories: Seq[PartitionDirectory]) {

    /** A fingerprint of the table's columns. */
    val columns: String = TableVersion.fingerprint(schema)

    /** Whether the table had other columns, and all columns added since are the last before its partition columns. */
    def addsColumns(to: String): Boolean = {
      val (partitions, size) = (partitionSchema.size, to.takeWhile(_ != '-').toInt)
      def first = schema.take(size - partitions) ++ schema.takeRight(partitions)
      size >= partitions && size < schema.size &&
      TableVersion.fingerprint(StructType(first)) == to
    }

    lazy val files: Set[ListedFile] =
      directories.flatMap(directory => directory.files.map(listed(directory))).toSet

    /** Returns the list of some files only. */
    def of(some: Set[ListedFile]): Listed = {
      val left = directories.map { directory =>
        val name = listed(directory)
        directory.copy(files = directory.files.filter(file => some.contains(name(file))))
      }
      copy(directories = left.filter(_.files.nonEmpty))
    }

    /**
     * Returns the files of another list, in this list's partitions. Returns this whole list if some files have changed
     * since.
     */
    def inPartitionsOf(other: Listed): Listed = {
      val known = other.files.map(_.anywhere)
      val same = files.filter(file => known(file.anywhere))
      if (same.size < known.size) this else of(same)
    }

    private def listed(directory: PartitionDirectory): FileStatusWithMetadata => ListedFile = {
      val values = partitionSchema.zipWithIndex.map { case (field, place) =>
        val value = directory.values.get(place, field.dataType)
        s"${field.name}=${Cast(Literal(value, field.dataType), StringType, Some(zone)).eval()}"
      }
      val partition = values.mkString("/")
      file => ListedFile(file.getPath.toString, file.getLen, file.getModificationTime, partition)
    }
  }
}

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
