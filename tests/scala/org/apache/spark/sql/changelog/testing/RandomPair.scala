// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.util.Random

import org.apache.spark.sql.types._

/**
 * Draws two queries over a given one that are one edit apart: a column is called otherwise, a `HAVING` comes or goes, a
 * rank has another bound or order, something is computed otherwise. Not each of them is a query.
 *
 * @param tables
 *   the names of tables, all of which have INT columns `k` and `x`
 */
final class RandomPair(random: Random, tables: Seq[String]) {

  /** @param result the columns of the query */
  def apply(sql: String, result: StructType): EditedQueries = {
    val column = pick(result.fieldNames.toSeq)
    val exact = result.filter(field => RandomEdit.isExact(field.dataType)).map(_.name)
    val integers = result.filter(_.dataType.isInstanceOf[IntegralType]).map(_.name)
    random.nextInt(7) match {
      case 0 => EditedQueries(sql, renamed(sql, result.fieldNames.toSeq, column))
      case 1 if exact.nonEmpty => grouped(sql, pick(exact), column, pick(exact))
      case 2 | 3 if exact.size == result.size => ranked(sql, random.shuffle(exact))
      case 4 if integers.nonEmpty => EditedQueries(sql, looked(sql, pick(integers)))
      case 5 if integers.nonEmpty =>
        val by = pick(integers)
        def computed(expression: String) = s"SELECT *, $expression AS computed FROM ($sql)"
        EditedQueries(computed(s"$by + 1"), computed(s"2 * $by"))
      case _ => EditedQueries(sql, replaced(sql))
    }
  }

  /**
   * Draws two queries that differ in one expression, by which rows are grouped, joined or ranked, or of which the
   * largest value is taken.
   *
   * @param result the columns of the query, one of which is an INT
   */
  def computed(sql: String, result: StructType): EditedQueries = {
    val column = pick(result.filter(_.dataType == IntegerType).map(_.name))
    val (one, other) = pick(EditedExpressions.over(column))
    val use: String => String = random.nextInt(4) match {
      case 0 =>
        expression =>
          s"SELECT e, count(*) AS n FROM (SELECT $expression AS e FROM ($sql)) GROUP BY e"
      case 1 =>
        expression => s"SELECT $column, max($expression) AS m FROM ($sql) GROUP BY $column"
      case 2 =>
        expression => s"""WITH of_rows AS (SELECT DISTINCT $column, $expression AS e FROM ($sql))
             |SELECT l.e, r.$column FROM of_rows l JOIN of_rows r ON l.e = r.e""".stripMargin
      case _ =>
        expression =>
          s"""SELECT $column, e FROM (SELECT DISTINCT $column, $expression AS e FROM ($sql))
             |ORDER BY e DESC, $column LIMIT 3""".stripMargin
    }
    EditedQueries(use(one), use(other))
  }

  private def renamed(sql: String, columns: Seq[String], column: String): String = {
    val results = columns.map(name => if (name == column) s"$name AS renamed" else name)
    s"SELECT ${results.mkString(", ")} FROM ($sql)"
  }

  /** Groups, of which another function is shown, or not all. */
  private def grouped(sql: String, by: String, column: String, exact: String): EditedQueries = {
    def groups(function: String) =
      s"SELECT $by, count(*) AS how_many, $function AS of_them FROM ($sql) GROUP BY $by"
    val counts = groups(s"count($column)")
    val other = random.nextInt(3) match {
      case 0 => groups(s"max($exact)")
      case _ => s"$counts HAVING count(*) > 1"
    }
    val pair = EditedQueries(counts, other)
    if (random.nextBoolean()) pair.copy(mode = "upsert", key = Seq(by)) else pair
  }

  /** The first rows of each value of the first column, in the order of all. */
  private def ranked(sql: String, columns: Seq[String]): EditedQueries = {
    val function = pick(Seq("row_number", "rank", "dense_rank"))
    def best(bound: Int, direction: String) = {
      val order =
        (columns.tail ++ columns.take(1)).map(name => s"$name $direction").mkString(", ")
      val place = s"$function() OVER (PARTITION BY ${columns.head} ORDER BY $order)"
      s"SELECT * FROM (SELECT *, $place AS place FROM ($sql)) WHERE place <= $bound"
    }
    random.nextInt(3) match {
      case 0 => EditedQueries(sql, best(2, "ASC"))
      case 1 => EditedQueries(best(2, "ASC"), best(3, "ASC"))
      case _ => EditedQueries(best(2, "ASC"), best(2, "DESC"))
    }
  }

  private def looked(sql: String, by: String): String = {
    val table = pick(tables)
    val condition = pick(
      Seq(
        s"$by IN (SELECT x FROM $table)",
        s"$by NOT IN (SELECT x FROM $table WHERE x IS NOT NULL)",
        s"EXISTS (SELECT 1 FROM $table AS other WHERE other.k = looked.$by)",
        s"NOT EXISTS (SELECT 1 FROM $table AS other WHERE other.k = looked.$by)"))
    s"SELECT * FROM ($sql) AS looked WHERE $condition"
  }

  /** Something is computed otherwise within the query. */
  private def replaced(sql: String): String = {
    val places = " [+*] ".r.findAllMatchIn(sql).toSeq
    if (places.isEmpty) sql
    else {
      val place = pick(places)
      s"${sql.take(place.start)} - ${sql.drop(place.end)}"
    }
  }

  private def pick[T](choices: Seq[T]): T = choices(random.nextInt(choices.size))
}
