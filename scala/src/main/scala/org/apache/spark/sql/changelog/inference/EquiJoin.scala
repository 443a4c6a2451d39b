// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.Join
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils
import org.apache.spark.sql.types.StringType

import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.inference.keys.ProjectKeys

/**
 * A join's condition, taken apart: pairs of expressions that must be equal, left and right, and
 * the rest. Rows meet only where the pairs agree, so the pairs are the join key.
 *
 * @param matchesNull
 *   for each pair, whether NULL equals NULL
 */
final case class EquiJoin(
    pairs: Seq[(Expression, Expression)],
    matchesNull: Seq[Boolean],
    rest: Seq[Expression]) {

  /** One side of the join key. */
  def key(left: Boolean): Seq[Expression] = pairs.map(pair => if (left) pair._1 else pair._2)

  /** Every column one side of the join key is computed from. */
  def references(left: Boolean): AttributeSet = AttributeSet(key(left))

  /** The columns of one side that rows agree on exactly when they agree on the join key. */
  def columns(left: Boolean): AttributeSet =
    AttributeSet(key(left).flatMap(e => ProjectKeys.carriedColumn(e)))
}

object EquiJoin {
  def apply(join: Join): EquiJoin = {
    val left = join.left.outputSet
    val right = join.right.outputSet

    def pair(a: Expression, b: Expression): Option[(Expression, Expression)] =
      if (a.references.isEmpty || b.references.isEmpty || !isLookedUp(a)) None
      else if (a.references.subsetOf(left) && b.references.subsetOf(right)) Some(a -> b)
      else if (a.references.subsetOf(right) && b.references.subsetOf(left)) Some(b -> a)
      else None

    val conjuncts = join.condition.toSeq.flatMap(conjunctsOf)
    val (pairs, rest) = conjuncts.partitionMap {
      case e @ EqualTo(a, b) => pair(a, b).map(_ -> false).toLeft(e)
      case e @ EqualNullSafe(a, b) => pair(a, b).map(_ -> true).toLeft(e)
      case e => scala.util.Right(e)
    }
    val ordered = inPlace(pairs, join.left.output)(_._1._1)
    EquiJoin(ordered.map(_._1), ordered.map(_._2), rest)
  }

  /** A part of a join key without what makes equal values have equal bytes. */
  def plain(part: Expression): Expression = part.transformUp {
    case CollationKey(child) => child
    case note: TaggingExpression => note.child
    case other => SparkRules.withoutNormalization(other)
  }

  /** The column that a part of a join key is, however it is compared. */
  def columnOf(part: Expression): Option[Attribute] = ProjectKeys.carriedColumn(plain(part))

  /**
   * Pairs in the order of the columns their left sides are made of: state is kept by them, in
   * whichever order a query says its conditions.
   */
  private def inPlace[T](
      pairs: Seq[T],
      columns: Seq[Attribute])(left: T => Expression): Seq[T] = {
    val places = columns.map(_.exprId).zipWithIndex.toMap
    pairs.sortBy { pair =>
      val read = left(pair).references.toSeq.map(column => places(column.exprId)).sorted
      val text = left(pair)
        .transform { case column: Attribute =>
          BoundReference(places(column.exprId), column.dataType, column.nullable)
        }
        .canonicalized
        .toString
      (read, text)
    }(Ordering.Tuple2(Ordering.Implicits.seqOrdering[Seq, Int], Ordering.String))
  }

  /** Whether equal values have equal bytes, or can be given such. */
  private def isLookedUp(part: Expression): Boolean =
    UnsafeRowUtils.isBinaryStable(part.dataType) || part.dataType.isInstanceOf[StringType]

  private def conjunctsOf(condition: Expression): Seq[Expression] = condition match {
    case And(a, b) => conjunctsOf(a) ++ conjunctsOf(b)
    case e => Seq(e)
  }
}
