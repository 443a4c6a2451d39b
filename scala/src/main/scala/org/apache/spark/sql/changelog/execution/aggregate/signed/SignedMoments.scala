// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate.signed

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.types._

/**
 * A function of central moments with retraction: variance, standard deviation, skewness, kurtosis, covariance,
 * correlation and linear regression.
 *
 * Spark's buffers hold means and central moments, which cannot be reverted without loss. These buffers hold
 * sums of powers. The result is computed from Spark's means and moments by Spark's own last step. Special
 * cases, such as a single row or equal rows, therefore give Spark's result.
 *
 * {{{
 *   var_pop(x)     rows        1, 2, 4     n = 3   x = 7   xx = 21
 *   Spark's        n = 3      avg = 7/3   m2 = xx - x * x / n = 14/3
 *   last step      m2 / n
 * }}}
 *
 * `NaN`, infinities and values with powers beyond the range of doubles are only counted. While such a value is
 * present, the moments are `NaN`. After its retraction, the moments are as before.
 *
 * @param values
 *   x, or x and y
 * @param original
 *   the function that Spark's own aggregation would run
 */
private[aggregate] case class SignedMoments(
    values: Seq[Expression],
    sign: Expression,
    original: DeclarativeAggregate)
    extends SignedFunction {
  import SignedMoments._

  private lazy val moments: Seq[Moment] = SignedMoments.MomentFunction.unapply(original).get._3

  private lazy val count = AttributeReference("count", LongType, nullable = false)()

  /** For each value, the number of rows with a value that is not summable. */
  private lazy val outliers: Seq[AttributeReference] = values.indices.map { index =>
    AttributeReference(s"${Names(index)}Outliers", LongType, nullable = false)()
  }

  private lazy val limit = if (moments.exists(_.degree > 2)) LimitOfFourths else LimitOfSquares

  private lazy val sums: Map[String, PowerSum] = {
    val products = moments.flatMap(_.products).distinct
    products.map { product =>
      product -> PowerSum(product, product.map(x => values(Names.indexOf(x.toString))), limit)
    }.toMap
  }

  private lazy val orderedSums = sums.values.toSeq.sortBy(sum => (sum.name.length, sum.name))

  override def name: String = SignedFunction.describe(original, asWritten(values))

  /** Functions of y and x have y as their first argument. */
  private def asWritten(values: Seq[Expression]): Seq[Expression] = original match {
    case _: RegrSlope | _: RegrIntercept => values.reverse
    case _ => values
  }

  override def children: Seq[Expression] = values :+ sign

  override def nullable: Boolean = true

  override def dataType: DataType = original.dataType

  override lazy val aggBufferAttributes: Seq[AttributeReference] =
    (count +: outliers) ++ orderedSums.flatMap(_.columns)

  override lazy val initialValues: Seq[Expression] =
    Literal(0L) +: (outliers.map(_ => Literal(0L)) ++ orderedSums.flatMap(_.columns).map { _ =>
      Literal(0.0)
    })

  override lazy val updateExpressions: Seq[Expression] = {
    val counted = outliers.zip(values).map { case (number, value) =>
      val summable = SignedFunction.invoke(
        classOf[PowerSumFunctions],
        BooleanType,
        "isSummable",
        KnownNotNull(value),
        Literal(limit))
      If(summable, number, plus(number, sign))
    }
    val updated = (plus(count, sign) +: counted) ++ orderedSums.flatMap(_.update(sign))
    updated.zip(aggBufferAttributes).map { case (update, column) =>
      ifPresent(values, update, column)
    }
  }

  override lazy val mergeExpressions: Seq[Expression] =
    (count +: outliers).map(column => plus(column, inputBuffer(column))) ++
      orderedSums.flatMap(sum => sum.merge(sum.columns.map(inputBuffer)))

  override lazy val evaluateExpression: Expression = {
    val n = Cast(count, DoubleType)
    val computed = moments.map { moment =>
      val value =
        if (moment.function == "count") n
        else {
          val columns = moment.products.flatMap(sums(_).columns)
          PowerSum.invoke(moment.function, n, CreateArray(columns))
        }
      outliers.zip(Names).foldLeft(value) { case (value, (number, name)) =>
        if (moment.products.exists(_.contains(name))) {
          If(EqualTo(number, Literal(0L)), value, Literal(Double.NaN))
        } else value
      }
    }
    val byColumn = AttributeMap(original.aggBufferAttributes.zip(computed))
    val result = original.evaluateExpression.transform { case column: AttributeReference =>
      byColumn.getOrElse(column, column)
    }
    If(GreaterThan(count, Literal(0L)), result, Literal(null, dataType))
  }

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]): SignedMoments =
    copy(values = newChildren.init, sign = newChildren.last)
}

private[aggregate] object SignedMoments {
  private val Names = Seq("x", "y")

  // the largest intermediate results are n^2 x^2 and n^4 x^4
  private val LimitOfSquares = math.pow(2, 450)
  private val LimitOfFourths = math.pow(2, 200)

  /**
   * A mean or moment: the content of a column of Spark's buffer.
   *
   * @param function
   *   the function of [[PowerSumFunctions]] that computes the moment
   * @param products
   *   the sums that the moment is computed from
   */
  final case class Moment(function: String, products: String*) {
    def degree: Int = products.map(_.length).maxOption.getOrElse(0)
  }

  private val CountOfRows = Moment("count")
  private val MeanOfX = Moment("mean", "x")
  private val MeanOfY = Moment("mean", "y")
  private val SecondOfX = Moment("secondMoment", "x", "xx")
  private val SecondOfY = Moment("secondMoment", "y", "yy")
  private val CoMoment = Moment("coMoment", "x", "y", "xy")
  private val OfX = Seq(
    CountOfRows,
    MeanOfX,
    SecondOfX,
    Moment("thirdMoment", "x", "xx", "xxx"),
    Moment("fourthMoment", "x", "xx", "xxx", "xxxx"))
  private val OfBoth = Seq(CountOfRows, MeanOfX, MeanOfY, CoMoment)

  /** Matches a function of moments: the function, its x and y, and the content of its buffer's columns. */
  object MomentFunction {
    def unapply(
        function: Expression): Option[(DeclarativeAggregate, Seq[Expression], Seq[Moment])] =
      function match {
        case f: CentralMomentAgg =>
          Some((f, f.children, OfX.take(f.aggBufferAttributes.size)))
        case f: Covariance => Some((f, f.children, OfBoth))
        case f: PearsonCorrelation => Some((f, f.children, OfBoth :+ SecondOfX :+ SecondOfY))
        case f: RegrSlope => Some((f, Seq(f.right, f.left), OfBoth ++ OfX.take(3)))
        case f: RegrIntercept => Some((f, Seq(f.right, f.left), OfBoth ++ OfX.take(3)))
        case _ => None
      }
  }
}

/**
 * A sum of products such as x² or xy over a group's rows, as buffer columns that merge by addition.
 *
 * The sum takes three doubles. With two, the rounding errors of many inserted and retracted rows could become
 * visible when the remaining rows are equal: their variance must be 0 and their skewness NULL.
 *
 * @param name
 *   the product, `xx` or `xy`
 * @param factors
 *   one value, two values, or one value three or four times
 * @param limit
 *   values of this size and above are excluded, because their products leave the range of doubles
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

  /** Returns the columns after adding `sign` times the product of a row's values. */
  def update(sign: Expression): Seq[Expression] = columns.indices.map { component =>
    val numbers = Seq(Literal(component), Literal(degree))
    val values = pair.map(KnownNotNull(_)) :+ Literal(limit) :+ sign
    PowerSum.invoke("add", numbers ++ columns ++ values: _*)
  }

  /** Returns the columns after adding another sum. */
  def merge(other: Seq[Expression]): Seq[Expression] = columns.indices.map { component =>
    PowerSum.invoke("merge", Literal(component) +: (columns ++ other): _*)
  }
}

private[aggregate] object PowerSum {

  /** Returns a call of a numeric function of [[PowerSumFunctions]]. */
  def invoke(function: String, arguments: Expression*): Expression =
    SignedFunction.invoke(classOf[PowerSumFunctions], DoubleType, function, arguments: _*)
}
