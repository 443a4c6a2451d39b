// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing.grammar

import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.testing.grammar.Types.{Decimal, Ints}

/**
 * Draws expressions of a wanted type over given columns.
 *
 * None fails in ANSI mode, and none depends on what Spark leaves open: a DOUBLE never becomes text,
 * as which of -0.0 and 0.0 stands for both is chance; sums of DOUBLEs are of numbers with few
 * digits, so that their order does not matter.
 *
 * `twice(INT)` is a SQL function. Maps stand within expressions only, with keys that differ and are
 * not NULL.
 *
 * @param subquery
 *   draws a subquery as an expression of a type, if one may stand here
 */
private[grammar] final class Expressions(
    draw: Draw,
    subquery: (DataType, Seq[Column]) => Option[Typed]) {
  import draw._

  private val wide = new WideExpressions(draw)
  private val collated = new CollatedExpressions(draw)

  /** An expression of type `dataType`, nested up to `depth` calls deep. */
  def of(dataType: DataType, scope: Seq[Column], depth: Int = 2): Typed = {
    val columns = scope.filter(_.dataType == dataType)
    if (depth <= 0 || (columns.nonEmpty && below(10) < 5)) leaf(dataType, columns)
    else
      weighted(
        6 -> (() => call(dataType, scope, depth - 1)),
        2 -> (() => general(dataType, scope, depth - 1)),
        1 -> (() => subquery(dataType, scope).getOrElse(leaf(dataType, columns))))
  }

  private def leaf(dataType: DataType, columns: Seq[Column]): Typed =
    if (columns.nonEmpty && !oneIn(8)) {
      val column = one(columns)
      Typed(column.sql, dataType, column.exact)
    } else Typed(literal(dataType), dataType)

  def literal(dataType: DataType): String =
    if (oneIn(12)) s"CAST(NULL AS ${dataType.sql})"
    else
      dataType match {
        case IntegerType => word("0", "1", "2", "3", "-1")
        case LongType => word("0L", "1L", "5L", "-2L")
        case Decimal => s"CAST(${word("0", "1.5", "-2.25", "10")} AS ${Decimal.sql})"
        case DoubleType => word("0D", "-0D", "1.5D", "double('NaN')", "double('Infinity')")
        case StringType => word("''", "'a'", "'b'", "'ab'", "'Z'")
        case DateType => word("DATE '2024-02-29'", "DATE '1969-12-31'", "DATE '2024-03-01'")
        case BooleanType => word("true", "false")
        case other if Types.wide.contains(other) => wide.literal(other)
        case text if Types.collated.contains(text) =>
          s"CAST(${word("''", "'a'", "'A'", "'b'", "'aB'")} AS ${text.sql})"
        case _ =>
          word("array()", "array(1, 2)", "array(NULL, 3)", "array(1)") match {
            case "array()" => s"CAST(array() AS ${Ints.sql})"
            case other => other
          }
      }

  /** A map of numbers to values of a type. */
  private def map(dataType: DataType, scope: Seq[Column], depth: Int): Typed = {
    val (x, y) = (of(dataType, scope, depth), of(dataType, scope, depth))
    def key = s"coalesce(${of(IntegerType, scope, depth).sql}, 0)"
    val entries = s"map(1, ${x.sql}, 2, ${y.sql})"
    val sql = below(5) match {
      case 0 => s"map($key, ${x.sql})"
      case 1 => s"map_from_arrays(array(0, 1), array(${x.sql}, ${y.sql}))"
      case 2 => s"map_filter($entries, (k, v) -> k <> $key)"
      case 3 => s"transform_keys($entries, (k, v) -> k + pmod($key, 3))"
      case _ => entries
    }
    Typed(sql, dataType, x.exact && y.exact)
  }

  /** What there is for all types. */
  private def general(dataType: DataType, scope: Seq[Column], depth: Int): Typed = {
    val (x, y) = (of(dataType, scope, depth), of(dataType, scope, depth))
    val exact = x.exact && y.exact
    val sql = below(6) match {
      case 0 => s"CASE WHEN ${condition(scope, depth)} THEN ${x.sql} ELSE ${y.sql} END"
      case 1 => s"CASE WHEN ${condition(scope, depth)} THEN ${x.sql} END"
      case 2 => s"coalesce(${x.sql}, ${y.sql})"
      case 3 => s"if(${condition(scope, depth)}, ${x.sql}, ${y.sql})"
      case 4 => s"nullif(${x.sql}, ${y.sql})"
      case _ =>
        val looked = map(dataType, scope, depth)
        return looked.copy(sql =
          s"try_element_at(${looked.sql}, ${of(IntegerType, scope, depth).sql})")
    }
    Typed(sql, dataType, exact)
  }

  private def call(dataType: DataType, scope: Seq[Column], depth: Int): Typed = {
    def some(wanted: DataType): String = of(wanted, scope, depth).sql
    val sql = dataType match {
      case wider if Types.wide.contains(wider) => wide.call(wider, some)
      case text if Types.collated.contains(text) => collated.call(text, some)
      case IntegerType | StringType | BooleanType if isWidest && oneIn(4) =>
        collated.use(dataType, some)
      case IntegerType | StringType | Decimal if isWide && oneIn(4) => wide.use(dataType, some)
      case IntegerType =>
        below(10) match {
          case 0 => s"(${some(IntegerType)} % 100 + ${some(IntegerType)} % 100)"
          case 1 => s"length(${some(StringType)})"
          case 2 => s"year(${some(DateType)})"
          case 3 => s"size(${some(Ints)})"
          case 4 => s"CAST(${some(BooleanType)} AS INT)"
          case 5 => s"get(${some(Ints)}, 0)"
          case 6 => s"pmod(${some(IntegerType)}, 3)"
          case 7 => s"aggregate(${some(Ints)}, 0, (sum, e) -> sum + coalesce(e, 1) % 10)"
          case 8 => s"twice(${some(IntegerType)} % 100)"
          case _ => s"(${some(IntegerType)} % 50 - ${some(IntegerType)} % 50)"
        }
      case LongType =>
        below(3) match {
          case 0 => s"CAST(${some(IntegerType)} AS BIGINT)"
          case 1 => s"(${some(LongType)} % 1000 + ${some(IntegerType)} % 100)"
          case _ => s"(${some(LongType)} % 7)"
        }
      case Decimal =>
        below(3) match {
          case 0 => s"try_cast(${some(Decimal)} + ${some(Decimal)} AS ${Decimal.sql})"
          case 1 => s"try_cast(${some(Decimal)} * 2 AS ${Decimal.sql})"
          case _ => s"CAST(${some(IntegerType)} % 1000 AS ${Decimal.sql})"
        }
      case DoubleType => return double(scope, depth)
      case StringType =>
        below(7) match {
          case 0 => s"upper(${some(StringType)})"
          case 1 => s"concat(${some(StringType)}, '-', ${some(StringType)})"
          case 2 => s"substring(${some(StringType)}, 1, 1)"
          case 3 => s"CAST(${some(IntegerType)} AS STRING)"
          case 4 => s"CAST(${some(DateType)} AS STRING)"
          case 5 => s"CAST(${some(Decimal)} AS STRING)"
          case _ => s"concat_ws(',', transform(${some(Ints)}, e -> CAST(e AS STRING)))"
        }
      case DateType =>
        below(3) match {
          case 0 => s"date_add(${some(DateType)}, 1)"
          case 1 => s"last_day(${some(DateType)})"
          case _ => s"greatest(${some(DateType)}, ${some(DateType)})"
        }
      case BooleanType => condition(scope, depth)
      case _ =>
        def entries = map(IntegerType, scope, depth).sql
        below(10) match {
          case 0 => s"array(${some(IntegerType)}, ${some(IntegerType)})"
          case 1 => s"transform(${some(Ints)}, e -> e % 10 + ${some(IntegerType)} % 10)"
          case 2 => s"filter(${some(Ints)}, e -> e > ${some(IntegerType)})"
          case 3 => s"array_distinct(${some(Ints)})"
          case 4 => s"sort_array(${some(Ints)})"
          case 5 => s"concat(${some(Ints)}, ${some(Ints)})"
          case 6 => s"slice(${some(Ints)}, 1, 1)"
          case 7 => s"map_keys($entries)"
          case 8 => s"map_values(transform_values($entries, (k, v) -> v % 10 + k % 10))"
          case _ => s"zip_with(${some(Ints)}, ${some(Ints)}, (p, q) -> coalesce(p, q))"
        }
    }
    Typed(sql, dataType)
  }

  private def double(scope: Seq[Column], depth: Int): Typed = {
    val x = of(DoubleType, scope, depth)
    below(5) match {
      case 0 => x.copy(sql = s"(- ${x.sql})")
      case 1 => x.copy(sql = s"abs(${x.sql})")
      case 2 => x.copy(sql = s"(${x.sql} * 2)")
      case 3 => Typed(s"CAST(${of(IntegerType, scope, depth).sql} AS DOUBLE)", DoubleType)
      case _ =>
        val y = of(DoubleType, scope, depth)
        Typed(s"nanvl(${x.sql}, ${y.sql})", DoubleType, x.exact && y.exact)
    }
  }

  /** A condition, with parentheses where it needs them. */
  def condition(scope: Seq[Column], depth: Int = 2): String = {
    def inner = condition(scope, depth - 1)
    def some(wanted: DataType): String = of(wanted, scope, depth - 1).sql
    val booleans = scope.filter(_.dataType == BooleanType)
    if (depth > 0 && isWide && oneIn(4)) wide.logic(inner, () => inner)
    else if (depth > 0 && oneIn(3)) {
      below(9) match {
        case 0 | 1 => s"($inner AND $inner)"
        case 2 | 3 => s"($inner OR $inner)"
        case 4 => s"(NOT $inner)"
        case 5 => s"exists(${some(Ints)}, e -> e > ${some(IntegerType)})"
        case 6 => s"array_contains(${some(Ints)}, coalesce(${some(IntegerType)}, 1))"
        case 7 =>
          val entries = map(one(keyTypes), scope, depth - 1).sql
          s"map_contains_key($entries, coalesce(${some(IntegerType)}, 1))"
        case _ => subquery(BooleanType, scope).map(_.sql).getOrElse(inner)
      }
    } else if (booleans.nonEmpty && oneIn(6)) one(booleans).sql
    else comparison(scope, depth)
  }

  private def comparison(scope: Seq[Column], depth: Int): String = {
    val dataType =
      if (scope.nonEmpty && !oneIn(4)) one(scope).dataType else one(keyTypes)
    // texts that differ in case only are one in some collations
    val collates = isWide && dataType == StringType && oneIn(4)
    def some: String = {
      val sql = of(dataType, scope, depth - 1).sql
      if (collates) s"collate($sql, 'UTF8_LCASE')" else sql
    }
    if (dataType == VariantType) return s"($some IS ${word("", "NOT ")}NULL)"
    below(9) match {
      case 0 => s"($some IS NULL)"
      case 1 => s"($some IS NOT NULL)"
      case 2 => s"($some IN (${literal(dataType)}, ${literal(dataType)}, $some))"
      case 3 => s"($some BETWEEN $some AND $some)"
      case 4 if dataType == StringType => s"($some LIKE '%${word("a", "b", "-")}%')"
      case _ =>
        val operator = word("=", "=", "<>", "<", "<=", ">", ">=", "<=>", "IS DISTINCT FROM")
        s"($some $operator $some)"
    }
  }
}
