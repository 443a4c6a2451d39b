// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing.grammar

import org.apache.spark.sql.types._

/** Draws queries that turn rows into columns or columns into rows, or that are written as pipes. */
private[grammar] final class Reshapes(draw: Draw, queries: Queries) {
  import draw._

  /** A query with columns of these types. */
  def query(depth: Int, types: Seq[DataType]): Query = {
    val from = below(3) match {
      case 0 => pivoted(depth)
      case 1 => unpivoted(depth)
      case _ => return piped(depth, types)
    }
    val inner = queries.expressions(0)
    queries.select(types.map(inner.of(_, from.columns, 1)), s" FROM ${from.sql}")
  }

  private def pivoted(depth: Int): From = {
    val source = queries.query(depth - 1, Some(Seq(IntegerType, IntegerType, StringType)))
    val Seq(group, value, turned) = source.columns.map(_.sql)
    val (alias, a, b) = (name("r"), name("c"), name("c"))
    val call = word("sum", "count", "max")
    val dataType = if (call == "max") IntegerType else LongType
    From(
      s"(SELECT * FROM (${source.sql}) PIVOT ($call($value) FOR $turned IN ('a' AS $a, 'b' AS $b))) AS $alias",
      Column(s"$alias.$group", IntegerType) +:
        Seq(a, b).map(column => Column(s"$alias.$column", dataType)))
  }

  private def unpivoted(depth: Int): From = {
    val source = queries.query(depth - 1, Some(Seq(StringType, IntegerType, IntegerType)))
    val Seq(kept, x, y) = source.columns.map(_.sql)
    val (alias, from, value) = (name("r"), name("c"), name("c"))
    val nulls = word("", "INCLUDE NULLS ")
    From(
      s"(SELECT * FROM (${source.sql}) UNPIVOT $nulls($value FOR $from IN ($x, $y))) AS $alias",
      Seq(
        Column(s"$alias.$kept", StringType),
        Column(s"$alias.$value", IntegerType),
        Column(s"$alias.$from", StringType)))
  }

  private def piped(depth: Int, types: Seq[DataType]): Query = {
    val source = queries.from(depth - 1)
    val inner = queries.expressions(0)
    val where = if (oneIn(2)) s" |> WHERE ${inner.condition(source.columns)}" else ""
    if (oneIn(2)) {
      val outputs = types.map(inner.of(_, source.columns, 1))
      val columns = outputs.map(typed => Column(name("c"), typed.dataType, typed.exact))
      val list = outputs.zip(columns).map { case (o, c) => s"${o.sql} AS ${c.sql}" }
      Query(s"FROM ${source.sql}$where |> SELECT ${list.mkString(", ")}", columns)
    } else {
      val group = inner.of(one(source.columns).dataType, source.columns, 1)
      val key = Column(name("c"), group.dataType, group.exact)
      val calls = types.map(new Aggregates(draw, inner).of(_, source.columns))
      val columns = calls.map(typed => Column(name("c"), typed.dataType, typed.exact))
      val list = calls.zip(columns).map { case (o, c) => s"${o.sql} AS ${c.sql}" }
      val drop = s" |> DROP ${key.sql}"
      Query(
        s"FROM ${source.sql}$where |> AGGREGATE ${list.mkString(", ")} GROUP BY ${group.sql} AS ${key.sql}$drop",
        columns)
    }
  }
}
