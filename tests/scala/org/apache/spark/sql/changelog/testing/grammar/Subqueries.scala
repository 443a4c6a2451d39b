// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing.grammar

import org.apache.spark.sql.types._

/** Draws subqueries that stand in expressions: IN, EXISTS and scalar ones. */
private[grammar] final class Subqueries(draw: Draw, queries: Queries) {
  import draw._

  /** A subquery as an expression, over `depth` more levels; none where they are used up. */
  def expression(dataType: DataType, scope: Seq[Column], depth: Int): Option[Typed] =
    if (depth < 0) None
    else
      dataType match {
        case BooleanType => Some(Typed(predicate(scope, depth), BooleanType))
        case _ => Some(scalar(dataType, scope, depth))
      }

  private def predicate(scope: Seq[Column], depth: Int): String = {
    val not = if (oneIn(2)) "NOT " else ""
    below(3) match {
      case 0 => s"(${not}EXISTS (${correlated(scope, depth).sql}))"
      case 1 if scope.size > 1 =>
        val columns = some(scope, 2)
        val inner = queries.query(depth, Some(columns.map(_.dataType)))
        s"((${columns.map(_.sql).mkString(", ")}) ${not}IN (${inner.sql}))"
      case _ =>
        val value =
          queries.expressions(0).of(one(scope :+ Column("1", IntegerType)).dataType, scope, 1)
        val inner =
          if (oneIn(3)) correlated(scope, depth, Some(Seq(value.dataType)))
          else queries.query(depth, Some(Seq(value.dataType)))
        s"(${value.sql} ${not}IN (${inner.sql}))"
    }
  }

  /** A query that names columns of `scope` in its condition. */
  def correlated(scope: Seq[Column], depth: Int, wanted: Option[Seq[DataType]] = None): Query = {
    val from = queries.from(depth)
    val inner = queries.expressions(0)
    val outputs =
      wanted.getOrElse(Seq(one(from.columns).dataType)).map(inner.of(_, from.columns, 1))
    queries.select(outputs, s" FROM ${from.sql} WHERE ${link(scope, from.columns)}")
  }

  /** A condition that ties inner columns to outer ones, mostly by equality. */
  private def link(scope: Seq[Column], columns: Seq[Column]): String = {
    val pairs = for (o <- scope; i <- columns if o.dataType == i.dataType) yield (o, i)
    if (pairs.isEmpty) queries.expressions(0).condition(columns, 1)
    else {
      val (outer, inner) = one(pairs)
      val operator = word("=", "=", "=", "=", "<=>", "<", "<>")
      val tie = s"${inner.sql} $operator ${outer.sql}"
      if (oneIn(2)) tie else s"$tie AND ${queries.expressions(0).condition(columns, 1)}"
    }
  }

  /** An aggregate without groups: it has one row, always. */
  private def scalar(dataType: DataType, scope: Seq[Column], depth: Int): Typed = {
    val from = queries.from(depth)
    val call = new Aggregates(draw, queries.expressions(0)).of(dataType, from.columns)
    val condition = if (oneIn(3)) "" else s" WHERE ${link(scope, from.columns)}"
    Typed(s"(SELECT ${call.sql} FROM ${from.sql}$condition)", dataType, call.exact)
  }
}
