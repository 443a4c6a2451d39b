// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.util.Random
import scala.util.matching.Regex

import org.apache.spark.sql.types._

/**
 * Draws queries that are one edit apart from a given one, as people make them: a word or a number of
 * the query is another, or something is put around it. Not each of them is a query.
 *
 * @param tables
 *   the names of tables, all of which have an INT column `k`
 */
final class RandomEdit(random: Random, tables: Seq[String]) {
  import RandomEdit._

  /**
   * @param sql
   *   the query
   * @param result
   *   its columns
   */
  def apply(sql: String, result: StructType): String =
    if (random.nextInt(3) == 0) within(sql).getOrElse(around(sql, result))
    else around(sql, result)

  /** Another word or number in one place. */
  private def within(sql: String): Option[String] = {
    val places = for {
      (word, other) <- Words
      found <- word.findAllMatchIn(sql)
    } yield s"${sql.take(found.start)}$other${sql.drop(found.end)}"
    val numbers = Limit.findAllMatchIn(sql).map { found =>
      s"${sql.take(found.start)}LIMIT ${found.group(1).toInt + 1}${sql.drop(found.end)}"
    }
    val all = places ++ numbers
    if (all.isEmpty) None else Some(pick(all))
  }

  private def around(sql: String, result: StructType): String = {
    val column = pick(result.fields.toSeq)
    val name = column.name
    val exact = result.forall(field => isExact(field.dataType))
    val integers = result.filter(_.dataType.isInstanceOf[IntegralType])
    val groupable = result.filter(field => isExact(field.dataType))
    random.nextInt(11) match {
      case 0 => s"SELECT * FROM ($sql) WHERE $name IS NOT NULL"
      case 1 => s"SELECT *, $name IS NULL AS added FROM ($sql)"
      case 2 => s"SELECT $name FROM ($sql)"
      case 3 => s"SELECT *, (SELECT count(*) FROM ${pick(tables)}) AS added FROM ($sql)"
      case 4 if integers.nonEmpty =>
        val by = pick(integers).name
        val joinType = pick(Seq("JOIN", "LEFT JOIN", "FULL JOIN", "LEFT ANTI JOIN"))
        val counts = s"(SELECT k AS counted, count(*) AS n FROM ${pick(tables)} GROUP BY k)"
        s"SELECT * FROM ($sql) $joinType $counts ON $by = counted"
      case 5 if groupable.nonEmpty =>
        val by = pick(groupable).name
        s"SELECT $by, count(*) AS n, count($name) AS m FROM ($sql) GROUP BY $by"
      case 6 if exact =>
        s"SELECT * FROM ($sql) ORDER BY ${result.fieldNames.mkString(", ")} LIMIT ${1 + random.nextInt(3)}"
      case 7 if exact => s"SELECT DISTINCT * FROM ($sql)"
      case 8 if groupable.nonEmpty =>
        val by = pick(groupable).name
        s"SELECT *, count(*) OVER (PARTITION BY $by) AS added FROM ($sql)"
      case 9 if integers.nonEmpty =>
        val by = pick(integers).name
        def grouped(key: String, value: String) =
          s"(SELECT k AS $key, count(*) AS $value FROM ${pick(tables)} GROUP BY k)"
        s"SELECT * FROM ($sql) JOIN ${grouped("one", "n")} ON $by = one JOIN ${grouped("other", "m")} ON $by = other"
      case _ => s"SELECT $name FROM ($sql) UNION ALL SELECT $name FROM ($sql)"
    }
  }

  private def pick[T](choices: Seq[T]): T = choices(random.nextInt(choices.size))
}

object RandomEdit {
  private val Limit = "LIMIT ([0-9]+)".r

  private val Words: Seq[(Regex, String)] = Seq(
    "\\bsum\\(" -> "max(",
    "\\bmax\\(" -> "min(",
    "\\bmin\\(" -> "max(",
    "\\bcount\\(DISTINCT " -> "count(",
    "UNION ALL" -> "UNION",
    "INTERSECT" -> "EXCEPT",
    "LEFT JOIN" -> "JOIN",
    "FULL JOIN" -> "LEFT JOIN",
    "(?<!LEFT|RIGHT|FULL|SEMI|ANTI|CROSS|OUTER) JOIN " -> " LEFT JOIN ",
    " AND " -> " OR ",
    " > " -> " <= ",
    " = " -> " <> ",
    "SELECT DISTINCT " -> "SELECT ",
    "count\\(\\*\\) AS c\\b" -> "count(*) AS c, max(x) AS added",
    "'10 minutes'" -> "'20 minutes'",
    "'7 minutes'" -> "'3 minutes'",
    "PARTITION BY s\\b" -> "PARTITION BY k",
    "1 PRECEDING" -> "2 PRECEDING",
    " FILTER \\(WHERE [^()]*\\)" -> "",
    " IS NOT NULL" -> " IS NULL",
    "(?<!NOT )EXISTS \\(" -> "NOT EXISTS (").map { case (word, other) => word.r -> other }

  /** Whether values that are equal are the same, so that it doesn't matter which of them is taken. */
  private[testing] def isExact(dataType: DataType): Boolean = dataType match {
    case _: IntegralType | StringType | DateType | TimestampType | BooleanType => true
    case _ => false
  }
}
