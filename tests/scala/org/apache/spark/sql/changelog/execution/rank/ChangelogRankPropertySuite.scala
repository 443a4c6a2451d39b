// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import scala.util.Random

import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.testing._

/**
 * Random ranks and limits over random changes, against the same queries as batches. Where ties
 * would leave the result open, all columns decide, as texts, which tell zeros of either sign apart.
 */
class ChangelogRankPropertySuite extends PropertySuite(numSeeds = 3) {

  override protected def program(seed: Long): (Program, Variant) = {
    val random = new Random(seed)
    val (program, variant) = RandomProgram(seed)
    val columns = program.feeds.head.schema.toSeq
    val rows = program.feeds.map(feed => s"SELECT * FROM ${feed.name}").mkString(" UNION ALL ")
    val query = new Query(random, "r")
    val once =
      if (random.nextInt(3) > 0) query(s"($rows)", columns)
      else query(s"(${counts(random, rows, columns)})", countColumns)
    val twice = random.nextInt(5) match {
      case 0 => s"SELECT k, count(*), sum(k) FROM ($once) GROUP BY k"
      case 1 =>
        // without what does not order them, of which equal places could have any
        val keys = s"(SELECT k FROM ($once))"
        new Query(random, "r2")(keys, Seq(StructField("k", IntegerType)))
      case _ => once
    }
    (program.copy(sql = twice), variant.copy(mode = "retract", key = Nil))
  }

  private val countColumns =
    Seq(StructField("k", IntegerType), StructField("n", LongType), StructField("m", StringType))

  /** Groups that only get better, if the input only inserts. */
  private def counts(random: Random, rows: String, columns: Seq[StructField]): String = {
    val m = if (random.nextBoolean()) "max(CAST(k AS STRING))" else "min(CAST(k AS STRING))"
    s"SELECT k, count(*) AS n, $m AS m FROM ($rows) GROUP BY k"
  }

  private class Query(random: Random, rank: String) {
    private def oneOf[T](choices: T*): T = choices(random.nextInt(choices.size))

    private def text(field: StructField): String =
      if (field.dataType == BinaryType) s"hex(${field.name})"
      else s"CAST(${field.name} AS STRING)"

    private def direction: String =
      oneOf("ASC", "DESC") + oneOf("", "", " NULLS FIRST", " NULLS LAST")

    private def ordered(columns: Seq[StructField], ties: Boolean): String = {
      val some = random.shuffle(columns).take(1 + random.nextInt(2)).map(_.name)
      val rest = if (ties) Nil else random.shuffle(columns).map(text)
      (some ++ rest).map(column => s"$column $direction").mkString(", ")
    }

    def apply(rows: String, columns: Seq[StructField]): String =
      if (random.nextInt(4) == 0) limit(rows, columns) else ranked(rows, columns)

    private def limit(rows: String, columns: Seq[StructField]): String =
      s"SELECT * FROM $rows ORDER BY ${ordered(columns, ties = false)} " +
        s"LIMIT ${oneOf(1, 3, 10)} ${oneOf("", "", "OFFSET 2")}"

    private def ranked(rows: String, columns: Seq[StructField]): String = {
      val function = oneOf("row_number()", "row_number()", "rank()", "dense_rank()")
      val groups = random.shuffle(columns).take(random.nextInt(3)) match {
        case Nil => ""
        case by => s"PARTITION BY ${by.map(group).mkString(", ")} "
      }
      val order = ordered(columns, ties = function != "row_number()")
      val bound = oneOf(
        s"$rank <= 1",
        s"$rank = 1",
        s"$rank <= 2",
        s"$rank < 4",
        s"$rank = 2",
        s"$rank BETWEEN 2 AND 4",
        s"$rank <= 12 AND $rank > 1",
        s"$rank <= 3 AND k % 2 = 0",
        s"$rank <= k")
      val read = oneOf("*", columns.map(_.name).mkString(", "), s"k, $rank", "k")
      s"SELECT $read FROM (SELECT *, $function OVER (${groups}ORDER BY $order) AS $rank FROM $rows) " +
        s"WHERE $bound"
    }

    private def group(field: StructField): String = field.dataType match {
      case _: IntegralType => oneOf(field.name, s"${field.name} % 2")
      case _ => field.name
    }
  }
}
