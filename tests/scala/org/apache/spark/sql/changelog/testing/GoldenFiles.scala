// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.nio.file.{Files, Path, Paths}

import org.scalatest.Assertions

/**
 * Compares what the code says with files in the tree.
 *
 * With `SPARK_GENERATE_GOLDEN_FILES=1` in the environment the files are written instead.
 */
trait GoldenFiles extends Assertions {
  protected val home = Paths.get(System.getProperty("spark.changelog.test.home", "."))

  protected def checkGolden(file: String, actual: String): Unit = {
    val path = home.resolve(file)
    if (sys.env.get("SPARK_GENERATE_GOLDEN_FILES").contains("1")) write(path, actual)
    val expected = if (Files.exists(path)) Files.readString(path) else ""
    assert(
      actual == expected,
      s"$file differs; SPARK_GENERATE_GOLDEN_FILES=1 dev/sbt 'testOnly *${getClass.getSimpleName}' " +
        "writes it anew")
  }

  /**
   * The same for a part of a page that is otherwise written by hand.
   *
   * @param begin
   *   the line before that part, which ends before [[GoldenFiles.End]]
   */
  protected def checkGoldenPart(file: String, begin: String, actual: Seq[String]): Unit = {
    val text = Files.readString(home.resolve(file))
    assert(text.split(begin, -1).length == 2, s"'$begin' is in $file once")
    val start = text.indexOf(begin) + begin.length
    val end = text.indexOf(GoldenFiles.End, start)
    assert(end > 0, s"'${GoldenFiles.End}' is not in $file after '$begin'")
    checkGolden(
      file,
      text.substring(0, start) + actual.mkString("\n", "\n", "\n") + text.substring(end))
  }

  private def write(path: Path, text: String): Unit = {
    Files.createDirectories(path.getParent)
    Files.writeString(path, text)
  }
}

object GoldenFiles {
  val End = "<!-- up to here -->"
}
