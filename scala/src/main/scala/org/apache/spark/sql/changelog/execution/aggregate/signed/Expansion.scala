// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate.signed

/**
 * A number as the unevaluated sum of doubles that do not overlap, smallest first, so that sums and
 * products are exact.
 *
 * The algorithms are J. R. Shewchuk's ("Adaptive Precision Floating-Point Arithmetic and Fast
 * Robust Geometric Predicates", 1997, GROW-EXPANSION with zero elimination), over T. J. Dekker's
 * exact sum and product of two doubles ("A floating-point technique for extending the available
 * precision", 1971), the product by fused multiply-add.
 */
private[aggregate] final class Expansion private (
    private val terms: Array[Double],
    private val size: Int) {

  def +(other: Expansion): Expansion = Expansion.sum(size + other.size) { add =>
    terms.take(size).foreach(add)
    other.terms.take(other.size).foreach(add)
  }

  def -(other: Expansion): Expansion = this + other * Expansion(-1.0)

  def *(other: Expansion): Expansion = Expansion.sum(2 * size * other.size) { add =>
    for (left <- 0 until size; right <- 0 until other.size) {
      val product = terms(left) * other.terms(right)
      add(product)
      add(Expansion.productError(terms(left), other.terms(right), product))
    }
  }

  /** The nearest double, but for one in the last place. */
  def toDouble: Double = {
    var result = 0.0
    var index = 0
    while (index < size) {
      result += terms(index)
      index += 1
    }
    result
  }
}

private[aggregate] object Expansion {

  /** The sum of some doubles. */
  def apply(terms: Double*): Expansion = sum(terms.size)(add => terms.foreach(add))

  /** What `left + right` loses to rounding. */
  def sumError(left: Double, right: Double): Double = {
    val sum = left + right
    if (math.abs(left) >= math.abs(right)) (left - sum) + right else (right - sum) + left
  }

  /** What `left * right` loses to rounding. */
  def productError(left: Double, right: Double, product: Double): Double =
    Math.fma(left, right, -product)

  private def sum(most: Int)(addAll: (Double => Unit) => Unit): Expansion = {
    val terms = new Array[Double](most)
    var size = 0
    addAll { added =>
      var carried = added
      var kept = 0
      var index = 0
      while (index < size) {
        val error = sumError(carried, terms(index))
        carried += terms(index)
        if (error != 0.0) {
          terms(kept) = error
          kept += 1
        }
        index += 1
      }
      if (carried != 0.0) {
        terms(kept) = carried
        kept += 1
      }
      size = kept
    }
    new Expansion(terms, size)
  }
}
