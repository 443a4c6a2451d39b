// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.testing.ChangelogSession

/** Inserts and deletes of the same row cancel, and those of rows that Spark only takes for equal don't. */
class RowDeltaSuite extends AnyFunSuite with ChangelogSession {
  private val small = "'a' COLLATE UTF8_LCASE"
  private val large = "'A' COLLATE UTF8_LCASE"

  /** What is left of rows, each a change type and values as SQL. */
  private def net(rows: (String, String)*): Seq[String] = {
    val selects = rows.map { case (kind, values) =>
      s"SELECT $values, '$kind' AS ${RowKind.ChangeTypeColumnName}"
    }
    val all = spark.sql(selects.mkString(" UNION ALL "))
    val left = RowDelta.net(all, all.columns.toSeq.init)
    assert(left.columns.toSeq == all.columns.toSeq)
    // what is null nowhere may be where it was cast
    assert(left.schema.asNullable == all.schema.asNullable)
    // as text, which tells 0.0 from -0.0
    left.collect().map(_.toSeq.map(textOf).mkString(" ")).toSeq.sorted
  }

  private def textOf(value: Any): String = value match {
    case row: org.apache.spark.sql.Row => row.toSeq.map(textOf).mkString("{", ", ", "}")
    case values: scala.collection.Seq[_] => values.map(textOf).mkString("[", ", ", "]")
    case map: scala.collection.Map[_, _] =>
      map
        .map { case (key, value) => s"${textOf(key)}: ${textOf(value)}" }
        .mkString("{", ", ", "}")
    case other => String.valueOf(other)
  }

  private val kept = "1 AS id, "

  Seq[(String, String => String, String, String)](
    ("a text of a collation", value => value, small, large),
    ("one in a struct", value => s"named_struct('n', 1, 't', $value)", small, large),
    ("one in an array", value => s"array($value)", small, large),
    ("one in structs of an array", value => s"array(named_struct('t', $value))", small, large),
    ("one in arrays of a struct", value => s"named_struct('l', array($value))", small, large),
    ("one among the values of a map", value => s"map('k', $value)", small, large),
    ("one among the keys of a map", value => s"map($value, 1)", small, large),
    ("zeros of both signs", value => value, "0.0D", "-0.0D"),
    ("zeros in a struct", value => s"named_struct('d', $value)", "0.0D", "-0.0D"),
    ("zeros in an array", value => s"array($value)", "0.0D", "-0.0D"),
    ("zeros among the values of a map", value => s"map('k', $value)", "0.0D", "-0.0D")).foreach {
    case (name, make, one, other) =>
      Seq("true", "false").foreach { ansi =>
        test(s"$name, ANSI mode: $ansi") {
          spark.conf.set("spark.sql.ansi.enabled", ansi)
          try {
            val (first, second) = (s"$kept${make(one)} AS v", s"$kept${make(other)} AS v")
            assert(net("insert" -> first, "delete" -> first).isEmpty)
            val both = net("insert" -> first, "delete" -> second)
            assert(both.size == 2 && both.exists(_.endsWith("insert")), both)
            assert(both.map(_.split(' ').init.mkString(" ")).distinct.size == 2, both)
            assert(net("insert" -> first, "insert" -> first, "delete" -> second).size == 3)
          } finally spark.conf.unset("spark.sql.ansi.enabled")
        }
      }
  }

  test("values that are not there, and NaN, are the same as themselves") {
    Seq(
      "CAST(NULL AS STRING COLLATE UTF8_LCASE)",
      "CAST(NULL AS ARRAY<STRING COLLATE UTF8_LCASE>)",
      s"array($small, NULL)",
      "named_struct('t', CAST(NULL AS STRING COLLATE UTF8_LCASE))",
      "CAST('NaN' AS DOUBLE)",
      "array(CAST('NaN' AS FLOAT), 1.5F, NULL)").foreach { value =>
      withClue(value) {
        val row = s"$kept$value AS v"
        assert(net("insert" -> row, "delete" -> row).isEmpty)
        assert(net("delete" -> row, "delete" -> row).size == 2)
      }
    }
  }
}
