// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing.grammar

import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.testing.grammar.Types.{Decimal, Ints}

/** Draws calls of aggregate functions with a result of a wanted type. */
private[grammar] final class Aggregates(draw: Draw, expressions: Expressions) {
  import draw._
  import expressions.condition

  /** A call over rows of `scope`, maybe with a filter; over no rows it may be NULL. */
  def of(dataType: DataType, scope: Seq[Column]): Typed = {
    val call = function(dataType, scope)
    val filtered =
      if (oneIn(5)) call.copy(sql = s"${call.sql} FILTER (WHERE ${condition(scope, 1)})")
      else call
    dataType match {
      case Decimal => filtered.copy(sql = s"try_cast(${filtered.sql} AS ${Decimal.sql})")
      case IntegerType => filtered.copy(sql = s"CAST(${filtered.sql} AS INT)")
      // the order in which values are collected is chance
      case Ints => filtered.copy(sql = s"sort_array(${filtered.sql})")
      case _ => filtered
    }
  }

  private def function(dataType: DataType, scope: Seq[Column]): Typed = {
    def some(wanted: DataType): String = expressions.of(wanted, scope, 1).sql
    def distinct = if (oneIn(5)) "DISTINCT " else ""
    dataType match {
      case IntegerType if oneIn(2) =>
        Typed(s"sum($distinct${some(IntegerType)} % 100)", dataType)
      case LongType =>
        below(5) match {
          case 0 => Typed("count(*)", dataType)
          case 1 => Typed(s"count($distinct${some(one(keyTypes))})", dataType)
          case 2 => Typed(s"sum($distinct${some(IntegerType)} % 1000)", dataType)
          case 3 => Typed(s"count_if(${condition(scope, 1)})", dataType)
          case _ =>
            Typed(s"count(DISTINCT ${some(one(keyTypes))}, ${some(IntegerType)})", dataType)
        }
      case Decimal if oneIn(2) =>
        Typed(s"${word("sum", "avg")}($distinct${some(Decimal)})", dataType)
      case DoubleType if oneIn(2) =>
        val input = expressions.of(DoubleType, scope, 1)
        if (!input.exact) extremum(dataType, scope)
        else if (oneIn(2)) Typed(s"sum($distinct${input.sql})", dataType)
        else Typed(s"avg($distinct${input.sql})", dataType, exact = false)
      case DoubleType if oneIn(2) =>
        Typed(s"avg($distinct${some(IntegerType)} % 100)", dataType, exact = false)
      case BooleanType if oneIn(2) =>
        Typed(s"${word("bool_and", "bool_or")}(${condition(scope, 1)})", dataType)
      case StringType if oneIn(4) =>
        // of equal counts the least wins, whatever the order
        Typed(s"mode() WITHIN GROUP (ORDER BY ${some(StringType)})", dataType)
      case Ints =>
        Typed(s"${word("collect_list", "collect_set")}($distinct${some(IntegerType)})", dataType)
      case VariantType => Typed(s"CAST(max(${some(IntegerType)}) AS VARIANT)", dataType)
      case Types.Days | Types.Months if oneIn(2) =>
        Typed(s"sum($distinct${some(dataType)})", dataType)
      case _ => extremum(dataType, scope)
    }
  }

  private def extremum(dataType: DataType, scope: Seq[Column]): Typed = {
    val input = expressions.of(dataType, scope, 1)
    input.copy(sql = s"${word("min", "max")}(${input.sql})")
  }
}
