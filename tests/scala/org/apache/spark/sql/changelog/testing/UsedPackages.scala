// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

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
    below.flatMap(selected).filter(packages + "_").toSet
  }

  /** The names that are selected by one, or by several in braces, by those they have there. */
  def selected(selector: String): Seq[String] =
    if (selector.startsWith("{")) selector.drop(1).split(',').toSeq.flatMap(Name.findFirstIn(_))
    else Seq(selector)

  /** The Scala sources in a folder, and below it. */
  def sources(folder: Path): Seq[Path] = {
    val all = Files.walk(folder)
    try all.iterator.asScala.filter(_.toString.endsWith(".scala")).toSeq
    finally all.close()
  }
}
