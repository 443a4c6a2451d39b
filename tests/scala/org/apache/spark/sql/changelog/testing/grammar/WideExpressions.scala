// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing.grammar

import org.apache.spark.sql.types.{DataType, DateType, IntegerType, StringType, VariantType}

import org.apache.spark.sql.changelog.testing.grammar.Types.{BigDecimal, Days, Decimal, Months}

/** Draws what only the wide grammar has: values of more types, and conditions that may be unknown. */
private[grammar] final class WideExpressions(draw: Draw) {
  import draw._

  def literal(dataType: DataType): String = dataType match {
    case BigDecimal =>
      val most = "9" * 28 + "." + "9" * 10
      s"CAST(${word("0", s"${most}BD", s"-${most}BD", "0.0000000001BD", "1.5BD")} AS ${BigDecimal.sql})"
    case Days =>
      s"INTERVAL ${word("'0 00:00:00'", "'1 02:03:04.5'", "'-1 00:00:00'")} DAY TO SECOND"
    case Months => s"INTERVAL '${word("0-0", "1-2", "-1-0", "0-11")}' YEAR TO MONTH"
    case _ =>
      s"parse_json('${word("1", "null", "{\"a\": 1}", "{\"a\": [1, null], \"b\": \"x\"}")}')"
  }

  /** A value of one of the wide types. */
  def call(dataType: DataType, some: DataType => String): String = dataType match {
    case BigDecimal =>
      below(3) match {
        case 0 => s"try_cast(${some(Decimal)} AS ${BigDecimal.sql})"
        case 1 =>
          s"try_cast(try_add(${some(BigDecimal)}, ${some(BigDecimal)}) AS ${BigDecimal.sql})"
        // Spark negates decimals of 34 digits only
        case _ => s"greatest(${some(BigDecimal)}, ${some(BigDecimal)})"
      }
    case Days =>
      below(3) match {
        case 0 => s"make_dt_interval(0, 0, 0, ${some(IntegerType)} % 1000)"
        case 1 => s"CAST(${some(DateType)} - ${some(DateType)} AS ${Days.sql})"
        case _ => s"(- ${some(Days)})"
      }
    case Months =>
      below(2) match {
        case 0 => s"make_ym_interval(0, ${some(IntegerType)} % 100)"
        case _ => s"(- ${some(Months)})"
      }
    case _ =>
      below(2) match {
        case 0 => s"CAST(${some(IntegerType)} AS VARIANT)"
        case _ =>
          s"to_variant_object(named_struct('a', ${some(IntegerType)}, 'b', ${some(StringType)}))"
      }
  }

  /** A number or text made of a value of a wide type. */
  def use(dataType: DataType, some: DataType => String): String = dataType match {
    case IntegerType =>
      below(3) match {
        case 0 => s"try_variant_get(${some(VariantType)}, '$$.a', 'int')"
        case 1 => s"CAST(extract(MONTH FROM ${some(Months)}) AS INT)"
        case _ => s"CAST(extract(DAY FROM ${some(Days)}) AS INT)"
      }
    case StringType =>
      below(4) match {
        case 0 => s"to_json(${some(VariantType)})"
        case 1 => s"CAST(${some(Months)} AS STRING)"
        case 2 => s"CAST(${some(BigDecimal)} AS STRING)"
        case _ => s"CAST(CAST(${some(StringType)} AS ${word("CHAR", "VARCHAR")}(3)) AS STRING)"
      }
    case _ => s"try_cast(${some(BigDecimal)} AS ${Decimal.sql})"
  }

  /** A condition made of others, such that NULL must not be taken for false. */
  def logic(condition: String, another: () => String): String = below(7) match {
    case 0 => s"($condition IS ${word("", "NOT ")}${word("TRUE", "FALSE", "UNKNOWN")})"
    case 1 => s"($condition ${word("=", "<>", "<=>")} ${word("true", "false")})"
    case 2 => s"(NOT ($condition AND ${another()}))"
    case 3 => s"(NOT ($condition OR ${another()}))"
    case 4 => s"(NOT (NOT $condition))"
    case 5 => s"coalesce($condition, ${another()})"
    case _ => s"($condition ${word("=", "<>", "<=>")} ${another()})"
  }
}
