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
      case 0 if isWidest && oneIn(2) => s"(${not}EXISTS (${limited(scope, depth)}))"
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

  /** A query that names columns of `scope`. */
  def correlated(scope: Seq[Column], depth: Int, wanted: Option[Seq[DataType]] = None): Query =
    if (isWide && oneIn(2)) varied(scope, depth, wanted)
    else tied(scope, depth, wanted)

  /** A query of which it doesn't matter which rows there are, but whether there are any. */
  private def limited(scope: Seq[Column], depth: Int): String = {
    val query = tied(scope, depth, None)
    val sql =
      if (oneIn(2) || query.types.contains(VariantType)) query.sql
      else query.sql.replaceFirst("SELECT", "SELECT DISTINCT")
    s"$sql LIMIT ${1 + below(2)}${word("", "", " OFFSET 1", " OFFSET 2")}"
  }

  /** One of the forms that Spark must take apart to join it. */
  private def varied(scope: Seq[Column], depth: Int, wanted: Option[Seq[DataType]]): Query = {
    val query = tied(scope, depth, wanted)
    below(6) match {
      case 0 => query.copy(sql = query.sql.replaceFirst("SELECT", "SELECT DISTINCT"))
      case 1 =>
        val order = query.columns.map(_.sql + word("", " DESC", " NULLS LAST")).mkString(", ")
        query.copy(sql = s"${query.sql} ORDER BY $order${word("", s" LIMIT ${1 + below(2)}")}" +
          word("", " OFFSET 1"))
      case 2 =>
        val other =
          if (oneIn(2)) tied(scope, depth, Some(query.types))
          else queries.query(0, Some(query.types))
        val operator = word("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "EXCEPT ALL")
        query.copy(sql = s"(${query.sql}) $operator (${other.sql})")
      case 3 =>
        val table = name("w")
        query.copy(sql = s"WITH $table AS (${query.sql}) SELECT * FROM $table")
      case 4 => counted(scope, depth, query.types)
      case _ =>
        val from = queries.from(0)
        val inside = predicate(if (oneIn(3)) from.columns ++ scope else from.columns, 0)
        val outputs = query.types.map(queries.expressions(0).of(_, from.columns, 1))
        queries.select(
          outputs,
          s" FROM ${from.sql} WHERE ${link(scope, from.columns)} ${word("AND", "OR")} $inside")
    }
  }

  /** Aggregates, which have a row where nothing is found, or one for each group. */
  private def counted(scope: Seq[Column], depth: Int, types: Seq[DataType]): Query = {
    val from = queries.from(depth)
    val aggregates = new Aggregates(draw, queries.expressions(0))
    val outputs = types.map(aggregates.of(_, from.columns))
    val groups = if (oneIn(2)) "" else s" GROUP BY ${one(from.columns).sql}"
    val having = if (oneIn(2)) "" else s" HAVING count(*) ${word(">", "=", "<")} ${below(3)}"
    queries.select(outputs, s" FROM ${from.sql} WHERE ${link(scope, from.columns)}$groups$having")
  }

  /** A query that names columns of `scope` in its condition. */
  private def tied(scope: Seq[Column], depth: Int, wanted: Option[Seq[DataType]]): Query = {
    val from = queries.from(depth)
    val inner = queries.expressions(0)
    val outputs =
      wanted.getOrElse(Seq(one(from.columns).dataType)).map(inner.of(_, from.columns, 1))
    queries.select(outputs, s" FROM ${from.sql} WHERE ${link(scope, from.columns)}")
  }

  /** A condition that ties inner columns to outer ones, mostly by equality. */
  private def link(scope: Seq[Column], columns: Seq[Column]): String = {
    val pairs =
      for (o <- scope; i <- columns if o.dataType == i.dataType && o.dataType != VariantType)
        yield (o, i)
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
    if (isWide && dataType != VariantType && oneIn(3)) {
      val value = queries.expressions(0).of(dataType, from.columns, 1)
      val order = s"ORDER BY 1${word("", " DESC", " NULLS LAST")} LIMIT 1${word("", " OFFSET 1")}"
      return Typed(
        s"(SELECT ${value.sql} FROM ${from.sql}$condition $order)",
        dataType,
        value.exact)
    }
    Typed(s"(SELECT ${call.sql} FROM ${from.sql}$condition)", dataType, call.exact)
  }
}
