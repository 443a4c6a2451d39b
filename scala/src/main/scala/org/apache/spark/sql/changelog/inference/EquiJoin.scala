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
 * A join's condition split into equalities and the rest. The equalities are pairs of expressions,
 * left and right, and form the join key: rows can match only if every pair is equal.
 *
 * @param matchesNull
 *   for each pair, whether NULL equals NULL
 */
final case class EquiJoin(
    pairs: Seq[(Expression, Expression)],
    matchesNull: Seq[Boolean],
    rest: Seq[Expression]) {

  /** Returns the join key of one side. */
  def key(left: Boolean): Seq[Expression] = pairs.map(pair => if (left) pair._1 else pair._2)

  /** Returns every column read by one side of the join key. */
  def references(left: Boolean): AttributeSet = AttributeSet(key(left))

  /**
   * Returns the columns of one side that determine the join key, and are determined by the join
   * key.
   */
  def columns(left: Boolean): AttributeSet =
    AttributeSet(key(left).flatMap(e => ProjectKeys.carriedColumn(e)))
}

object EquiJoin {
  def apply(join: Join): EquiJoin = {
    val left = join.left.outputSet
    val right = join.right.outputSet

    def pair(a: Expression, b: Expression): Option[(Expression, Expression)] =
      if (a.references.isEmpty || b.references.isEmpty || !hasComparableBytes(a)) None
      else if (a.references.subsetOf(left) && b.references.subsetOf(right)) Some(a -> b)
      else if (a.references.subsetOf(right) && b.references.subsetOf(left)) Some(b -> a)
      else None

    val conjuncts = nullSafe(join.condition.toSeq.flatMap(conjunctsOf))
    val (pairs, rest) = conjuncts.partitionMap {
      case e @ EqualTo(a, b) => pair(a, b).map(_ -> false).toLeft(e)
      case e @ EqualNullSafe(a, b) => pair(a, b).map(_ -> true).toLeft(e)
      case e => scala.util.Right(e)
    }
    val ordered = inPlace(pairs, join.left.output)(_._1._1)
    EquiJoin(ordered.map(_._1), ordered.map(_._2), rest)
  }

  /** Removes collation keys, tags and float normalization from a part of a join key. */
  def plain(part: Expression): Expression = part.transformUp {
    case CollationKey(child) => child
    case note: TaggingExpression => note.child
    case other => SparkRules.withoutNormalization(other)
  }

  /** Returns the column behind a part of a join key, whatever the form of the comparison. */
  def columnOf(part: Expression): Option[Attribute] = ProjectKeys.carriedColumn(plain(part))

  /**
   * Restores `a <=> b` where Spark has split it. Spark splits each such comparison of a join that also compares floating
   * point numbers.
   *
   * {{{
   *   coalesce(a, 0) = coalesce(b, 0) AND isnull(a) = isnull(b)    =>    a <=> b
   * }}}
   */
  private def nullSafe(conjuncts: Seq[Expression]): Seq[Expression] = {
    val nulls = conjuncts.collect { case nulls @ EqualTo(_: IsNull, _: IsNull) => nulls }
    val restored = for {
      values @ EqualTo(x, y) <- conjuncts
      Coalesce(Seq(a, default: Literal)) <- Seq(plain(x))
      Coalesce(Seq(b, `default`)) <- Seq(plain(y))
      isNull <- nulls.find(_.semanticEquals(EqualTo(IsNull(a), IsNull(b))))
    } yield (values, isNull, EqualNullSafe(withoutDefault(x), withoutDefault(y)))
    conjuncts.diff(restored.map(_._2)).map { conjunct =>
      restored.collectFirst { case (`conjunct`, _, nullSafe) => nullSafe }.getOrElse(conjunct)
    }
  }

  /** Removes the value for NULL, below collation keys and normalization. */
  private def withoutDefault(value: Expression): Expression = value match {
    case Coalesce(Seq(child, _: Literal)) => child
    case other => other.mapChildren(withoutDefault)
  }

  /**
   * Sorts pairs by the columns of their left sides. The order is part of the state's key, and
   * must not depend on the order of conditions in the query.
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

  /** Whether equal values have equal bytes, or can be normalized to equal bytes. */
  private def hasComparableBytes(part: Expression): Boolean =
    UnsafeRowUtils.isBinaryStable(part.dataType) || part.dataType.isInstanceOf[StringType]

  private def conjunctsOf(condition: Expression): Seq[Expression] = condition match {
    case And(a, b) => conjunctsOf(a) ++ conjunctsOf(b)
    case e => Seq(e)
  }
}
