// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.{ArrayType, IntegerType, Metadata, MetadataBuilder}

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
