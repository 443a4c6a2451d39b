// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.types.StringType

/** A statement that shows queries in an [[ExplainFormat]], a row for each text. */
trait ExplainCommand extends LeafRunnableCommand {
  override val output: Seq[Attribute] =
    Seq(AttributeReference("plan", StringType, nullable = false)())
}
