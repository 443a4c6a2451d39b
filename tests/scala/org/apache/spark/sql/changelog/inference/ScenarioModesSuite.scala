// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import scala.io.Source
import scala.util.Using

import org.apache.spark.SparkThrowable

import org.apache.spark.sql.changelog.plans.InputMode
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}

/**
 * Compares the modes of many small queries with those in `analysis/scenario-modes.txt`, a block
 * each: name, mode and key; tables; query; nodes with their modes, or the error.
 */
class ScenarioModesSuite extends InferenceTest {
  private val Head = """(\w+) (\w+)(?: key=([\w,]+))?""".r
  private val Table =
    """(\w+)\((.*)\)(?: ([IUABD,]+))?(?: key=([\w,]+))?(?: watermark=(\w+))?""".r

  private val blocks: Seq[Seq[String]] = {
    val stream = getClass.getResourceAsStream("/analysis/scenario-modes.txt")
    val text = Using.resource(Source.fromInputStream(stream, "UTF-8"))(_.mkString)
    text
      .split("\n\n")
      .toSeq
      .map(
        _.split("\n").toSeq.map(_.trim).filterNot(line => line.isEmpty || line.startsWith("#")))
      .filter(_.nonEmpty)
  }

  blocks.foreach { block =>
    val (head +: tables :+ query :+ expected) = block: @unchecked
    val Head(name, mode, key) = head: @unchecked
    test(s"scenario $name, $mode") {
      tables.foreach(declare)
      assert(modesOf(query, mode, Option(key).toSeq.flatMap(_.split(","))) == expected)
    }
  }

  private def declare(table: String): Unit = {
    val Table(name, columns, kinds, key, watermark) = table: @unchecked
    val symbols = Option(kinds).getOrElse("I").split(",").toSet
    changelog(
      name,
      columns,
      ModifyKindSet(symbols("I"), symbols("UA"), symbols("D")),
      Option(key).toSeq.flatMap(_.split(",")),
      if (symbols("UA") && !symbols("UB")) InputMode.Upsert else InputMode.Retract,
      Option(watermark))
  }

  private def modesOf(query: String, mode: String, key: Seq[String]): String =
    try {
      modes(infer(query, OutputMode.values.find(_.toString == mode).get, key))
    } catch {
      case error: SparkThrowable if error.getCondition.startsWith("CHANGELOG_") =>
        s"refused ${error.getCondition}"
    }
}
