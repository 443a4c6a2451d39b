// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation
import org.apache.spark.sql.types.{ByteType, IntegerType}

import org.apache.spark.sql.changelog.{RowKind, UpdateKind}

/** What Spark does to the columns of a node reaches those within its groups of parameters. */
class ParameterGroupSuite extends AnyFunSuite {
  private val Seq(a, b, c) = Seq("a", "b", "c").map(AttributeReference(_, IntegerType)())
  private val kind = RowKind.newAttribute()
  private val left = JoinedSide(
    Seq(Add(a, Literal(1)), b),
    Some(kind),
    SideForm.RowByKey,
    Seq(b),
    tracksMatches = true,
    replaces = false)
  private val right =
    JoinedSide(Seq(c, c), None, SideForm.RowCount, Nil, tracksMatches = false, replaces = true)
  private val join = ChangelogJoin(
    Inner,
    left,
    right,
    Seq(true, false),
    None,
    JoinResult(
      Some(Seq(b, c)),
      deletes = true,
      UpdateKind.BeforeAndAfter,
      RowKind.newAttribute()),
    operatorId = 7,
    LocalRelation(a, b, kind),
    LocalRelation(c))

  test("columns are seen, and the rest of the parameters is no expression") {
    assert(left.children == Seq(Add(a, Literal(1)), b, kind, b))
    assert(right.children == Seq(c, c))
    assert(join.references == AttributeSet(Seq(a, b, c, kind)))
    assert(join.resolved && join.missingInput.isEmpty)
  }

  test("columns are renamed where they are, and all else stays") {
    val (newB, newKind) = (b.newInstance(), kind.newInstance())
    val renamed = join.transformExpressions {
      case column: Attribute if column.exprId == b.exprId => newB
      case column: Attribute if column.exprId == kind.exprId => newKind
    }
    assert(
      renamed == join.copy(
        leftSide = left
          .copy(key = Seq(Add(a, Literal(1)), newB), kind = Some(newKind), rowKey = Seq(newB)),
        result = join.result.copy(pairBy = Some(Seq(newB, c)))))
    assert(newKind.dataType == ByteType)
    assert(join.transformExpressions { case column: Attribute => column } == join)
  }
}
