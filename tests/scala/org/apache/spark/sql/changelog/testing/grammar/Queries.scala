// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing.grammar

import org.apache.spark.sql.types._

/**
 * Draws queries over tables that all have the columns of `table`.
 *
 * Left out is what Spark answers by chance: limits and window functions without a full order,
 * `first`, `any_value`, samples; and what it answers only now: `current_date`, `rand`.
 */
private[grammar] final class Queries(draw: Draw, tables: Seq[String], table: Seq[Column]) {
  import draw._

  /** Common tables that the query being drawn may name, by name. */
  private var common = Seq.empty[(String, Seq[Column])]

  /** A query, nested up to `depth` queries deep, with columns of the wanted types, if given. */
  def query(depth: Int, wanted: Option[Seq[DataType]] = None, outer: Seq[Column] = Nil): Query = {
    val types = wanted.getOrElse(shape())
    if (depth <= 0 || types.contains(VariantType)) plain(depth.max(0), types, outer)
    else
      weighted(
        6 -> (() => plain(depth, types, outer)),
        5 -> (() => grouped(depth, types, outer)),
        1 -> (() => distinct(depth, types, outer)),
        2 -> (() => setOperation(depth, types, outer)),
        2 -> (() => windowed(depth, types)),
        1 -> (() => ranked(depth, types)),
        1 -> (() => limited(depth, types)),
        1 -> (() => withCommonTable(depth, types)),
        1 -> (() => new Reshapes(draw, this).query(depth, types)))
  }

  private def shape(): Seq[DataType] = Seq.fill(1 + below(3))(one(allTypes))

  /** Draws expressions that may hold subqueries nested up to `depth` deep. */
  def expressions(depth: Int): Expressions =
    new Expressions(
      draw,
      (dataType, scope) => {
        val left = if (depth < 1 && takesSubquery()) 0 else depth - 1
        subqueries.expression(dataType, scope, left)
      })

  private val subqueries = new Subqueries(draw, this)
  private val sources = new Sources(draw, this)

  def from(depth: Int): From = sources.from(depth)

  /** A table, or a common table, under a new name. */
  def named(): From = {
    val alias = name("r")
    if (common.nonEmpty && oneIn(2)) {
      val (known, columns) = one(common)
      From(s"$known AS $alias", columns.map(c => c.copy(sql = s"$alias.${c.sql}")))
    } else tableAs(alias)
  }

  private def tableAs(alias: String): From =
    From(s"${one(tables)} AS $alias", table.map(c => c.copy(sql = s"$alias.${c.sql}")))

  def where(scope: Seq[Column], expressions: Expressions): String =
    if (oneIn(2)) "" else s" WHERE ${expressions.condition(scope)}"

  /** The query made of `rest` and these output columns. */
  def select(outputs: Seq[Typed], rest: String, distinct: Boolean = false): Query = {
    val columns = outputs.map(typed => Column(name("c"), typed.dataType, typed.exact))
    val list = outputs.zip(columns).map { case (typed, column) =>
      s"${typed.sql} AS ${column.sql}"
    }
    val word = if (distinct) "DISTINCT " else ""
    Query(s"SELECT $word${list.mkString(", ")}$rest", columns)
  }

  private def plain(depth: Int, types: Seq[DataType], outer: Seq[Column]): Query = {
    val from = this.from(depth)
    val scope = from.columns ++ outer
    val inner = expressions(depth)
    select(types.map(inner.of(_, scope)), s" FROM ${from.sql}${where(scope, inner)}")
  }

  private def distinct(depth: Int, types: Seq[DataType], outer: Seq[Column]): Query = {
    val from = this.from(depth)
    val inner = expressions(0)
    select(
      types.map(inner.of(_, from.columns, 1)),
      s" FROM ${from.sql}${where(from.columns ++ outer, inner)}",
      distinct = true)
  }

  private def grouped(depth: Int, types: Seq[DataType], outer: Seq[Column]): Query = {
    val from = this.from(depth)
    val inner = expressions(if (oneIn(4)) depth else 0)
    val aggregates = new Aggregates(draw, inner)
    val groups = types
      .filter(_ != VariantType)
      .filter(_ => oneIn(2))
      .distinct
      .map(inner.of(_, from.columns, 1))
    val outputs = types.map { dataType =>
      groups.find(_.dataType == dataType).getOrElse(aggregates.of(dataType, from.columns))
    }
    // a constant would be the position of a column
    val list = groups.map(g => if (g.sql.contains("r")) g.sql else s"(${g.sql})")
    val groupBy = list match {
      case Nil => ""
      case one +: Nil => s" GROUP BY $one"
      case several =>
        val all = several.mkString(", ")
        below(8) match {
          case 0 => s" GROUP BY CUBE ($all)"
          case 1 => s" GROUP BY ROLLUP ($all)"
          case 2 => s" GROUP BY GROUPING SETS (($all), (${several.head}), ())"
          case _ => s" GROUP BY $all"
        }
    }
    val having =
      if (!oneIn(4)) ""
      else {
        val aggregate = aggregates.of(one(keyTypes), from.columns)
        s" HAVING ${expressions(0).condition(Seq(Column(aggregate.sql, aggregate.dataType)), 1)}"
      }
    val condition = where(from.columns ++ outer, expressions(depth))
    select(outputs, s" FROM ${from.sql}$condition$groupBy$having")
  }

  private def setOperation(depth: Int, types: Seq[DataType], outer: Seq[Column]): Query = {
    val left = query(depth - 1, Some(types), outer)
    val right = query(depth - 1, Some(types), outer)
    val operator = word(
      "UNION ALL",
      "UNION ALL",
      "UNION",
      "INTERSECT",
      "INTERSECT ALL",
      "EXCEPT",
      "EXCEPT ALL")
    val columns = left.columns.zip(right.columns).map { case (l, r) =>
      l.copy(exact = l.exact && r.exact)
    }
    Query(s"(${left.sql}) $operator (${right.sql})", columns)
  }

  private def windowed(depth: Int, types: Seq[DataType]): Query = {
    val from = this.from(depth - 1)
    val windows = new Windows(draw, expressions(0))
    val at = below(types.size)
    val outputs = types.zipWithIndex.map { case (dataType, index) =>
      if (index == at) windows.of(dataType, from.columns)
      else expressions(0).of(dataType, from.columns, 1)
    }
    select(outputs, s" FROM ${from.sql}${where(from.columns, expressions(0))}")
  }

  /** The first rows of each partition. */
  private def ranked(depth: Int, types: Seq[DataType]): Query = {
    val from = this.from(depth - 1)
    val rank = new Windows(draw, expressions(0)).rank(from.columns)
    val inner =
      select(types.map(expressions(0).of(_, from.columns, 1)) :+ rank, s" FROM ${from.sql}")
    val (kept, place) = (inner.columns.init, inner.columns.last)
    val shown = if (types.last == IntegerType && oneIn(2)) Seq(place) else Nil
    val columns = kept.dropRight(shown.size) ++ shown
    val bound = word("= 1", "<= 2", "< 3", "BETWEEN 2 AND 3")
    val alias = name("r")
    select(
      columns.map(c => Typed(s"$alias.${c.sql}", c.dataType, c.exact)),
      s" FROM (${inner.sql}) AS $alias WHERE $alias.${place.sql} $bound")
  }

  /** The first rows of all; rows that no column tells apart may stand for each other. */
  private def limited(depth: Int, types: Seq[DataType]): Query = {
    // what decides is shown or not
    val hidden = if (oneIn(2)) types.take(1) else Nil
    val query = this.query(depth - 1, Some(hidden ++ types))
    val order = query.columns.map(_.sql + word("", " DESC", " NULLS LAST")).mkString(", ")
    val offset = if (oneIn(3)) s" OFFSET ${below(3)}" else ""
    val shown = query.columns.drop(hidden.size)
    Query(
      s"SELECT ${shown.map(_.sql).mkString(", ")} FROM (${query.sql}) ORDER BY $order LIMIT ${1 + below(4)}$offset",
      shown)
  }

  /** A query that may name another one, several times. */
  private def withCommonTable(depth: Int, types: Seq[DataType]): Query = {
    val known = common
    val shared = query(depth - 1)
    val alias = name("w")
    common = common :+ (alias -> shared.columns)
    val rest = query(depth - 1, Some(types))
    common = known
    rest.copy(sql = s"WITH $alias AS (${shared.sql}) ${rest.sql}")
  }
}
