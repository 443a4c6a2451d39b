// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.optimizer.InsertMapSortInAggregate
import org.apache.spark.sql.catalyst.parser.{ParserInterface, SqlStatementSplitResult}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}

/** Sorts the entries of maps in grouping columns, to group equal maps together. */
object GroupByMaps {
  def apply(aggregate: Aggregate): LogicalPlan = InsertMapSortInAggregate(aggregate)
}

/** The parser operations only in Spark 4.3, delegated to another parser. */
trait VersionParser extends ParserInterface {
  protected def delegate: ParserInterface

  override def splitStatements(sqlText: String): SqlStatementSplitResult =
    delegate.splitStatements(sqlText)
}
