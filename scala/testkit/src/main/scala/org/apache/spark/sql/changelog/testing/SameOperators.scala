// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper
import org.apache.spark.sql.streaming.StreamingQuery

/**
 * Checks that a query has the same operators in every batch, over the same columns, whichever of its
 * sources have news and however often it was begun anew. In what form changes come to an operator
 * may differ, as values are combined before or not, and so may what is known of NULLs in a batch.
 */
private[testing] class SameOperators {
  private var known = Option.empty[Seq[String]]

  /** Looks at the last batch, if there was one. */
  def check(query: StreamingQuery): Unit = {
    val last = query.asInstanceOf[StreamingQueryWrapper].streamingQuery.lastExecution
    if (last != null) {
      val now = last.executedPlan.collect { case operator: StateStoreWriter =>
        val id = operator.stateInfo.map(_.operatorId)
        s"${operator.nodeName} $id ${describe(operator.output)}"
      }
      known.foreach { before =>
        assert(
          now == before,
          s"operators${now.mkString("\n  ", "\n  ", "\n")}were${before.mkString("\n  ", "\n  ", "")}")
      }
      known = Some(now)
    }
  }

  private def describe(columns: Seq[Attribute]): String =
    columns
      .map(column => s"${column.name} ${column.dataType.sql}")
      .mkString("[", ", ", "]")
}
