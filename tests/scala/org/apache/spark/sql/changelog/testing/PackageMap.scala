// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

/**
 * The packages as `package.scala` lists them, in that order.
 *
 * @param purpose
 *   what is in the package
 * @param uses
 *   the packages that it names as those it uses
 */
final case class ListedPackage(name: String, purpose: String, uses: Seq[String])

/** Reads and draws the list of packages. */
object PackageMap {
  private val First = "   (\\w+) +(.+)".r

  /** The list within the documentation of a package object. */
  def parse(source: String): Seq[ListedPackage] = {
    val list = source.linesIterator
      .dropWhile(!_.contains("{{{"))
      .drop(1)
      .takeWhile(!_.contains("}}}"))
      .map(_.stripPrefix(" *"))
    list
      .foldLeft(Vector.empty[Vector[String]]) {
        case (packages, line @ First(_, _)) => packages :+ Vector(line)
        case (packages, line) => packages.init :+ (packages.last :+ line.trim)
      }
      .map { lines =>
        val First(name, text) = lines.head: @unchecked
        val (purpose, uses) = (text +: lines.tail).span(!_.startsWith("uses "))
        ListedPackage(
          name,
          purpose.mkString(" "),
          uses.mkString(" ").stripPrefix("uses ").split("[, ]+").toSeq.filter(_.nonEmpty))
      }
  }

  /** A picture in which an arrow is left out where others lead the same way, and a table. */
  def draw(packages: Seq[ListedPackage]): Seq[String] = {
    val uses = packages.map(listed => listed.name -> listed.uses).toMap
    def reached(name: String): Set[String] =
      uses(name).toSet.flatMap((used: String) => reached(used) + used)
    val arrows = packages.reverse.flatMap { listed =>
      val direct = listed.uses.filterNot(used => listed.uses.exists(reached(_).contains(used)))
      direct.map(used => s"  ${listed.name} --> $used")
    }
    val rows = packages.map { listed =>
      s"| `${listed.name}` | ${listed.purpose} | ${listed.uses.mkString(", ")} |"
    }
    val alone = packages.map(_.name).filterNot(name => arrows.exists(_.contains(s" $name")))
    Seq("```mermaid", "flowchart TD") ++ arrows ++ alone.map("  " + _) ++
      Seq("```", "", "| Package | What is in it | What it uses |", "|---|---|---|") ++ rows
  }
}
