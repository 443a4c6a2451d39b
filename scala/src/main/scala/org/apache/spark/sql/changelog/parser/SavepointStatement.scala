// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.parser

import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.util.SparkParserUtils.unescapeSQLString

import org.apache.spark.sql.changelog.savepoints._
import org.apache.spark.sql.changelog.views.{OfView, ViewStatement}

/** Understands the statements about savepoints, and `FORK CHECKPOINT`. */
private class SavepointStatement(parser: ParserInterface) {
  import SavepointStatement._

  def apply(sqlText: String): Option[LogicalPlan] =
    ViewStatement.LeadingComments.replaceFirstIn(sqlText, "") match {
      case Create(name, checkpoint, view, batch) =>
        Some(CreateSavepoint(name, of(checkpoint, view), Option(batch).map(_.toLong)))
      case Show(checkpoint, view) => Some(ShowSavepoints(of(checkpoint, view)))
      case Drop(ifExists, name, checkpoint, view) =>
        Some(DropSavepoint(name, of(checkpoint, view), ifExists != null))
      case Fork(checkpoint, batch, savepoint, into) =>
        val at =
          if (batch != null) Moment.AtBatch(batch.toLong)
          else if (savepoint != null) Moment.AtSavepoint(savepoint)
          else Moment.Newest
        Some(ForkCheckpoint(unescapeSQLString(checkpoint), at, unescapeSQLString(into)))
      case _ => None
    }

  private def of(checkpoint: String, view: String): HasSavepoints =
    if (checkpoint != null) OfCheckpoint(unescapeSQLString(checkpoint))
    else OfView(parser.parseMultipartIdentifier(view))
}

private object SavepointStatement {
  import ChangelogParser.Text
  import ViewStatement.{Kind, Name}

  private val Batch = """BATCH\s+(\d{1,18})"""
  private val Of = s"""OF\\s+(?:CHECKPOINT\\s+$Text|$Kind\\s+$Name)"""
  private val End = """\s*;?\s*"""
  private val Create =
    s"""(?is)CREATE\\s+SAVEPOINT\\s+(\\w+)\\s+$Of(?:\\s+AT\\s+$Batch)?$End""".r
  private val Show = s"""(?is)SHOW\\s+SAVEPOINTS\\s+$Of$End""".r
  private val Drop = s"""(?is)DROP\\s+SAVEPOINT\\s+(IF\\s+EXISTS\\s+)?(\\w+)\\s+$Of$End""".r
  private val Fork =
    s"""(?is)FORK\\s+CHECKPOINT\\s+$Text(?:\\s+AT\\s+(?:$Batch|SAVEPOINT\\s+(\\w+)))?\\s+INTO\\s+$Text$End""".r
}
