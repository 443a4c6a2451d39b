// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.planning.PhysicalOperation
import org.apache.spark.sql.catalyst.plans.logical.{Join, LeafNode, LogicalPlan, UnaryNode}
import org.apache.spark.sql.catalyst.plans.{Inner, JoinType, LeftAnti, LeftOuter, LeftSemi}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.compat.JdbcReading

/**
 * A join of each row with the rows of a database table that have the row's key. Only the keys of a batch are read.
 *
 * @param condition
 *   the conditions of the join beside the equality of keys
 */
case class PointLookup(
    joinType: JoinType,
    leftKey: Seq[Expression],
    table: LookedUpTable,
    condition: Option[Expression],
    child: LogicalPlan)
    extends UnaryNode {

  override def output: Seq[Attribute] = ChangelogJoin.output(joinType, child.output, table.output)

  override def producedAttributes: AttributeSet = AttributeSet(table.read ++ table.output)

  override protected def withNewChildInternal(newChild: LogicalPlan): PointLookup =
    copy(child = newChild)
}

/**
 * The table of a [[PointLookup]].
 *
 * @param read
 *   the columns to read
 * @param key
 *   the columns to search, in the order of the left key
 * @param filters
 *   the conditions on the columns read
 * @param columns
 *   the columns of the result, computed from the columns read
 */
case class LookedUpTable(
    source: JdbcReading,
    read: Seq[Attribute],
    key: Seq[Attribute],
    filters: Seq[Expression],
    columns: Seq[NamedExpression]) {

  def output: Seq[Attribute] = columns.map(_.toAttribute)

  /** The schema of the columns read. The metadata determines how Spark reads a column. */
  def schema: StructType = DataTypeUtils.fromAttributes(read)

  /** Leaves the connection's options out, because they may be secrets. */
  override def toString: String = s"${source.tableOrQuery} [${read.map(_.name).mkString(", ")}]"
}

object PointLookup {

  /**
   * The mark of a table, in the metadata of its columns. Spark's rules keep the metadata, but not a tag of the table.
   */
  private val Mark = "changelog_point_lookup"

  /** Marks the database tables of a `lookup`. */
  def mark(plan: LogicalPlan): LogicalPlan = plan.transform { case leaf: LeafNode =>
    JdbcReading.asSource(leaf).fold[LogicalPlan](leaf) { relation =>
      relation.copy(output = relation.output.map { column =>
        val metadata = new MetadataBuilder().withMetadata(column.metadata)
        column.withMetadata(metadata.putBoolean(Mark, value = true).build())
      })
    }
  }

  private def isMarked(plan: LogicalPlan): Boolean = plan.output.exists(_.metadata.contains(Mark))

  /**
   * Returns the lookup of a join whose right side is a marked table, with deterministic filters
   * and projections above. The key must consist of columns of the table with integers, decimals
   * or texts: equal values of these types are equal in every database.
   */
  def find(
      join: Join,
      pairs: Seq[(Expression, Expression)],
      rest: Seq[Expression]): Option[PointLookup] = (join.joinType, join.right) match {
    case (Inner | LeftOuter | LeftSemi | LeftAnti, PhysicalOperation(columns, filters, leaf))
        if pairs.nonEmpty && isMarked(leaf) =>
      val byId = columns.map(column => column.exprId -> unaliased(column)).toMap
      val key = pairs.collect {
        case (_, column: Attribute) if isSearchable(column.dataType) =>
          byId.get(column.exprId).flatMap(read => leaf.output.find(_.semanticEquals(read)))
      }.flatten
      val used = AttributeSet((columns: Seq[Expression]) ++ filters ++ key)
      val isSupported = key.size == pairs.size && (columns ++ filters).forall(_.deterministic)
      JdbcReading.of(leaf).filter(_ => isSupported).map { source =>
        val table =
          LookedUpTable(source, leaf.output.filter(used.contains), key, filters, columns)
        val condition = rest.reduceOption(And(_, _))
        PointLookup(join.joinType, pairs.map(_._1), table, condition, join.left)
      }
    case _ => None
  }

  private def unaliased(column: NamedExpression): Expression = column match {
    case Alias(child, _) => child
    case other => other
  }

  private def isSearchable(dataType: DataType): Boolean = dataType match {
    case ByteType | ShortType | IntegerType | LongType | _: DecimalType => true
    case text: StringType => text.isUTF8BinaryCollation
    case _ => false
  }
}
