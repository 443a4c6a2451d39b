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
 * A `SKEW` hint at its place in the query: names the hot values of some columns of `child`.
 *
 * {{{
 *   SELECT /*+ SKEW('b', 'auction', 1007) */ ...                  Join b.auction = a.id
 *   FROM bids b JOIN auctions a ON b.auction = a.id      =>       :- Skew [auction] [1007]
 *                                                                 :  +- SubqueryAlias b
 *                                                                 +- SubqueryAlias a
 * }}}
 *
 * @param names
 *   the columns as written in the hint
 * @param columns
 *   the columns, once `child` is resolved
 * @param values
 *   the hot values, with one part for each column; empty for all values
 * @param problem
 *   the error in the hint, thrown only below `to_changelog`
 * @param isFollowed
 *   whether a join below spreads rows by the hint
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

  // Marks the node for the rules that resolve hints.
  override protected val nodePatterns: Seq[TreePattern] = Seq(UNRESOLVED_HINT)

  override protected def doCanonicalize(): LogicalPlan = child.canonicalized

  override protected def withNewChildInternal(newChild: LogicalPlan): Skew =
    copy(child = newChild)
}

/**
 * The skewed side of a join. With a hint `SKEW`, many rows of the side have one join key. In a
 * join without an equality, all rows have.
 *
 * @param columns
 *   columns of the side within the join key; empty without an equality
 * @param values
 *   the hot values of the columns, in the join key's types; empty for all values
 * @param salts
 *   the salts for rows with hot values
 */
final case class SkewedSide(
    isLeft: Boolean,
    columns: Seq[Attribute],
    values: Seq[Seq[Literal]],
    salts: Seq[Int]) {

  def ways: Int = salts.size

  /** Whether a hint declares the skew. */
  def isHinted: Boolean = columns.nonEmpty

  /** Returns the skew of a join in a form independent of column ids. */
  def places(join: LogicalPlan): Seq[Any] = {
    val side = join.children(if (isLeft) 0 else 1).output
    val ordinals = columns.map(column => side.indexWhere(_.exprId == column.exprId))
    Seq(isLeft, ordinals, values, salts)
  }
}

object SkewedSide {
  private val tag = TreeNodeTag[SkewedSide]("changelogSkewedSide")

  /** Tags a join with its skewed side. */
  def set(join: LogicalPlan, side: SkewedSide): Unit = join.setTagValue(tag, side)

  /** Returns the skewed side of a join, if tagged. */
  def of(join: LogicalPlan): Option[SkewedSide] = join.getTagValue(tag)
}

/**
 * Salt: a number to divide indistinguishable rows among tasks. The salt is a hash of a row's key,
 * so a retraction has the salt of the row.
 *
 * Equal values have equal hashes. Spark's hash treats 0.0 and -0.0 as equal, and all NaNs. Texts
 * with a collation are hashed by their collation keys.
 */
object Salt {

  /** The name of a salt column. */
  val Name = "salt"

  private val marker = "changelogSalt"

  /** Distinguishes salt columns from columns of the query. */
  val metadata: Metadata = new MetadataBuilder().putBoolean(marker, true).build()

  /** Returns one of `salts`, by the hash of `columns`. */
  def apply(columns: Seq[Attribute], salts: Seq[Int]): Expression =
    GetArrayItem(array(salts), number(columns, salts.size), failOnError = false)

  /** Returns the hashed columns, and the number of salts. */
  def unapply(expression: Expression): Option[(Seq[Attribute], Int)] = expression match {
    case GetArrayItem(_: Literal, Pmod(hash: Murmur3Hash, Literal(ways: Int, _), _), _) =>
      Some((hash.references.toSeq, ways))
    case _ => None
  }

  /** Returns a number below `ways`, by the hash of `columns`. */
  def number(columns: Seq[Attribute], ways: Int): Expression =
    Pmod(new Murmur3Hash(columns.map(CollationKey.injectCollationKey)), Literal(ways))

  def array(salts: Seq[Int]): Literal =
    Literal.create(salts, ArrayType(IntegerType, containsNull = false))

  /** Whether rows are divided by salts only. */
  def isAlone(key: Seq[Expression]): Boolean = key.nonEmpty && key.forall {
    case Salt(_, _) => true
    case column: Attribute => column.metadata.contains(marker)
    case _ => false
  }

  /**
   * Returns the hashable columns of a row's identity: the key, or every column. Empty for at most one row.
   */
  def columns(output: Seq[Attribute], key: Option[AttributeSet]): Seq[Attribute] = {
    val hashed = output.filter(column => RowOrdering.isOrderable(column.dataType))
    key.fold(hashed)(key => hashed.filter(key.contains))
  }
}
