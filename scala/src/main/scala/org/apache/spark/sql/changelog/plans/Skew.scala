// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.catalyst.trees.TreePattern.{TreePattern, UNRESOLVED_HINT}
import org.apache.spark.sql.types.{ArrayType, IntegerType, Metadata, MetadataBuilder}

/**
 * Says which values of some columns of `child` many of its rows have: a `SKEW` hint in its place in
 * the query.
 *
 * {{{
 *   SELECT /*+ SKEW('b', 'auction', 1007) */ ...                  Join b.auction = a.id
 *   FROM bids b JOIN auctions a ON b.auction = a.id      =>       :- Skew [auction] [1007]
 *                                                                 :  +- SubqueryAlias b
 *                                                                 +- SubqueryAlias a
 * }}}
 *
 * @param names
 *   the columns as the hint has them
 * @param columns
 *   the columns, once `child` is resolved
 * @param values
 *   the values, with one part for each column; none if all values are meant
 * @param problem
 *   what is wrong with the hint, which matters below `to_changelog` only
 * @param isFollowed
 *   whether a join below does as it says
 */
case class Skew(
    names: Seq[Seq[String]],
    columns: Seq[Attribute],
    values: Seq[Seq[Literal]],
    problem: Option[AnalysisException],
    isFollowed: Boolean,
    child: LogicalPlan)
    extends UnaryNode {

  override lazy val resolved: Boolean =
    childrenResolved && (problem.isDefined || columns.nonEmpty)

  override def output: Seq[Attribute] = child.output

  override def maxRows: Option[Long] = child.maxRows

  override def maxRowsPerPartition: Option[Long] = child.maxRowsPerPartition

  override def outputOrdering: Seq[SortOrder] = child.outputOrdering

  override lazy val distinctKeys: Set[ExpressionSet] = child.distinctKeys

  // so that it is resolved where hints are
  override protected val nodePatterns: Seq[TreePattern] = Seq(UNRESOLVED_HINT)

  override protected def doCanonicalize(): LogicalPlan = child.canonicalized

  override protected def withNewChildInternal(newChild: LogicalPlan): Skew =
    copy(child = newChild)
}

/**
 * The side of a join of whose rows many have one join key, as a hint `SKEW` says, or all have, where the
 * join has no equality.
 *
 * @param columns
 *   columns of the side, each of which is a part of the join key; none without an equality
 * @param values
 *   the values of them that many rows have, of the join key's types; none if all values are meant
 * @param salts
 *   those over which rows with one of them are spread
 */
final case class SkewedSide(
    isLeft: Boolean,
    columns: Seq[Attribute],
    values: Seq[Seq[Literal]],
    salts: Seq[Int]) {

  def ways: Int = salts.size

  /** Whether a hint says so. */
  def isHinted: Boolean = columns.nonEmpty

  /** What it says of a join, whatever its columns are called. */
  def places(join: LogicalPlan): Seq[Any] = {
    val side = join.children(if (isLeft) 0 else 1).output
    val ordinals = columns.map(column => side.indexWhere(_.exprId == column.exprId))
    Seq(isLeft, ordinals, values, salts)
  }
}

object SkewedSide {
  private val tag = TreeNodeTag[SkewedSide]("changelogSkewedSide")

  /** Notes with a join what a hint says about one of its sides. */
  def set(join: LogicalPlan, side: SkewedSide): Unit = join.setTagValue(tag, side)

  /** What a hint says about a side of a join. */
  def of(join: LogicalPlan): Option[SkewedSide] = join.getTagValue(tag)
}

/**
 * What divides rows that nothing else tells apart among tasks: a number by a hash of what tells a row
 * apart, so that what takes the row back has the same.
 *
 * Values that are equal have one hash: Spark's takes 0.0 and -0.0, and all NaN, for the same, and of
 * texts with a collation their keys are hashed. Rows that are not equal may have any.
 */
object Salt {

  /** What a column with salts is called. */
  val Name = "salt"

  private val marker = "changelogSalt"

  /** Tells a column with salts, by which rows are divided only, from one with values of the query. */
  val metadata: Metadata = new MetadataBuilder().putBoolean(marker, true).build()

  /** One of `salts`. */
  def apply(columns: Seq[Attribute], salts: Seq[Int]): Expression =
    GetArrayItem(array(salts), number(columns, salts.size), failOnError = false)

  /** The columns that are hashed, and how many salts there are. */
  def unapply(expression: Expression): Option[(Seq[Attribute], Int)] = expression match {
    case GetArrayItem(_: Literal, Pmod(hash: Murmur3Hash, Literal(ways: Int, _), _), _) =>
      Some((hash.references.toSeq, ways))
    case _ => None
  }

  /** A number below `ways`. */
  def number(columns: Seq[Attribute], ways: Int): Expression =
    Pmod(new Murmur3Hash(columns.map(CollationKey.injectCollationKey)), Literal(ways))

  def array(salts: Seq[Int]): Literal =
    Literal.create(salts, ArrayType(IntegerType, containsNull = false))

  /** Whether rows are divided by nothing else. */
  def isAlone(key: Seq[Expression]): Boolean = key.nonEmpty && key.forall {
    case Salt(_, _) => true
    case column: Attribute => column.metadata.contains(marker)
    case _ => false
  }

  /**
   * What tells rows apart, as far as it has a hash: their key, or all of their columns. None of them, if
   * there is no more than one row.
   */
  def columns(output: Seq[Attribute], key: Option[AttributeSet]): Seq[Attribute] = {
    val hashed = output.filter(column => RowOrdering.isOrderable(column.dataType))
    key.fold(hashed)(key => hashed.filter(key.contains))
  }
}
