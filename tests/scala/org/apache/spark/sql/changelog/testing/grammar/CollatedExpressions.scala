// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing.grammar

import org.apache.spark.sql.types.{DataType, IntegerType, StringType}

/**
 * Draws what there is of texts of which several are one, such as 'a' and 'A'.
 *
 * Which of them stands for all in a group is chance. So none is used in a way that tells them apart:
 * they become numbers and plain texts only by what is the same for all.
 */
private[grammar] final class CollatedExpressions(draw: Draw) {
  import draw._

  /** A collated text. */
  def call(dataType: DataType, some: DataType => String): String = below(5) match {
    case 0 => s"concat(${some(dataType)}, ${some(dataType)})"
    case 1 => s"substring(${some(dataType)}, 1, 1)"
    case 2 => s"upper(${some(dataType)})"
    case 3 => s"${word("least", "greatest")}(${some(dataType)}, ${some(dataType)})"
    case _ => s"CAST(${some(StringType)} AS ${dataType.sql})"
  }

  /** A value of another type. */
  def use(dataType: DataType, some: DataType => String): String = {
    val text = some(one(Types.collated))
    dataType match {
      case IntegerType => s"length($text)"
      case StringType => CollatedExpressions.plain(text)
      case _ => s"(${some(Types.collated.head)} LIKE '%${word("a", "B")}%')"
    }
  }
}

private[grammar] object CollatedExpressions {

  /** The plain text that stands for all that are one. */
  def plain(text: String): String = s"CAST(lower($text) AS STRING)"
}
