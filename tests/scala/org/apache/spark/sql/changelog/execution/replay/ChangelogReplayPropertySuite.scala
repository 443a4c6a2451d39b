// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import scala.util.Random

import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.testing._

/**
 * Random aggregates and windows that are computed anew, over random changes, against the same
 * queries as batches. What Spark leaves open is settled: lists are sorted, and windows are ordered
 * by all columns, as texts, which tell zeros of either sign apart.
 */
class ChangelogReplayPropertySuite extends PropertySuite(numSeeds = 3) {

  override protected def program(seed: Long): (Program, Variant) = {
    val random = new Random(seed)
    val (program, variant) = RandomProgram(seed)
    val query = new Query(random, program.feeds.head.schema.toSeq)
    val rows = program.feeds.map(feed => s"SELECT * FROM ${feed.name}").mkString(" UNION ALL ")
    val once = if (random.nextBoolean()) query.aggregate(s"($rows)") else query.window(s"($rows)")
    val sql =
      if (random.nextInt(3) > 0) once
      else s"SELECT c0, count(*), sort_array(collect_list(c1)) FROM ($once) GROUP BY c0"
    (program.copy(sql = sql), variant.copy(mode = "retract", key = Nil))
  }

  private class Query(random: Random, columns: Seq[StructField]) {
    private def isFloat(field: StructField) = Set[DataType](FloatType, DoubleType)(field.dataType)

    private def any(condition: StructField => Boolean = _ => true): StructField = {
      val fitting = columns.filter(condition)
      fitting(random.nextInt(fitting.size))
    }

    private def text(field: StructField): String =
      if (field.dataType == BinaryType) s"hex(${field.name})"
      else s"CAST(${field.name} AS STRING)"

    private def groups(most: Int): Seq[String] =
      random.shuffle(columns).take(random.nextInt(most + 1)).map(_.name)

    def aggregate(rows: String): String = {
      val by = groups(2)
      val calls = Seq.fill(1 + random.nextInt(3))(call())
      // an expression that all queries have, to group by further up
      val list = s"count(*) % 3 AS c0" +: s"${calls.head} AS c1" +: calls.tail
      val groupBy = if (by.isEmpty) "" else s" GROUP BY ${by.mkString(", ")}"
      s"SELECT ${(by ++ list).mkString(", ")} FROM $rows$groupBy"
    }

    private def call(): String = {
      val exact = any(!isFloat(_))
      val number = any(field => field.dataType.isInstanceOf[IntegralType])
      val plain = Seq(
        s"concat_ws(',', sort_array(collect_list(${text(any())})))",
        s"concat_ws(',', sort_array(collect_set(${text(any())})))",
        s"CAST(median(${number.name}) AS STRING)",
        s"CAST(percentile(${number.name}, 0.3) AS STRING)",
        s"mode(${text(exact)}, true)",
        s"CAST(approx_count_distinct(${exact.name}) AS STRING)",
        s"listagg(${text(any())}, ';') WITHIN GROUP (ORDER BY ${text(any())}, ${all.mkString(", ")})")
      val chosen = plain(random.nextInt(plain.size))
      if (random.nextInt(3) > 0) chosen
      else s"CASE WHEN max(${exact.name}) IS NOT NULL THEN $chosen END"
    }

    private def all: Seq[String] = columns.map(text)

    def window(rows: String): String = {
      val calls = Seq.fill(1 + random.nextInt(2))(over())
      s"SELECT *, ${over(Seq("ntile(3)"))} AS c0, CAST(${over()} AS STRING) AS c1, " +
        s"${calls.mkString(", ")} FROM $rows"
    }

    private def over(functions: Seq[String] = ranks ++ values): String = {
      val by = groups(2) match {
        case Nil => ""
        case some => s"PARTITION BY ${some.mkString(", ")} "
      }
      val direction = if (random.nextBoolean()) "ASC" else "DESC"
      val order = random.shuffle(all).map(column => s"$column $direction").mkString(", ")
      s"${functions(random.nextInt(functions.size))} OVER (${by}ORDER BY $order)"
    }

    private def ranks =
      Seq("row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "count(*)")

    private def values = {
      val column = text(any())
      Seq(s"lag($column)", s"lead($column, 2)", s"nth_value($column, 2)", s"max($column)")
    }
  }
}
