// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.savepoints

import scala.util.Try

import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.util.ThreadUtils

import org.apache.spark.sql.changelog.compat.{RocksDBFiles, StoredOperators}

/**
 * StateFolder: the state of all operators of a query, as files of a checkpoint.
 *
 * If each attempt of a task has separate files, the log of batches names the valid attempts: per operator, partition
 * and store.
 */
private[savepoints] class StateFolder(
    session: SparkSession,
    checkpoint: Path,
    files: FileSystem) {
  import StateFolder._

  private val folder = new Path(checkpoint, "state")

  /** The stores of each operator's partitions. */
  private lazy val stores: Seq[Store] = {
    val partitions = subfolders(folder).flatMap(subfolders)
    ThreadUtils
      .parmap(partitions.filter(isNumber), "state-folders", NumThreads) { partition =>
        val operator = partition.getParent.getName.toLong
        storesIn(partition).map(Store(operator, partition.getName.toInt, _))
      }
      .flatten
      .filter(store => numPartitions.get(store.operator).forall(store.partition < _))
  }

  /** The number of partitions per operator. An operator that began with a changed query may have unused folders. */
  private lazy val numPartitions: Map[Long, Int] =
    Try(new StoredOperators(folder, files.getConf).all(Long.MaxValue))
      .getOrElse(Nil)
      .map(operator => operator.id -> operator.stores.map(_.numPartitions).max)
      .toMap

  private def storesIn(part: Path): Seq[StateVersions] = {
    val names = files.listStatus(part).map(_.getPath.getName).toSet
    if (names.exists(isFile)) Seq(new StateVersions(part, names))
    else subfolders(part).filterNot(isNote).flatMap(storesIn)
  }

  /** Returns a store without the files of a version, if any. */
  def storeWithoutFiles(version: Long, attempts: Option[Attempts]): Option[Path] =
    stores.find(filesOf(_, version, attempts).isEmpty).map(_.versions.folder)

  private def filesOf(
      store: Store,
      version: Long,
      attempts: Option[Attempts]): Option[Seq[String]] = attempts match {
    case None => store.versions.filesOf(version)
    case Some(attempts) =>
      // An attempt has one name for all stores of a partition.
      val ofPartition =
        attempts.getOrElse(store.operator, Nil).lift(store.partition).getOrElse(Nil)
      val found = ofPartition.flatMap(store.versions.filesOf(version, _, attemptsBefore))
      found.headOption
  }

  private def attemptsBefore(changes: Path): Seq[(Long, String)] =
    RocksDBFiles.attemptsBefore(session, changes, files.getConf)

  /** Returns all files behind a version, and the metadata and schema files beside them. */
  def filesOf(version: Long, attempts: Option[Attempts]): Seq[Path] = {
    val ofStores = ThreadUtils.parmap(stores, "state-files", NumThreads) { store =>
      val folder = store.versions.folder
      filesOf(store, version, attempts).getOrElse(Nil).map(new Path(folder, _)).flatMap { file =>
        val besides =
          if (file.getName.endsWith(".zip")) RocksDBFiles.besides(files.open(file)) else Nil
        file +: besides.map(new Path(folder, _))
      }
    }
    ofStores.flatten.flatMap(withChecksum) ++ notesIn(folder, depth = 3)
  }

  /** Returns the metadata files of an operator, and of the stores of its partitions. */
  private def notesIn(folder: Path, depth: Int): Seq[Path] = subfolders(folder).flatMap { path =>
    if (isNote(path)) allIn(path)
    else if (depth > 0) notesIn(path, depth - 1)
    else Nil
  }

  private def allIn(path: Path): Seq[Path] =
    files.listStatus(path).toSeq.flatMap { status =>
      if (status.isDirectory) allIn(status.getPath) else Seq(status.getPath)
    }

  /** Spark may store a checksum beside a file. */
  private def withChecksum(file: Path): Seq[Path] =
    file +: Some(file.suffix(".crc")).filter(files.exists).toSeq

  private def subfolders(path: Path): Seq[Path] =
    if (!files.exists(path)) Nil
    else files.listStatus(path).toSeq.filter(_.isDirectory).map(_.getPath)

  private def isNote(path: Path): Boolean = path.getName.startsWith("_")

  private def isNumber(path: Path): Boolean = path.getName.toLongOption.isDefined
}

private[savepoints] object StateFolder {

  /** Returns whether a name belongs to a version's file. */
  private def isFile(name: String): Boolean =
    name.matches("\\d+(_[^.]+)?\\.(snapshot|delta|zip|changelog)")

  /** The valid attempts per operator, partition and store. */
  type Attempts = Map[Long, Seq[Seq[String]]]

  private case class Store(operator: Long, partition: Int, versions: StateVersions)

  /** The number of files to inspect or copy in parallel. */
  val NumThreads = 8
}

/**
 * StateVersions: the files of one state store by version, as named by the state store providers of Spark and of this
 * extension.
 *
 * {{{
 *   7.snapshot 8.delta 9.delta     in memory and in pages
 *   7.zip 8.changelog 9.changelog  RocksDB
 * }}}
 * A version consists of its newest snapshot, if any, and the later changes.
 */
private[savepoints] final class StateVersions(val folder: Path, names: Set[String]) {
  private val snapshots = numbered("snapshot", "zip")
  private val changes = numbered("delta", "changelog")

  /** Returns the files of a version, or None if some are missing. */
  def filesOf(version: Long): Option[Seq[String]] = {
    val starts = snapshots.keySet.filter(_ <= version) + 0L
    starts.toSeq.sorted.reverse
      .find(start => (start + 1 to version).forall(changes.contains))
      .map(start => snapshots.get(start).toSeq ++ (start + 1 to version).map(changes))
  }

  /**
   * Returns the files of a version if each attempt has separate files, or None if some are missing.
   *
   * {{{
   *   7_a.zip 8_b.changelog 9_c.changelog
   * }}}
   *
   * @param attempt
   *   the valid attempt
   * @param before
   *   reads the earlier versions and attempts from the changes of a version
   */
  def filesOf(
      version: Long,
      attempt: String,
      before: Path => Seq[(Long, String)]): Option[Seq[String]] = {
    val own = s"${version}_$attempt"
    if (names(s"$own.zip")) Some(Seq(s"$own.zip"))
    else if (!names(s"$own.changelog")) None
    else {
      val line = before(new Path(folder, s"$own.changelog")) :+ (version -> attempt)
      val named = line.map { case (number, id) => s"${number}_$id" }
      val start = named.lastIndexWhere(name => names(s"$name.zip"))
      val files = named.lift(start).map(name => s"$name.zip").toSeq ++
        named.drop(start + 1).map(name => s"$name.changelog")
      val isWhole = start >= 0 || line.head._1 == 1
      if (isWhole && files.forall(names)) Some(files) else None
    }
  }

  private def numbered(endings: String*): Map[Long, String] = names.flatMap { name =>
    name.split('.') match {
      case Array(number, ending) if endings.contains(ending) =>
        number.toLongOption.map(_ -> name)
      case _ => None
    }
  }.toMap
}
