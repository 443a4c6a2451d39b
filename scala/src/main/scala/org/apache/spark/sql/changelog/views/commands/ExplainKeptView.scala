// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.explain.{ExplainChangelogCommand, ExplainFormat}
import org.apache.spark.sql.changelog.views.{TouchedPartitions, ViewQuery}

/**
 * `EXPLAIN CREATE MATERIALIZED VIEW`: how each source would be followed, and how the view would be
 * kept. What is said beside the plan is left out of formats other than text.
 *
 * @param otherwise
 *   explains a query that reads no changes
 */
case class ExplainKeptView(create: CreateKeptView, otherwise: ExplainChangelogCommand)
    extends ViewCommand {
  override val output: Seq[Attribute] = otherwise.output

  override protected def runIn(session: SparkSession): Seq[Row] = {
    val query = new ViewQuery(session, create.define(session))
    val followed = query.followed.flatMap { way =>
      s"${way.name} is followed ${way.way}; a refresh reads ${way.reads}" +:
        way.better.map(reason => s"  not better, since $reason").toSeq
    }
    val partitions = TouchedPartitions.columnsOf(query).map { case (table, columns) =>
      s"if few partitions of $table have changed, rows of the same ${columns.mkString(" or ")} " +
        "are recomputed instead of computing state"
    }
    val others = query.unfollowed.map { case (table, reason) =>
      s"$table is not followed: $reason"
    }
    val views =
      query.views.toSeq.map(view => s"${view.quotedString} is followed by its changes").sorted
    val streams =
      query.streams.map(stream =>
        s"$stream is a stream; a refresh reads what has come since the last one")
    val changes = followed ++ views ++ streams
    if (changes.isEmpty) {
      val anew = query.obstacles.map(reason => s"All is computed anew: $reason")
      otherwise.run(session).map(row => beside(anew, row.getString(0)))
    } else {
      val tree = otherwise.withPartitions(session, query.output.explained)
      otherwise.format(Seq(tree)).map(beside(changes ++ partitions ++ others, _))
    }
  }

  private def beside(lines: Seq[String], plan: String): Row = otherwise.format match {
    case _: ExplainFormat.Text => Row((lines :+ plan).mkString("\n"))
    case _ => Row(plan)
  }
}
