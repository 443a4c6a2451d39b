// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate.signed

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._

/**
 * A sum of products such as x² or xy over a group's rows, as buffer columns that merge by addition.
 *
 * It takes three doubles: with two of them, what rounding loses while many rows come and go could
 * be seen where rows remain that are all alike, whose variance is 0 and whose skewness is NULL.
 *
 * @param name
 *   the product, `xx` or `xy`
 * @param factors
 *   one value, two values, or one value three or four times
 * @param limit
 *   the size from which on values are left out, as their products leave the range of doubles
 */
private[aggregate] final case class PowerSum(
    name: String,
    factors: Seq[Expression],
    limit: Double) {
  private val degree = factors.size
  private val pair = Seq(factors.head, if (degree > 1) factors(1) else factors.head)

  /** The buffer columns, most significant first. */
  val columns: Seq[AttributeReference] = Seq("", "Error", "Rest").map { part =>
    AttributeReference(s"$name$part", DoubleType, nullable = false)()
  }

  /** The columns after `sign` times the product of one row's values is added. */
  def update(sign: Expression): Seq[Expression] = columns.indices.map { component =>
    val numbers = Seq(Literal(component), Literal(degree))
    val values = pair.map(KnownNotNull(_)) :+ Literal(limit) :+ sign
    PowerSum.invoke("add", numbers ++ columns ++ values: _*)
  }

  /** The columns after another sum is added. */
  def merge(other: Seq[Expression]): Seq[Expression] = columns.indices.map { component =>
    PowerSum.invoke("merge", Literal(component) +: (columns ++ other): _*)
  }
}

private[aggregate] object PowerSum {

  /** A call of one of the [[PowerSumFunctions]] that give a number. */
  def invoke(function: String, arguments: Expression*): Expression =
    SignedFunction.invoke(classOf[PowerSumFunctions], DoubleType, function, arguments: _*)
}
