// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** Rows get salts by a hash of what tells them apart, equal rows the same ones. */
class SaltSuite extends AnyFunSuite {
  private val salts = Seq(0, 2, 3, 7)

  private def column(name: String, dataType: DataType): AttributeReference =
    AttributeReference(name, dataType)()

  private def of(dataType: DataType, values: Any*): Seq[Any] = {
    val row = column("v", dataType)
    val salt = BindReferences.bindReference(Salt(Seq(row), salts), AttributeSeq(Seq(row)))
    val projection = UnsafeProjection.create(Seq(salt))
    values.map { value =>
      val found = salt.eval(InternalRow(value))
      assert(projection(InternalRow(value)).getInt(0) == found)
      found
    }
  }

  private def same(dataType: DataType, values: Any*): Unit = {
    val found = of(dataType, values: _*)
    assert(found.distinct.size == 1, s"$dataType: $found")
  }

  test("rows are divided among all salts, and get no others") {
    val counts = of(IntegerType, 1 to 4000: _*).groupBy(identity)
    assert(counts.keySet == salts.toSet)
    assert(
      counts.values.forall(_.size > 800),
      counts.map { case (salt, all) => salt -> all.size })
  }

  test("values that are equal have one salt, though their bytes are not") {
    same(DoubleType, 0.0, -0.0)
    same(FloatType, 0.0f, -0.0f)
    same(DoubleType, Double.NaN, java.lang.Double.longBitsToDouble(0x7ff8000000000001L))
    val lowercase = StringType("UTF8_LCASE")
    same(lowercase, Seq("Oslo", "OSLO", "oslo").map(UTF8String.fromString): _*)
    same(StringType("UNICODE_CI"), Seq("Å", "å").map(UTF8String.fromString): _*)
    val nested = StructType.fromDDL("city STRING COLLATE UTF8_LCASE, fare DOUBLE")
    same(
      nested,
      InternalRow(UTF8String.fromString("Oslo"), 0.0),
      InternalRow(UTF8String.fromString("OSLO"), -0.0))
  }

  test("NULL has a salt, too") {
    assert(of(IntegerType, null).forall(salts.contains))
  }

  test("a row is told apart by its key, or by all columns that can be compared") {
    val id = column("id", IntegerType)
    val city = column("city", StringType)
    val map = column("tags", MapType(StringType, StringType))
    val all = Seq(id, city, map)
    assert(Salt.columns(all, Some(AttributeSet(id))) == Seq(id))
    assert(Salt.columns(all, None) == Seq(id, city))
    // one row at most
    assert(Salt.columns(all, Some(AttributeSet.empty)).isEmpty)
    assert(Salt.columns(Seq(map), None).isEmpty)
  }

  test("a salt is known for one, and where it is all that divides rows") {
    val id = column("id", IntegerType)
    val salt = Salt(Seq(id), salts)
    assert(Salt.unapply(salt).contains((Seq(id), 4)))
    assert(Salt.unapply(Salt.number(Seq(id), 4)).isEmpty)
    val copied = AttributeReference(Salt.Name, IntegerType, nullable = false, Salt.metadata)()
    assert(Salt.isAlone(Seq(salt)) && Salt.isAlone(Seq(copied)))
    assert(!Salt.isAlone(Nil) && !Salt.isAlone(Seq(id, salt)))
    assert(!Salt.isAlone(Seq(column(Salt.Name, IntegerType))))
  }
}
