// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing.{GoldenFiles, PackageMap, UsedPackages}

/** Packages use each other as `package.scala` says, and so in no circle. */
class PackageGraphSuite extends AnyFunSuite with GoldenFiles {
  private val name = "org.apache.spark.sql.changelog"
  private val main = home.resolve("scala/src/main")

  private def folderIn(root: String): Path = main.resolve(s"$root/${name.replace('.', '/')}")

  private val folder = folderIn("scala")

  /** Beside what is the same for all versions of Spark, what is for one of them. */
  private val folders =
    main.toFile.list().sorted.filter(_.startsWith("spark-")).map(folderIn).toSeq :+ folder
  private val listed = PackageMap.parse(Files.readString(folder.resolve("package.scala")))
  private val packages = listed.map(_.name)

  private lazy val sources: Seq[Path] = folders.flatMap(UsedPackages.sources)

  private lazy val files: Map[String, Seq[Path]] = sources.groupBy(packageOf)

  private def inPackages(file: Path): Path =
    folders.find(file.startsWith).get.relativize(file)

  /** The first package below ours, none if the file is right there. */
  private def packageOf(file: Path): String = {
    val below = inPackages(file)
    if (below.getNameCount == 1) "" else below.getName(0).toString
  }

  private def used(file: Path): Set[String] =
    UsedPackages(Files.readString(file), packages.toSet) - packageOf(file)

  test("the list names every package once") {
    assert(packages.sorted == (files.keySet - "").toSeq.sorted)
  }

  test("a package uses those that it names, and names no other") {
    listed.foreach { one =>
      val all = files(one.name)
        .flatMap(file => used(file).map(_ -> file.getFileName))
        .groupMap(_._1)(_._2)
      val more = all -- one.uses
      assert(more.isEmpty, s"are used by ${one.name}, which does not name them in package.scala")
      val less = one.uses.filterNot(all.contains)
      assert(less.isEmpty, s"are named by ${one.name} in package.scala, and not used")
    }
  }

  test("a package uses those only that stand above it") {
    listed.zipWithIndex.foreach { case (one, place) =>
      assert(one.uses == one.uses.sorted)
      val below = one.uses.filterNot(packages.take(place).contains)
      assert(below.isEmpty, s"do not stand above ${one.name} in package.scala")
    }
  }

  test("what all packages use knows none of them") {
    val relative = packages.mkString("(?<![\\w.])(", "|", ")\\s*\\.").r
    files("").foreach { file =>
      assert(used(file).isEmpty, file)
      assert(relative.findFirstIn(UsedPackages.code(Files.readString(file))).isEmpty, file)
    }
  }

  test("a file says its package once, as a whole, so that no other can be named in short") {
    sources.filterNot(_.endsWith("package.scala")).foreach { file =>
      val below = inPackages(file).iterator.asScala.toSeq.init
      assert(
        UsedPackages.clauses(Files.readString(file)) == Seq(
          (name +: below.map(_.toString)).mkString(".")),
        file)
    }
  }

  test("nothing uses what users name") {
    sources.foreach { file =>
      assert(!UsedPackages.code(Files.readString(file)).contains("io.sparkchangelog"), file)
    }
  }

  test("packages are found however they are named") {
    def found(source: String) = UsedPackages(source, Set("plans", "sinks", "views"))
    assert(found(s"package $name.views\n") == Set.empty)
    assert(found(s"import $name.plans.Rank") == Set("plans"))
    assert(found(s"import $name.plans.{\n  Rank,\n  RowTtl\n}") == Set("plans"))
    assert(found(s"import $name.{RowKind, plans => p, sinks}") == Set("plans", "sinks"))
    assert(found(s"import $name.plans") == Set("plans"))
    assert(found(s"import $name.{RowKind, OutputMode}") == Set.empty)
    assert(found(s"import $name._") == Set("_"))
    assert(found(s"val row: $name.views.files.Row = null") == Set("views"))
    assert(found("import org.apache.spark.sql._\nval a = changelog.sinks.A") == Set("sinks"))
    assert(found(s"// $name.plans.A\n/** [[$name.sinks.A]] */\nval b = views") == Set.empty)
    assert(found("""val s = "org.apache.spark.sql.changelog.sinks.A" """) == Set.empty)
    assert(found("val q = '\"'\nval t: changelog.plans.A = ' '") == Set("plans"))
  }

  test("the list is read as it is written") {
    val text = Seq(
      "/**",
      " * {{{",
      " *   a    one",
      " *   b    two",
      " *        lines",
      " *        uses a",
      " *   c    three",
      " *        uses a,",
      " *        b",
      " * }}}")
    val read = PackageMap.parse(text.mkString("\n"))
    assert(read.map(_.name) == Seq("a", "b", "c"))
    assert(read.map(_.purpose) == Seq("one", "two lines", "three"))
    assert(read.map(_.uses) == Seq(Nil, Seq("a"), Seq("a", "b")))
    val arrows = PackageMap.draw(read).filter(_.contains("-->")).map(_.trim)
    assert(arrows == Seq("c --> b", "b --> a"))
  }

  test("docs/architecture.md draws the packages") {
    checkGoldenPart(
      "docs/architecture.md",
      "<!-- Generated of package.scala by PackageGraphSuite with SPARK_GENERATE_GOLDEN_FILES=1: -->",
      PackageMap.draw(listed))
  }
}
