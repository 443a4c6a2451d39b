// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

/** Finds the packages right below `changelog` that a Scala source uses. */
object UsedPackages {

  /** What is no code: texts, characters and comments. */
  private val NoCode = Seq(
    "\"\"\"(?s:.*?)\"\"\"",
    "\"(?:\\\\.|[^\"\\\\\n])*+\"",
    "'(?:\\\\[^']+|[^'\\\\])'",
    "/\\*(?s:.*?)\\*/",
    "//[^\n]*").mkString("|").r

  private val Name = "\\w+".r

  /** A name below `changelog`, or several in braces, however one gets to `changelog`. */
  private val Below = "\\bchangelog\\s*\\.\\s*(\\w+|\\{[^}]*\\})".r

  private val Clause = "(?m)^\\s*package (?!object)([\\w.]+)".r

  /** The source without what is no code. */
  def code(source: String): String = NoCode.replaceAllIn(source, " ")

  /** What a source says its packages are. */
  def clauses(source: String): Seq[String] =
    Clause.findAllMatchIn(code(source)).map(_.group(1)).toSeq

  /** Those of `packages` that a source uses; `_` among them if it has them all at hand. */
  def apply(source: String, packages: Set[String]): Set[String] = {
    val below = Below.findAllMatchIn(Clause.replaceAllIn(code(source), "")).map(_.group(1))
    below
      .flatMap {
        case several if several.startsWith("{") =>
          several.drop(1).split(',').toSeq.flatMap(Name.findFirstIn(_))
        case one => Seq(one)
      }
      .filter(packages + "_")
      .toSet
  }
}
