// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.records

import java.math.BigInteger
import java.util.Base64

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, Project}
import org.apache.spark.sql.types.{Decimal, DecimalType, StringType, StructType}
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.identity.CanonicalPlan

class RecordValuesSuite extends AnyFunSuite {
  private def text(value: String): UTF8String = UTF8String.fromString(value)

  test("instants have a unit, and don't overflow") {
    assert(RecordValues.micros(-1, text("Timestamp")) == -1000)
    assert(RecordValues.micros(5, text("MicroTimestamp")) == 5)
    assert(RecordValues.micros(-1, text("NanoTimestamp")) == -1)
    assert(RecordValues.micros(1999, text("NanoTimestamp")) == 1)
    assert(RecordValues.micros(Long.MaxValue, text("Timestamp")) == null)
    assert(RecordValues.micros(5, text("int64")) == null)
    // as PostgreSQL's driver writes infinity
    Seq(9223372036825200000L, -9223372036832400000L).foreach { infinity =>
      Seq("Timestamp", "MicroTimestamp", "NanoTimestamp").foreach { unit =>
        assert(RecordValues.micros(infinity, text(unit)) == null)
      }
    }
  }

  test("times of day have a unit, and end with the day") {
    assert(RecordValues.nanosOfDay(1, text("Time")) == 1000000)
    assert(RecordValues.nanosOfDay(86399999999L, text("MicroTime")) == 86399999999000L)
    assert(RecordValues.nanosOfDay(7, text("NanoTime")) == 7)
    assert(RecordValues.nanosOfDay(86400000, text("Time")) == null)
    assert(RecordValues.nanosOfDay(-1, text("NanoTime")) == null)
    assert(RecordValues.nanosOfDay(1, text("int64")) == null)
  }

  test("decimals are bytes of any length, with either sign") {
    def decimal(unscaled: String, scale: Int, precision: Int = 38, targetScale: Int = 2) = {
      val bytes = new BigInteger(unscaled).toByteArray
      val base64 = text(Base64.getEncoder.encodeToString(bytes))
      Option(RecordValues.decimal(base64, scale, precision, targetScale)).map(_.toString)
    }
    assert(decimal("0", 2).contains("0.00"))
    assert(decimal("-1", 2).contains("-0.01"))
    assert(decimal("255", 2).contains("2.55"))
    assert(decimal("-32769", 1).contains("-3276.90"))
    assert(decimal("9" * 38, 2).contains("9" * 36 + ".99"))
    assert(decimal("9" * 39, 2).isEmpty)
    assert(decimal("100", 0, precision = 4).isEmpty)
    assert(decimal("7", -3).contains("7000.00"))
    assert(RecordValues.decimal(text("?"), 0, 4, 2) == null)
    assert(RecordValues.decimal(text(""), 0, 4, 2) == (null: Decimal))
  }

  test("digits that a decimal has no room for are rounded only of numbers that are not exact") {
    def decimal(value: String, encoding: String = "string") =
      Option(RecordValues.exactDecimal(text(value), text(encoding), 4, 1)).map(_.toString)
    assert(decimal("1.5").contains("1.5"))
    assert(decimal(" -1.500 ").contains("-1.5"))
    assert(decimal("15e1").contains("150.0"))
    assert(decimal("0e999999999").contains("0.0"))
    for (value <- Seq("1.25", "1e-2", "1e-999999999", "1234", "1e999999999", "x", "NaN")) {
      assert(decimal(value).isEmpty, value)
    }
    for (inexact <- Seq("double", "float32")) {
      assert(decimal("0.1500000059604645", inexact).contains("0.2"))
      assert(decimal("-1e-999999999", inexact).contains("0.0"))
      assert(decimal("999.96", inexact).isEmpty)
      assert(decimal("1e999999999", inexact).isEmpty)
    }
    val bytes = text(Base64.getEncoder.encodeToString(BigInteger.valueOf(125).toByteArray))
    assert(RecordValues.decimal(bytes, 2, 4, 1) == null)
  }

  test("a query is known by the expressions that older checkpoints have") {
    val json = AttributeReference("value", StringType)()
    def lines(value: Expression) =
      CanonicalPlan(Project(Seq(Alias(value, "x")()), LocalRelation(json))).lines
    def invoked(function: String, more: Expression*) =
      StaticInvoke(RecordValues.getClass, DecimalType(4, 1), function, json +: more)
    val parser = RecordParser(new StructType().add("a", "string"), "UTC", "_corrupt")
    assert(lines(parser(json)) == lines(parser.ofSpark(json)))
    assert(lines(invoked("roundedDecimal", Literal(1))) == lines(invoked("decimal", Literal(1))))
    val cast = Cast(json, DecimalType(4, 1), Some("UTC"), EvalMode.TRY)
    assert(lines(invoked("exactDecimal", Literal("string"))) == lines(cast))
    assert(lines(invoked("decimal", Literal(1))) != lines(invoked("decimal", Literal(2))))
  }

  test("bytes are read strictly") {
    def bytes(value: String, encoding: String) =
      Option(RecordValues.bytes(text(value), text(encoding))).map(_.toSeq.map(_.toInt & 255))
    assert(bytes("AP8h", "base64").contains(Seq(0, 255, 33)))
    assert(bytes("_-8=", "base64-url-safe").contains(Seq(255, 239)))
    assert(bytes("00fF", "hex").contains(Seq(0, 255)))
    assert(bytes("aé", "iso-8859-1").contains(Seq(97, 233)))
    assert(bytes("_-8=", "base64").isEmpty)
    assert(bytes("a b", "base64").isEmpty)
    assert(bytes("xy", "hex").isEmpty)
  }
}
