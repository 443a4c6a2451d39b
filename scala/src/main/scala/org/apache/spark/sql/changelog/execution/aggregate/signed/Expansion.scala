// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate.signed

import org.apache.spark.sql.catalyst.util.ArrayData

/**
 * An exact number: the unevaluated sum of doubles that do not overlap, smallest first. Sums and products of
 * expansions are exact.
 *
 * The algorithms are J. R. Shewchuk's ("Adaptive Precision Floating-Point Arithmetic and Fast Robust Geometric
 * Predicates", 1997, GROW-EXPANSION with zero elimination). They use T. J. Dekker's exact sum and product of
 * two doubles ("A floating-point technique for extending the available precision", 1971), with the product by
 * fused multiply-add.
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

  /** Returns a double at most one unit in the last place away from the exact number. */
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

  /** Returns the sum of doubles. */
  def apply(terms: Double*): Expansion = sum(terms.size)(add => terms.foreach(add))

  /** Returns the rounding error of `left + right`. */
  def sumError(left: Double, right: Double): Double = {
    val sum = left + right
    if (math.abs(left) >= math.abs(right)) (left - sum) + right else (right - sum) + left
  }

  /** Returns the rounding error of `left * right`. */
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

/** Gives [[PowerSumFunctions$]] static methods, as called by generated code. */
private[aggregate] class PowerSumFunctions

/** The arithmetic of [[PowerSum]]: sums of products in three doubles each, and the moments computed from these sums. */
object PowerSumFunctions {

  /** The ratio of variance to mean square at or below which the variance is a rounding error of 0. */
  private val Nothing = math.pow(2, -130)

  /** Returns whether products of `value` stay far inside the range of doubles. */
  def isSummable(value: Double, limit: Double): Boolean = math.abs(value) < limit

  /**
   * Adds `sign` times a product of doubles to a sum of three doubles. Returns one of the three new doubles.
   *
   * The product is exact, as up to five doubles. Each is added with SumK, K = 3 (T. Ogita, S. M. Rump and S.
   * Oishi, "Accurate Sum and Dot Product", 2005): the rounding error of the first double goes to the second,
   * and the second's to the third. A sum thus has 159 bits. Subtracting an added product restores the sum,
   * except for the last bits.
   *
   * @param component
   *   the double to return: 0, 1 or 2
   * @param degree
   *   1 adds `x`; 2 adds `x * y`; 3 and 4 add that power of `x`
   * @param limit
   *   products of larger factors count as 0
   */
  def add(
      component: Int,
      degree: Int,
      sum: Double,
      error: Double,
      rest: Double,
      x: Double,
      y: Double,
      limit: Double,
      sign: Long): Double = {
    var first = sum
    var second = error
    var third = rest
    if (isSummable(x, limit) && isSummable(y, limit)) {
      var index = 0
      while (index < numTerms(degree)) {
        val added = sign * term(degree, index, x, y)
        val firstError = Expansion.sumError(first, added)
        first += added
        third += Expansion.sumError(second, firstError)
        second += firstError
        index += 1
      }
    }
    choose(component, first, second, third)
  }

  /** Adds two sums. Returns one of the three doubles of the result. */
  def merge(
      component: Int,
      sum: Double,
      error: Double,
      rest: Double,
      otherSum: Double,
      otherError: Double,
      otherRest: Double): Double = {
    var first = sum
    var second = error
    var third = rest
    var index = 0
    while (index < 3) {
      val added = choose(index, otherSum, otherError, otherRest)
      val firstError = Expansion.sumError(first, added)
      first += added
      third += Expansion.sumError(second, firstError)
      second += firstError
      index += 1
    }
    choose(component, first, second, third)
  }

  // The sums of a moment are x, y and xy, or the powers of x in order, in three doubles each.

  /** Sum / count. */
  def mean(count: Double, sums: ArrayData): Double =
    Expansion(sums.getDouble(2), sums.getDouble(1), sums.getDouble(0)).toDouble / count

  /** Sum of (x - mean)^2. */
  def secondMoment(count: Double, sums: ArrayData): Double = {
    val x = sum(sums, 0)
    val moment = deviation(count, x, x, sum(sums, 1))
    if (moment <= sums.getDouble(3) * Nothing) 0.0 else moment
  }

  /** Sum of (x - mean of x) (y - mean of y). */
  def coMoment(count: Double, sums: ArrayData): Double =
    deviation(count, sum(sums, 0), sum(sums, 1), sum(sums, 2))

  private def deviation(count: Double, x: Expansion, y: Expansion, xy: Expansion): Double =
    (Expansion(count) * xy - x * y).toDouble / count

  /** Sum of (x - mean)^3. */
  def thirdMoment(count: Double, sums: ArrayData): Double = {
    val n = Expansion(count)
    val (x, xx, xxx) = (sum(sums, 0), sum(sums, 1), sum(sums, 2))
    // n^2 m3 = n^2 S3 - 3 n S1 S2 + 2 S1^3
    val moment = n * (n * xxx - Expansion(3) * x * xx) + Expansion(2) * x * x * x
    moment.toDouble / (count * count)
  }

  /** Sum of (x - mean)^4. */
  def fourthMoment(count: Double, sums: ArrayData): Double = {
    val n = Expansion(count)
    val (x, xx, xxx, xxxx) = (sum(sums, 0), sum(sums, 1), sum(sums, 2), sum(sums, 3))
    // n^3 m4 = n^3 S4 - 4 n^2 S1 S3 + 6 n S1^2 S2 - 3 S1^4
    val square = x * x
    val moment = n * (n * (n * xxxx - Expansion(4) * x * xxx) + Expansion(6) * square * xx) -
      Expansion(3) * square * square
    moment.toDouble / (count * count * count)
  }

  private def sum(sums: ArrayData, number: Int): Expansion = {
    val first = 3 * number
    Expansion(sums.getDouble(first), sums.getDouble(first + 1), sums.getDouble(first + 2))
  }

  private def numTerms(degree: Int): Int = if (degree > 2) degree + 1 else degree

  /** Returns one of the doubles that sum up to the product. */
  private def term(degree: Int, index: Int, x: Double, y: Double): Double =
    if (degree == 1) x
    else {
      val product = x * y
      val error = Expansion.productError(x, y, product)
      degree match {
        case 2 => if (index == 0) product else error
        case 3 if index < 2 => half(product, x, index)
        case 3 => half(error, x, index - 2)
        case _ if index < 2 => half(product, product, index)
        case _ if index < 4 => half(product, 2 * error, index - 2)
        case _ => error * error
      }
    }

  /** Returns a product, or the product's rounding error. */
  private def half(left: Double, right: Double, index: Int): Double = {
    val product = left * right
    if (index == 0) product else Expansion.productError(left, right, product)
  }

  private def choose(component: Int, first: Double, second: Double, third: Double): Double =
    if (component == 0) first else if (component == 1) second else third
}
