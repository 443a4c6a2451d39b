// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.types.{IntegerType, LongType, StringType}

/**
 * Over what the state of an operator is spread.
 *
 * @param shown
 *   the operator, as EXPLAIN shows it
 * @param entries
 *   how many it has
 */
final case class OperatorSpread(shown: String, partitions: Int, entries: Long) {
  def toRow: Row = Row(shown, partitions, entries)
}

object OperatorSpread {

  /** The columns of [[OperatorSpread.toRow]]. */
  def columns: Seq[Attribute] = Seq(
    AttributeReference("operator", StringType)(),
    AttributeReference("partitions", IntegerType)(),
    AttributeReference("entries", LongType)())
}
