// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.sql.{Date, Timestamp}

import scala.util.Random

import org.apache.spark.sql.types._

/**
 * A column of a random query.
 *
 * @param exact
 *   whether sums of it do not depend on the order of rows
 */
final case class RandomColumn(name: String, dataType: DataType, exact: Boolean = true)

/**
 * A random query, or a table.
 *
 * @param sql
 *   what stands after `FROM`
 * @param key
 *   columns that identify a row; empty if there are none
 */
final case class RandomRelation(sql: String, columns: Seq[RandomColumn], key: Seq[String] = Nil)

/** Draws queries of aggregates over aggregates, with whatever may stand between them. */
final class RandomQuery(random: Random, values: RandomValues) {
  private val expressions = new RandomExpressions(random, values)
  import expressions._

  /** A query over some of `tables`, which have the same columns. */
  def apply(tables: Seq[RandomRelation]): RandomRelation = {
    val source =
      if (tables.size > 1) union(tables.map(filtered(_, 3))) else filtered(tables.head, 3)
    val depth = Seq(0, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4)(random.nextInt(12))
    val rows = if (random.nextInt(8) == 0) exploded(source) else source
    val result = (1 to depth).foldLeft(rows) { (input, level) =>
      val grouped = aggregate(input)
      random.nextInt(8) match {
        case 0 if level < 3 => union(Seq(filtered(grouped, 1), filtered(grouped, 1)))
        case 1 => projected(filtered(grouped, 2))
        case _ => filtered(grouped, 4)
      }
    }
    result.copy(sql = s"SELECT * FROM ${result.sql}")
  }

  private def aggregate(input: RandomRelation): RandomRelation = {
    val groups = random.shuffle(input.columns).take(Seq(0, 1, 1, 1, 2, 2, 3)(random.nextInt(7)))
    val groupings = groups.map(group)
    val isDistinct = groups.nonEmpty && random.nextInt(12) == 0
    val calls = if (isDistinct) Nil else Seq.fill(1 + random.nextInt(4))(call(input.columns))
    val outputs = (groupings ++ calls).zipWithIndex.map { case (column, index) =>
      RandomColumn(s"c${index + 1}", column.dataType, column.exact)
    }
    val select = (groupings ++ calls).zip(outputs).map { case (column, output) =>
      s"${column.sql} AS ${output.name}"
    }
    val distinct = if (isDistinct) "DISTINCT " else ""
    val isCube = !isDistinct && groups.size > 1 && random.nextInt(6) == 0
    val groupBy = groupings.map(_.sql).mkString(", ") match {
      case list if groups.isEmpty || isDistinct => list.take(0)
      case list if isCube && random.nextBoolean() => s" GROUP BY CUBE ($list)"
      case list if isCube => s" GROUP BY ROLLUP ($list)"
      case list => s" GROUP BY $list"
    }
    val having =
      if (isDistinct || random.nextInt(5) > 0) ""
      else s" HAVING ${expressions.having(input.columns)}"
    RandomRelation(
      s"(SELECT $distinct${select.mkString(", ")} FROM ${input.sql}$groupBy$having)",
      outputs,
      if (isCube) Nil else outputs.take(groups.size).map(_.name))
  }

  /** Each row twice, with two values of one column. */
  private def exploded(input: RandomRelation): RandomRelation = {
    val column = pick(input.columns)
    RandomRelation(
      s"(SELECT * FROM ${input.sql} LATERAL VIEW explode(array(${column.name}, NULL)) AS exploded)",
      input.columns :+ column.copy(name = "exploded"))
  }

  /** With a condition, in one of `times` cases. */
  private def filtered(input: RandomRelation, times: Int): RandomRelation =
    if (random.nextInt(times) > 0) input
    else {
      input.copy(sql = s"(SELECT * FROM ${input.sql} WHERE ${condition(pick(input.columns))})")
    }

  /** Some of the columns, and a computed one. */
  private def projected(input: RandomRelation): RandomRelation = {
    val kept = random.shuffle(input.columns).take(1 + random.nextInt(input.columns.size))
    val computed = group(pick(input.columns))
    val columns = kept :+ RandomColumn("computed", computed.dataType, computed.exact)
    RandomRelation(
      s"(SELECT ${(kept.map(_.name) :+ s"${computed.sql} AS computed").mkString(", ")} FROM ${input.sql})",
      columns,
      if (input.key.forall(kept.map(_.name).contains)) input.key else Nil)
  }

  private def union(inputs: Seq[RandomRelation]): RandomRelation = RandomRelation(
    inputs.map(input => s"SELECT * FROM ${input.sql}").mkString("(", " UNION ALL ", ")"),
    inputs.head.columns)

  private def pick[T](choices: Seq[T]): T = choices(random.nextInt(choices.size))
}

/** Draws expressions over given columns. */
private[testing] final class RandomExpressions(random: Random, values: RandomValues) {
  import RandomExpressions._

  /** An expression to group by; its values are those of few columns. */
  def group(column: RandomColumn): Typed = {
    val RandomColumn(name, dataType, exact) = column
    if (random.nextInt(10) < 7) Typed(name, dataType, exact)
    else {
      dataType match {
        case _: IntegralType =>
          Typed(s"$name % 3", if (dataType == LongType) LongType else IntegerType)
        case StringType if random.nextBoolean() => Typed(s"upper($name)", StringType)
        case StringType => Typed(s"length($name)", IntegerType)
        case DateType => Typed(s"year($name)", IntegerType)
        case TimestampType => Typed(s"CAST($name AS DATE)", DateType)
        case BooleanType => Typed(s"NOT $name", BooleanType)
        case DoubleType | FloatType => Typed(s"$name > 0", BooleanType)
        case _ => Typed(s"$name IS NULL", BooleanType)
      }
    }
  }

  /** A call of an aggregate function, maybe with a filter, maybe in an expression. */
  def call(columns: Seq[RandomColumn]): Typed = {
    val plain =
      if (random.nextInt(4) > 0) function(columns(random.nextInt(columns.size)))
      else signed(columns)
    val filtered =
      if (random.nextInt(4) > 0) plain
      else {
        val condition = this.condition(columns(random.nextInt(columns.size)))
        plain.copy(sql = s"${plain.sql} FILTER (WHERE $condition)")
      }
    val result = filtered.copy(sql = filtered.result)
    random.nextInt(12) match {
      case 0 => result.copy(sql = s"CASE WHEN count(*) > 1 THEN ${result.sql} END")
      case 1 => result.copy(sql = s"coalesce(${result.sql}, ${plain.result})")
      case _ => result
    }
  }

  private def function(column: RandomColumn): Typed = {
    val RandomColumn(name, dataType, exact) = column
    val numeric = dataType.isInstanceOf[NumericType] && exact
    random.nextInt(if (numeric) 10 else 6) match {
      case 0 => Typed("count(*)", LongType)
      case 1 => Typed(s"count($name)", LongType)
      case 2 | 3 => Typed(s"min($name)", dataType, exact)
      case 4 | 5 => Typed(s"max($name)", dataType, exact)
      case choice =>
        dataType match {
          case DecimalType.Fixed(_, scale) if choice < 8 && scale <= 10 =>
            Typed(s"avg($name)", average(dataType))
          case DecimalType.Fixed(precision, scale) =>
            Typed(s"sum($name)", DecimalType(math.min(precision + 10, 38), scale))
          case _ if choice < 8 => Typed(s"avg($name)", DoubleType, exact = false)
          case _: IntegralType => Typed(s"sum($name)", LongType)
          case _ => Typed(s"sum($name)", DoubleType)
        }
    }
  }

  /** A function of moments, bits or truth, where there are columns for it. */
  private def signed(columns: Seq[RandomColumn]): Typed = {
    def any = columns(random.nextInt(columns.size))
    val integers = columns.filter(_.dataType.isInstanceOf[IntegralType])
    val numbers = columns.filter { column =>
      column.exact && (column.dataType match {
        case decimal: DecimalType => decimal.scale <= 3
        case other => other.isInstanceOf[NumericType]
      })
    }
    random.nextInt(5) match {
      case 0 => Typed(s"${oneOf("bool_and", "bool_or")}(${condition(any)})", BooleanType)
      case 1 => Typed(s"count_if(${condition(any)})", LongType)
      case 2 if integers.nonEmpty =>
        val column = integers(random.nextInt(integers.size))
        Typed(s"${oneOf("bit_and", "bit_or", "bit_xor")}(${column.name})", column.dataType)
      case _ if numbers.nonEmpty => moment(numbers)
      case _ => function(any)
    }
  }

  /**
   * A function of moments. Batch Spark's last digits depend on the order of rows, so numbers are
   * kept small, and the result is cut off where no simple fraction is.
   */
  private def moment(columns: Seq[RandomColumn]): Typed = {
    def number = s"${columns(random.nextInt(columns.size)).name} % 7"
    val moments = Seq("var_pop", "var_samp", "stddev_pop", "stddev_samp", "skewness", "kurtosis")
    // in ANSI mode the correlation of equal values is a failure
    val correlation = if (values.wraps) Seq("corr") else Nil
    val ofPairs = correlation ++
      Seq("covar_pop", "covar_samp") ++
      Seq("avgx", "avgy", "sxx", "syy", "sxy", "r2", "slope", "intercept").map("regr_" + _)
    val call =
      if (random.nextBoolean()) s"${oneOf(moments: _*)}($number)"
      else s"${oneOf(ofPairs: _*)}($number, $number)"
    Typed(call, LongType, cutOff = true)
  }

  private def oneOf(choices: String*): String = choices(random.nextInt(choices.size))

  private def average(dataType: DataType): DataType = dataType match {
    case DecimalType.Fixed(precision, scale) =>
      DecimalType(math.min(precision + 4, 38), math.min(scale + 4, 38))
    case _ => DoubleType
  }

  /** A condition on groups. */
  def having(columns: Seq[RandomColumn]): String = {
    val column = columns(random.nextInt(columns.size)).name
    random.nextInt(3) match {
      case 0 => "count(*) > 1"
      case 1 => s"max($column) IS NOT NULL"
      case _ => s"count($column) < 3"
    }
  }

  /** A condition on rows. */
  def condition(column: RandomColumn): String = column.dataType match {
    case BooleanType if random.nextBoolean() => column.name
    case BinaryType => s"${column.name} IS NOT NULL"
    case _ if random.nextInt(3) == 0 => s"${column.name} IS NOT NULL"
    case dataType =>
      val comparison = Seq("=", "<>", "<>", "<", "<=", ">", ">=", "<=>")(random.nextInt(8))
      s"${column.name} $comparison ${literal(dataType)}"
  }

  private def literal(dataType: DataType): String = {
    val choices = dataType match {
      case _: DecimalType => Seq("0", "1", "1.5")
      case _ => values.palette(dataType)
    }
    val text = choices(random.nextInt(choices.size)) match {
      case date: Date => date.toString
      case time: Timestamp => time.toLocalDateTime.toString
      case other => other.toString
    }
    s"CAST('$text' AS ${dataType.sql})"
  }
}

private[testing] object RandomExpressions {

  /**
   * An expression with its type.
   *
   * @param cutOff
   *   whether it is a `DOUBLE` of which only an integer is to be seen
   */
  final case class Typed(
      sql: String,
      dataType: DataType,
      exact: Boolean = true,
      cutOff: Boolean = false) {
    def result: String = if (cutOff) s"floor(1000 * nanvl($sql, -9) + 0.137D)" else sql
  }
}
