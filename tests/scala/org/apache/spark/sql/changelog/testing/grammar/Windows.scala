// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing.grammar

import org.apache.spark.sql.types._

/** Draws calls of window functions. */
private[grammar] final class Windows(draw: Draw, expressions: Expressions) {
  import draw._

  /** A call with a result of type `dataType`. */
  def of(dataType: DataType, scope: Seq[Column]): Typed = {
    val partition =
      if (oneIn(4)) "" else s"PARTITION BY ${some(scope, 1 + below(2)).map(_.sql).mkString(", ")}"
    // peers differ in nothing, so that it does not matter which comes first
    val full = s"ORDER BY ${some(scope, scope.size).map(c => c.sql + order).mkString(", ")}"
    val partial = s"ORDER BY ${some(scope, 1).map(c => c.sql + order).mkString(", ")}"
    val input = expressions.of(dataType, scope, 1)
    val rows = word(
      "",
      "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
      "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
      "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING")
    dataType match {
      case IntegerType if oneIn(3) => rank(scope)
      case IntegerType if oneIn(3) => Typed(s"ntile(2) OVER ($partition $full)", dataType)
      case DoubleType if oneIn(3) =>
        Typed(
          s"${word("percent_rank", "cume_dist")}() OVER ($partition $partial)",
          dataType,
          false)
      case LongType if oneIn(2) =>
        Typed(s"count(*) OVER ($partition ${word(partial, full + " " + rows)})", dataType)
      case LongType =>
        val number = expressions.of(IntegerType, scope, 1).sql
        Typed(
          s"sum($number % 100) OVER ($partition ${word(partial, full + " " + rows, "")})",
          dataType)
      case _ =>
        val call = below(4) match {
          case 0 => s"lag(${input.sql}) OVER ($partition $full)"
          case 1 => s"lead(${input.sql}, 2) OVER ($partition $full)"
          case 2 => s"first_value(${input.sql}) OVER ($partition $full $rows)"
          case _ =>
            s"${word("min", "max")}(${input.sql}) OVER ($partition ${word(partial, full + " " + rows, "")})"
        }
        Typed(call, dataType, input.exact)
    }
  }

  /** The place of a row in its partition. */
  def rank(scope: Seq[Column]): Typed = {
    val partition = if (oneIn(3)) "" else s"PARTITION BY ${one(scope).sql}"
    def by(columns: Seq[Column]) = s"ORDER BY ${columns.map(_.sql + order).mkString(", ")}"
    val sql = below(3) match {
      case 0 => s"row_number() OVER ($partition ${by(some(scope, scope.size))})"
      case 1 => s"rank() OVER ($partition ${by(some(scope, 1 + below(2)))})"
      case _ => s"dense_rank() OVER ($partition ${by(some(scope, 1))})"
    }
    Typed(sql, IntegerType)
  }

  private def order: String = word("", " DESC", " NULLS LAST", " DESC NULLS FIRST")
}
