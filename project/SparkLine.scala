// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

import sbt._

/**
 * The line of Spark that is built for, such as 4.2: versions of one line have the same sources and the same jar.
 * Another line than the main one has its own folder for what is built, and names of its own for that.
 */
object SparkLine {

  /** The line of a version. */
  def of(version: String): String = version.split('.').take(2).mkString(".")

  lazy val current: String = of(Dependencies.usedSpark)

  lazy val isMain: Boolean = current == of(Dependencies.mainSpark)

  /** Where this line is built, so that all is there yet when one turns back to the other. */
  def target(folder: File): File = if (isMain) folder else folder / s"spark-$current"

  /** What artifacts are called, as Delta calls its own. */
  def module(name: String): String = if (isMain) name else s"${name}_$current"

  private val Folder = "spark-([\\d.]+)(?:(\\+)|-([\\d.]+))?".r

  /**
   * The folders in `parent` with sources for this line: `spark-4.2` for one line, `spark-4.1-4.2` from one up to
   * another, `spark-4.2+` from one on.
   */
  def sources(parent: File): Seq[File] = (parent * "spark-*").get.sorted.filter { folder =>
    folder.getName match {
      case Folder(line, null, null) => line == current
      case Folder(first, _, null) => isUpTo(first, current)
      case Folder(first, _, last) => isUpTo(first, current) && isUpTo(current, last)
      case other => sys.error(s"$other says no line of Spark")
    }
  }

  private def isUpTo(first: String, last: String): Boolean = {
    val Seq((major, minor), (ofMajor, ofMinor)) = Seq(first, last).map { line =>
      val Array(major, minor) = line.split('.').map(_.toInt)
      major -> minor
    }
    major < ofMajor || major == ofMajor && minor <= ofMinor
  }
}
