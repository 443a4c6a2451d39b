// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.savepoints

import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.util.ThreadUtils

import org.apache.spark.sql.changelog.compat.RocksDBFiles

/** The state of all operators of a query, as the files of its checkpoint hold it. */
private[savepoints] class StateFolder(checkpoint: Path, files: FileSystem) {
  private val folder = new Path(checkpoint, "state")

  /** The partitions of operators, each with its stores. */
  private lazy val stores: Seq[StateVersions] = {
    val partitions = subfolders(folder).flatMap(subfolders)
    ThreadUtils
      .parmap(partitions.filter(isNumber), "state-folders", StateFolder.NumThreads)(storesIn)
      .flatten
  }

  private def storesIn(part: Path): Seq[StateVersions] = {
    val names = files.listStatus(part).map(_.getPath.getName).toSet
    if (names.exists(StateVersions.isFile)) Seq(new StateVersions(part, names))
    else subfolders(part).filterNot(isNote).flatMap(storesIn)
  }

  /** A store that no longer has a version. */
  def lacking(version: Long): Option[Path] =
    stores.find(_.filesOf(version).isEmpty).map(_.folder)

  /** All files that a version is read from, and what is noted of columns beside them. */
  def filesOf(version: Long): Seq[Path] = {
    val ofStores = ThreadUtils.parmap(stores, "state-files", StateFolder.NumThreads) { store =>
      store.filesOf(version).getOrElse(Nil).map(new Path(store.folder, _)).flatMap { file =>
        val besides =
          if (file.getName.endsWith(".zip")) RocksDBFiles.besides(files.open(file)) else Nil
        file +: besides.map(new Path(store.folder, _))
      }
    }
    ofStores.flatten.flatMap(withChecksum) ++ notesIn(folder, depth = 3)
  }

  /** What is noted of an operator, and of the stores of its partitions. */
  private def notesIn(folder: Path, depth: Int): Seq[Path] = subfolders(folder).flatMap { path =>
    if (isNote(path)) allIn(path)
    else if (depth > 0) notesIn(path, depth - 1)
    else Nil
  }

  private def allIn(path: Path): Seq[Path] =
    files.listStatus(path).toSeq.flatMap { status =>
      if (status.isDirectory) allIn(status.getPath) else Seq(status.getPath)
    }

  /** Spark may keep a checksum beside a file. */
  private def withChecksum(file: Path): Seq[Path] =
    file +: Some(file.suffix(".crc")).filter(files.exists).toSeq

  private def subfolders(path: Path): Seq[Path] =
    if (!files.exists(path)) Nil
    else files.listStatus(path).toSeq.filter(_.isDirectory).map(_.getPath)

  private def isNote(path: Path): Boolean = path.getName.startsWith("_")

  private def isNumber(path: Path): Boolean = path.getName.toLongOption.isDefined
}

private[savepoints] object StateFolder {

  /** How many files are looked at, or copied, at a time. */
  val NumThreads = 8
}
