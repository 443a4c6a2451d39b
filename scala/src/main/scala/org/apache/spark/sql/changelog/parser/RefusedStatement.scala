// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.parser

import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.{AnalysisException, Row, SparkSession}

/**
 * A statement that was understood and is refused: when it is run, not when it is parsed. Delta's
 * parser, which may come before ours, takes an error of analysis for one of its own and loses it.
 */
case class RefusedStatement()(error: AnalysisException) extends LeafRunnableCommand {
  override protected def otherCopyArgs: Seq[AnyRef] = Seq(error)

  override def run(session: SparkSession): Seq[Row] = throw error
}
