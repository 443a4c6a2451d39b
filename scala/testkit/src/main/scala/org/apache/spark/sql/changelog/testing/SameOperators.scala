// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper
import org.apache.spark.sql.streaming.StreamingQuery

/**
 * Checks that a query has the same operators over the same columns in every batch, whichever sources have data
 * and however often the query restarts. The form of an operator's input may differ, for example combined or
 * uncombined values. The nullability of columns may differ, too.
 */
private[testing] class SameOperators {
  private var known = Option.empty[Seq[String]]

  /** Checks the last batch, if any. */
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
