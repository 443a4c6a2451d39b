// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing.grammar

import org.apache.spark.sql.types._

/**
 * A column that an expression may name.
 *
 * @param sql
 *   how it is named, with the alias of its relation
 * @param exact
 *   whether sums of it do not depend on the order of rows
 */
private[grammar] final case class Column(sql: String, dataType: DataType, exact: Boolean = true)

/** An expression as text, with its type. */
private[grammar] final case class Typed(sql: String, dataType: DataType, exact: Boolean = true)

/** Something that stands after `FROM`, with the columns it brings. */
private[grammar] final case class From(sql: String, columns: Seq[Column])

/** A query, with the names of its columns, which occur in no other query. */
private[grammar] final case class Query(sql: String, columns: Seq[Column]) {
  def types: Seq[DataType] = columns.map(_.dataType)
}

/** The few types that random queries know; results of other types are cast to one of them. */
private[grammar] object Types {
  val Decimal: DataType = DecimalType(12, 2)
  val Ints: DataType = ArrayType(IntegerType)

  /** Types of columns of all tables. */
  val all: Seq[DataType] =
    Seq(IntegerType, LongType, Decimal, DoubleType, StringType, DateType, BooleanType, Ints)

  val BigDecimal: DataType = DecimalType(38, 10)
  val Days: DataType = DayTimeIntervalType()
  val Months: DataType = YearMonthIntervalType()

  /** Types that only the wide grammar draws; values of them are computed, no table of its has any. */
  val wide: Seq[DataType] = Seq(BigDecimal, Days, Months, VariantType)

  /** Texts of which several are one; only the widest grammar has them. */
  val collated: Seq[DataType] = Seq(StringType("UTF8_LCASE"), StringType("UNICODE_CI"))

  def isNumeric(dataType: DataType): Boolean = dataType.isInstanceOf[NumericType]
}
