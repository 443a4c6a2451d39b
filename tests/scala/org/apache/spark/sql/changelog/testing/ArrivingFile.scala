// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.nio.file.attribute.FileTime
import java.nio.file.{Files, Path}

/** Files that come into a folder one after the other, each whole from the moment it is there. */
object ArrivingFile {

  /** Lets the file of a number come, whose time is after that of those before it. */
  def write(folder: Path, number: Int, format: String, lines: Seq[String]): Unit = {
    val file = Files.writeString(folder.resolveSibling("unfinished"), lines.mkString("\n"))
    Files.setLastModifiedTime(file, FileTime.fromMillis(1700000000000L + number * 1000L))
    Files.move(file, folder.resolve(f"$number%05d.$format"))
    ()
  }

  /** The same with changes, their kind in the first column. */
  def writeCsv(folder: Path, number: Int, changes: Seq[Change]): Unit = {
    val lines = changes.map { change =>
      (change.kind +: change.row.toSeq.map(value => if (value == null) "" else value.toString))
        .mkString(",")
    }
    write(folder, number, "csv", lines)
  }
}
