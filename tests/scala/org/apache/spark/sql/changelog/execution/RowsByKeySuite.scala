// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import scala.collection.mutable
import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeProjection
import org.apache.spark.sql.types._

/** Keys that share a hash are told apart, in whatever way their rows are mixed. */
class RowsByKeySuite extends AnyFunSuite {
  private val key = AttributeReference("key", LongType)()
  private val value = AttributeReference("value", LongType)()
  private val columns = Seq(key, value)

  /** Rows that are all read into the same bytes, as a sort gives them. */
  private def rows(values: Seq[(Long, Long)]): Iterator[InternalRow] = {
    val projection = UnsafeProjection.create(Array[DataType](LongType, LongType))
    values.iterator.map { case (key, value) => projection(InternalRow(key, value)) }
  }

  private def projection(expression: Expression): InternalRow => UnsafeRow = {
    val generated = GenerateUnsafeProjection.generate(Seq(expression), columns)
    generated(_)
  }

  /** Values by key, in the order of keys' first rows; `hash` gives what rows are sorted by. */
  private def grouped(
      values: Seq[(Long, Long)],
      hash: Option[Expression]): Seq[(Long, Seq[Long])] =
    new RowsByKey(rows(values), projection(key), hash.map(projection)).map { case (key, its) =>
      key.getLong(0) -> its.map(_.getLong(1)).toList
    }.toSeq

  private def expected(values: Seq[(Long, Long)]): Map[Long, Seq[Long]] =
    values.groupMap(_._1)(_._2)

  test("rows of one key come one after the other, in their order") {
    val values = Seq(3L -> 1L, 3L -> 2L, 1L -> 3L, 2L -> 4L, 2L -> 5L)
    assert(grouped(values, None) == Seq(3L -> Seq(1L, 2L), 1L -> Seq(3L), 2L -> Seq(4L, 5L)))
    assert(grouped(Nil, None).isEmpty)
  }

  test("keys with the same hash are told apart") {
    val random = new Random(1)
    (1 to 200).foreach { size =>
      // few hashes, each of several keys
      val values = Seq.tabulate(size)(i => random.nextInt(12).toLong -> i.toLong).sortBy(_._1 % 3)
      val found = grouped(values, Some(Pmod(key, Literal(3L))))
      assert(found.map(_._1).distinct.size == found.size)
      assert(found.toMap == expected(values))
    }
  }

  test("what nobody asks for is left out") {
    val values = Seq(1L -> 1L, 4L -> 2L, 1L -> 3L, 4L -> 4L, 2L -> 5L, 2L -> 6L)
    val seen = mutable.ArrayBuffer.empty[Long]
    val all =
      new RowsByKey(rows(values), projection(key), Some(projection(Pmod(key, Literal(3L)))))
    while (all.hasNext) seen += all.next()._1.getLong(0)
    assert(seen == Seq(1L, 4L, 2L))
  }

  test("keys of any type are sorted by eight bytes, unless equal ones can differ in theirs") {
    def sorted(types: DataType*): Seq[Expression] =
      RowsByKey.order(types.map(AttributeReference("c", _)())).map(_.child)
    assert(sorted(LongType).head.isInstanceOf[Attribute])
    assert(sorted(StringType).head.isInstanceOf[XxHash64])
    assert(sorted(LongType, StringType).map(_.getClass) == Seq(classOf[XxHash64]))
    assert(sorted(LongType, DoubleType).forall(_.isInstanceOf[Attribute]))
    assert(sorted(StringType("UTF8_LCASE")).forall(_.isInstanceOf[Attribute]))
    assert(sorted().isEmpty)
  }
}
