// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing.grammar

import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.testing.grammar.Types.Ints

/** Draws what stands after `FROM`: tables, derived tables, joins, generated rows. */
private[grammar] final class Sources(draw: Draw, queries: Queries) {
  import draw._

  def from(depth: Int): From =
    if (depth <= 0) queries.named()
    else
      weighted(
        4 -> (() => queries.named()),
        3 -> (() => derived(queries.query(depth - 1))),
        5 -> (() => joined(depth - 1)),
        1 -> (() => lateral(depth - 1)),
        1 -> (() => exploded(depth - 1)),
        1 -> (() => called(depth - 1)),
        1 -> (() => withStatic(depth - 1)))

  def derived(query: Query): From = {
    val alias = name("r")
    From(s"(${query.sql}) AS $alias", query.columns.map(c => c.copy(sql = s"$alias.${c.sql}")))
  }

  private def joined(depth: Int): From = {
    val left = from(if (oneIn(3)) depth else 0)
    val right = if (oneIn(3)) derived(queries.query(depth)) else queries.named()
    val kind = word(
      "JOIN",
      "JOIN",
      "LEFT JOIN",
      "LEFT JOIN",
      "RIGHT JOIN",
      "FULL JOIN",
      "FULL JOIN",
      "LEFT SEMI JOIN",
      "LEFT ANTI JOIN",
      "CROSS JOIN")
    val on = if (kind == "CROSS JOIN") "" else s" ON ${condition(left, right)}"
    val columns = kind match {
      case "LEFT SEMI JOIN" | "LEFT ANTI JOIN" => left.columns
      case _ => left.columns ++ right.columns
    }
    From(s"${left.sql} $kind ${right.sql}$on", columns)
  }

  private def condition(left: From, right: From): String = {
    val pairs =
      for (l <- left.columns; r <- right.columns
        if l.dataType == r.dataType && l.dataType != VariantType)
        yield (l, r)
    val expressions = queries.expressions(0)
    def equality = {
      val (l, r) = one(pairs)
      if (oneIn(4)) s"${expressions.of(l.dataType, left.columns, 1).sql} = ${r.sql}"
      else s"${l.sql} ${word("=", "=", "=", "<=>")} ${r.sql}"
    }
    def more = expressions.condition(left.columns ++ right.columns, 1)
    below(8) match {
      case _ if pairs.isEmpty => more
      case 0 => more
      case 1 => s"$equality AND $equality"
      case 2 | 3 => s"$equality AND $more"
      case _ => equality
    }
  }

  private def lateral(depth: Int): From = {
    val left = from(0)
    val right =
      if (oneIn(2)) new Subqueries(draw, queries).correlated(left.columns, depth)
      else queries.query(depth, None, outer = left.columns)
    val alias = name("r")
    val kind = word(",", " JOIN", " LEFT JOIN")
    val on = if (kind == " LEFT JOIN") " ON true" else ""
    From(
      s"${left.sql}$kind LATERAL (${right.sql}) AS $alias$on",
      left.columns ++ right.columns.map(c => c.copy(sql = s"$alias.${c.sql}")))
  }

  /** The rows that a SQL function gives for each row. */
  private def called(depth: Int): From = {
    val left = from(depth)
    val (alias, number, text) = (name("r"), name("c"), name("c"))
    val argument = queries.expressions(0).of(IntegerType, left.columns, 1).sql
    val kind = word(",", " JOIN", " LEFT JOIN")
    val on = if (kind == " LEFT JOIN") " ON true" else ""
    val function = word("copies", "near")
    From(
      s"${left.sql}$kind LATERAL $function($argument) AS $alias($number, $text)$on",
      left.columns ++
        Seq(Column(s"$alias.$number", IntegerType), Column(s"$alias.$text", StringType)))
  }

  private def exploded(depth: Int): From = {
    val left = from(depth)
    val (alias, column) = (name("r"), name("c"))
    val array = queries.expressions(0).of(Ints, left.columns, 1).sql
    val element = Column(s"$alias.$column", IntegerType)
    below(5) match {
      case 4 =>
        val key = name("c")
        val values = Seq.fill(2)(queries.expressions(0).of(IntegerType, left.columns, 1).sql)
        From(
          s"${left.sql} LATERAL VIEW explode(map(1, ${values(0)}, 2, ${values(1)})) $alias " +
            s"AS $key, $column",
          left.columns ++ Seq(element, Column(s"$alias.$key", IntegerType)))
      case 0 =>
        From(
          s"${left.sql} LATERAL VIEW OUTER explode($array) $alias AS $column",
          left.columns :+ element)
      case 1 =>
        val position = name("c")
        From(
          s"${left.sql} LATERAL VIEW posexplode($array) $alias AS $position, $column",
          left.columns ++ Seq(element, Column(s"$alias.$position", IntegerType)))
      case 2 =>
        val other = name("c")
        val text = queries.expressions(0).of(StringType, left.columns, 1).sql
        From(
          s"${left.sql} LATERAL VIEW inline(array(struct(1, $text), struct(2, 'a'))) $alias AS $column, $other",
          left.columns ++ Seq(element, Column(s"$alias.$other", StringType)))
      case _ =>
        From(
          s"${left.sql} LATERAL VIEW explode($array) $alias AS $column",
          left.columns :+ element)
    }
  }

  /** A join that looks up rows which never change. */
  private def withStatic(depth: Int): From = {
    val left = from(depth)
    val alias = name("r")
    val (number, text) = (name("c"), name("c"))
    val static =
      From(
        s"(VALUES (0, 'a'), (1, 'b'), (1, NULL), (NULL, 'ab')) AS $alias($number, $text)",
        Seq(Column(s"$alias.$number", IntegerType), Column(s"$alias.$text", StringType)))
    val kind = word("JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")
    val columns = if (kind.contains("I JOIN")) left.columns else left.columns ++ static.columns
    From(s"${left.sql} $kind ${static.sql} ON ${condition(left, static)}", columns)
  }
}
