// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.types.{DoubleType, LongType, StringType}

/**
 * What becomes of an operator's state when a query is changed, and what that costs.
 *
 * @param rows
 *   how many rows of state and of sources are read for it in the first batch, if that is known
 * @param seconds
 *   how long that is expected to take
 * @param estimate
 *   the same for people, and what it is known from, or why it isn't
 */
final case class EstimatedFate(
    fate: OperatorFate,
    rows: Option[Long],
    seconds: Option[Double],
    estimate: String) {

  def toRow: Row =
    Row.fromSeq(fate.toRow.toSeq ++ Seq(rows.getOrElse(null), seconds.getOrElse(null), estimate))
}

object EstimatedFate {

  /** The columns of [[EstimatedFate.toRow]]. */
  def columns: Seq[Attribute] = OperatorFate.columns ++ Seq(
    AttributeReference("rows", LongType)(),
    AttributeReference("seconds", DoubleType)(),
    AttributeReference("estimate", StringType)())
}
