// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.optimizer.InsertMapSortInGroupingExpressions
import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}

/** Lets an aggregate group by maps, equal ones together. */
object GroupByMaps {
  def apply(aggregate: Aggregate): LogicalPlan = InsertMapSortInGroupingExpressions(aggregate)
}

/** What only this version's parsers can do, handed to another parser. */
trait VersionParser extends ParserInterface {
  protected def delegate: ParserInterface
}
