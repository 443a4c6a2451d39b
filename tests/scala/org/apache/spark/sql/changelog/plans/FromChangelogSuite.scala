// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.analysis.UpdateAttributeNullability
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LocalRelation, LogicalPlan}
import org.apache.spark.sql.types.IntegerType

/** What the optimizer learns of a table from the rows a batch happens to bring. */
class FromChangelogSuite extends AnyFunSuite {
  private val column = AttributeReference("v", IntegerType)()
  private val rows = LocalRelation(Seq(column), isStreaming = true)
  private val filtered = Filter(GreaterThan(column, Literal(3)), rows)

  private def source(child: LogicalPlan, streaming: Boolean): FromChangelog =
    FromChangelog.ofInserts(child, streaming)

  test("a filter below a stream, which goes when there is no news, says nothing above it") {
    assert(source(filtered, streaming = true).constraints.isEmpty)
    assert(source(filtered, streaming = false).constraints.nonEmpty)
  }

  test("a stream's columns can be NULL if they could when the query was analyzed") {
    val neverNull = rows.copy(output = Seq(column.withNullability(false)))
    def updated(streaming: Boolean): LogicalPlan =
      UpdateAttributeNullability(source(rows, streaming).withNewChildren(Seq(neverNull)))
    assert(updated(streaming = true).output.forall(_.nullable))
    assert(!updated(streaming = false).output.exists(_.nullable))
  }
}
