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

  private def write(path: Path, text: String): Unit = {
    Files.createDirectories(path.getParent)
    Files.writeString(path, text)
  }
}
