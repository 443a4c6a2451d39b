// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain

import java.util.Locale

import org.json4s.jackson.JsonMethods.{pretty, render}

import org.apache.spark.sql.changelog.plans.ExplainNode
import org.apache.spark.sql.changelog.status.RunningQuery

/** A form in which EXPLAIN CHANGELOG can be had: text, a tree of JSON, or a picture. */
sealed trait ExplainFormat {

  /** What is shown of a query that does not run, each a row. */
  def apply(trees: Seq[ExplainNode]): Seq[String]

  /** What is shown of a query that runs. */
  def apply(query: RunningQuery): Seq[String]
}

object ExplainFormat {

  case class Text(verbose: Boolean) extends ExplainFormat {
    override def apply(trees: Seq[ExplainNode]): Seq[String] = trees.map(_.toText(verbose))

    override def apply(query: RunningQuery): Seq[String] =
      Seq((LastBatch(query).lines ++ apply(query.trees)).mkString("\n"))
  }

  case object Json extends ExplainFormat {
    override def apply(trees: Seq[ExplainNode]): Seq[String] = trees.map(_.toJson)

    override def apply(query: RunningQuery): Seq[String] = {
      val batch = LastBatch(query).toJson
      query.trees.map(tree =>
        pretty(render(tree.json.copy(obj = tree.json.obj :+ ("query" -> batch)))))
    }
  }

  case object Html extends ExplainFormat {
    override def apply(trees: Seq[ExplainNode]): Seq[String] = Seq(PlanPage(trees))

    override def apply(query: RunningQuery): Seq[String] = Seq(PlanPage(query))
  }

  case object Svg extends ExplainFormat {
    override def apply(trees: Seq[ExplainNode]): Seq[String] =
      trees.map(tree => PlanPage.text(PlanPicture(tree.folded)))

    override def apply(query: RunningQuery): Seq[String] = apply(query.trees)
  }

  /** The form a word of the statement stands for. */
  def apply(name: String): ExplainFormat = name.toUpperCase(Locale.ROOT) match {
    case "TEXT" => Text(verbose = false)
    case "VERBOSE" => Text(verbose = true)
    case "JSON" => Json
    case "HTML" => Html
    case "SVG" => Svg
  }
}
