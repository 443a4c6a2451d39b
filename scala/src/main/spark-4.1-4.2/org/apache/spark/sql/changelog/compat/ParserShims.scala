// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.optimizer.InsertMapSortInGroupingExpressions
import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}

/** Sorts the entries of maps in grouping columns, to group equal maps together. */
object GroupByMaps {
  def apply(aggregate: Aggregate): LogicalPlan = InsertMapSortInGroupingExpressions(aggregate)
}

/** The parser operations only in Spark 4.1 and 4.2, delegated to another parser. */
trait VersionParser extends ParserInterface {
  protected def delegate: ParserInterface
}
