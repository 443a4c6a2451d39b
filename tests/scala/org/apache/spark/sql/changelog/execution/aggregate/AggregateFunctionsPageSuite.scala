// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import java.nio.file.Files

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.expressions.{Literal, UnsafeProjection, UnsafeRow}

import org.apache.spark.sql.changelog.execution.aggregate.signed.SignedFunction
import org.apache.spark.sql.changelog.inference.AggregateForm
import org.apache.spark.sql.changelog.testing.{ChangelogSession, GoldenFiles}

/** The table in docs/operators/aggregate-functions.md, measured. */
class AggregateFunctionsPageSuite extends AnyFunSuite with ChangelogSession with GoldenFiles {
  private val columns = Seq(
    "a" -> "TINYINT",
    "b" -> "SMALLINT",
    "c" -> "INT",
    "d" -> "BIGINT",
    "e" -> "DECIMAL(20,2)",
    "f" -> "DECIMAL(38,2)",
    "x" -> "DOUBLE",
    "y" -> "DOUBLE",
    "p" -> "BOOLEAN")

  /** What the page calls a function, and a call of it. */
  private val functions = Seq(
    "`count`, `count_if`, `regr_count`" -> "count(c)",
    "`sum`, `try_sum` of `TINYINT`, `SMALLINT`, `INT`" -> "sum(c)",
    "`sum`, `try_sum` of `BIGINT`" -> "sum(d)",
    "`avg` of integers" -> "avg(c)",
    "`sum`, `avg` of `DECIMAL` up to 28 digits" -> "sum(e)",
    "`sum`, `avg` of wider `DECIMAL`" -> "sum(f)",
    "`sum`, `try_sum` of `FLOAT`, `DOUBLE`" -> "sum(x)",
    "`avg` of `FLOAT`, `DOUBLE`; `regr_avgx`, `regr_avgy`" -> "avg(x)",
    "`var_pop`, `var_samp`, `stddev_pop`, `stddev_samp`; `regr_sxx`, `regr_syy`" -> "var_pop(x)",
    "`skewness`" -> "skewness(x)",
    "`kurtosis`" -> "kurtosis(x)",
    "`covar_pop`, `covar_samp`, `regr_sxy`" -> "covar_pop(x, y)",
    "`corr`, `regr_r2`" -> "corr(x, y)",
    "`regr_slope`, `regr_intercept`" -> "regr_slope(y, x)",
    "`bool_and`, `every`, `bool_or`, `some`, `any`; `min`, `max` of `BOOLEAN`" -> "bool_and(p)",
    "`bit_and`, `bit_or` of `TINYINT`" -> "bit_and(a)",
    "`bit_and`, `bit_or` of `SMALLINT`" -> "bit_and(b)",
    "`bit_and`, `bit_or` of `INT`" -> "bit_and(c)",
    "`bit_and`, `bit_or` of `BIGINT`" -> "bit_and(d)",
    "`bit_xor`" -> "bit_xor(d)",
    "`min`, `max` of other types" -> "max(d)")

  private def aggregate(call: String): AggregateExpression = {
    val nullable = columns.map { case (name, dataType) =>
      s"CAST(if(id = 0, id, NULL) ${if (dataType == "BOOLEAN") "= 0" else ""} AS $dataType) AS $name"
    }
    spark.range(2).selectExpr(nullable: _*).createOrReplaceTempView("columns")
    val plan = spark.sql(s"SELECT $call FROM columns").queryExecution.optimizedPlan
    plan.expressions.flatMap(_.collect { case call: AggregateExpression => call }).head
  }

  /** The bytes of a buffer, but for those that say what is NULL. */
  private def bytes(function: AggregateFunction): Int = {
    val initial = function.asInstanceOf[DeclarativeAggregate].initialValues
    val row = UnsafeProjection.create(initial).apply(InternalRow.empty)
    row.getSizeInBytes - UnsafeRow.calculateBitSetWidthInBytes(initial.size)
  }

  private def row(title: String, call: String): String = {
    val expression = aggregate(call)
    val plain = bytes(expression.aggregateFunction)
    val (form, signed) = AggregateForm(expression, retracts = true) match {
      case AggregateForm.Buffer =>
        val function = SignedFunction(expression.aggregateFunction, Literal(1L))
        ("signed buffer", bytes(function).toString)
      case AggregateForm.Extremum => ("counted values", "by number of values")
      case AggregateForm.Rows => ("rows", "all rows")
    }
    s"| $title | $plain | $form | $signed |"
  }

  test("docs/operators/aggregate-functions.md says how many bytes each function keeps") {
    val file = "docs/operators/aggregate-functions.md"
    val page = Files.readString(home.resolve(file))
    val Seq(begin, end) = Seq("<!-- measured -->\n", "\n<!-- /measured -->").map { mark =>
      assert(page.contains(mark))
      mark
    }
    val head = Seq(
      "| function | bytes, insert-only input | form, changing input | bytes, changing input |",
      "|---|---|---|---|")
    val table = (head ++ functions.map { case (title, call) => row(title, call) }).mkString("\n")
    checkGolden(
      file,
      page.take(page.indexOf(begin) + begin.length) + table + page.drop(page.indexOf(end)))
  }

  test("any three functions in one query leave rows that Spark generates code for") {
    val sizes = functions.map(_._2).map(aggregate).collect {
      case call if AggregateForm(call, retracts = true) == AggregateForm.Buffer =>
        SignedFunction(call.aggregateFunction, Literal(1L)).aggBufferAttributes.size
    }
    val widest = sizes.sorted.takeRight(3).sum + 1
    assert(widest <= spark.sessionState.conf.wholeStageMaxNumFields)
  }
}
