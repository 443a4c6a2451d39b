// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.explain.ExplainChangelogCommand
import org.apache.spark.sql.changelog.views.ViewQuery

/**
 * `EXPLAIN CREATE MATERIALIZED VIEW`: how each table would be followed, and how the view would be
 * kept.
 *
 * @param otherwise
 *   explains a query none of whose tables is followed
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
    val others = query.unfollowed.map { case (table, reason) =>
      s"$table is not followed: $reason"
    }
    if (followed.isEmpty) {
      val anew = query.obstacles.map(reason => s"All is computed anew: $reason")
      otherwise.run(session).map { row =>
        Row((anew :+ row.getString(0)).mkString("\n"))
      }
    } else {
      val tree = query.output.explained.toText
      Seq(Row((followed ++ others :+ tree).mkString("\n")))
    }
  }
}
