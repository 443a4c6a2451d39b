// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import java.nio.file.Files

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing.{GoldenFiles, UsedPackages}

/** What of Spark's internals is used stands in a list, which nobody makes longer unaware. */
class SparkInternalsSuite extends AnyFunSuite with GoldenFiles {
  private val page = "docs/contributing/spark-internals.md"

  /**
   * Where another version of Spark may have other names and parameters. Expressions, plans and their
   * trees are what every extension is written in.
   */
  private val Internals = Seq(
    "org.apache.spark.internal",
    "org.apache.spark.io",
    "org.apache.spark.rdd",
    "org.apache.spark.util",
    "org.apache.spark.sql.catalyst.analysis",
    "org.apache.spark.sql.catalyst.optimizer",
    "org.apache.spark.sql.catalyst.parser",
    "org.apache.spark.sql.catalyst.streaming",
    "org.apache.spark.sql.errors",
    "org.apache.spark.sql.execution",
    "org.apache.spark.sql.internal")

  private val Import = "(?m)^import ([\\w.]+)\\.(\\w+|\\{[^}]*\\})".r

  /** The names that a source imports, each with its package. */
  private def imported(source: String): Set[(String, String)] =
    Import
      .findAllMatchIn(UsedPackages.code(source))
      .flatMap(found => UsedPackages.selected(found.group(2)).map(found.group(1) -> _))
      .toSet

  private def isInternal(package_ : String): Boolean =
    Internals.exists(internal => package_ == internal || package_.startsWith(s"$internal."))

  test("names are found however they are imported") {
    val source =
      "import a.b.C\nimport a.{D => E, F}\nimport a.b._\n// import a.G\nval x = \"import a.H\""
    assert(imported(source) == Set("a.b" -> "C", "a" -> "D", "a" -> "F", "a.b" -> "_"))
  }

  test("the list of Spark's internals is the one that is written down") {
    val used = UsedPackages
      .sources(home.resolve("scala/src/main/scala"))
      .flatMap(file => imported(Files.readString(file)))
      .filter { case (package_, _) => isInternal(package_) }
      .groupMapReduce(name => name)(_ => 1)(_ + _)
    val packages = used.groupMap(_._1._1) { case ((_, name), count) => name -> count }
    val rows = packages.toSeq.sortBy(_._1).map { case (package_, names) =>
      val all = names.toSeq.sorted.map {
        case (name, 1) => s"`$name`"
        case (name, count) => s"`$name` $count"
      }
      s"| `$package_` | ${all.mkString(", ")} |"
    }
    val numFiles = s"${used.size} names, imported ${used.values.sum} times"
    checkGolden(
      page,
      (SparkInternalsSuite.Head ++ Seq(numFiles, "") ++
        Seq("| package | names, and in how many files if in several |", "|---|---|") ++ rows)
        .mkString("", "\n", "\n"))
  }
}

private object SparkInternalsSuite {
  private val Head = Seq(
    "# Spark's internals",
    "",
    "What the engine uses of Spark beyond expressions and plans, and so what another version of Spark may break. What differs from one",
    "version to the next is in the package `compat`, which isn't counted. Written by",
    "`SPARK_GENERATE_GOLDEN_FILES=1 dev/sbt 'testOnly *SparkInternalsSuite'`, which fails where the list grows unsaid. Before it does:",
    "has a name that is here already what is needed?",
    "")
}
