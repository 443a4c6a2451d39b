// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation

import org.apache.spark.sql.changelog.plans._
import org.apache.spark.sql.changelog.sources.tables.FollowedTables

/** Why rows that a node gives depend on when others came to it: computed anew, they would be others. */
sealed trait RowsOfTheirTime

object RowsOfTheirTime {

  /** Rows leave by `ROW_TTL`, which nobody knows later. */
  case object Leave extends RowsOfTheirTime

  /** Rows are joined by `lookup` with a table as it was when they came. */
  case object LookUp extends RowsOfTheirTime

  /**
   * Rows of a stream meet a table that is not followed, as it was when they came.
   *
   * @param table
   *   the relation that reads it
   */
  final case class Meet(table: LogicalPlan) extends RowsOfTheirTime

  /** @param node one of a query that streams, as it was analyzed or as it was rewritten */
  def unapply(node: LogicalPlan): Option[RowsOfTheirTime] = node match {
    case _: RowTtl | _: ChangelogRowTtl => Some(Leave)
    case _: LookupTable | _: LookupJoin => Some(LookUp)
    case join: ChangelogJoin if join.leftSide.form == SideForm.Nothing => Some(LookUp)
    case scan: DataSourceV2ScanRelation => unapply(scan.relation)
    case table if FollowedTables.isTable(table) && !FollowedTables.isFixed(table) =>
      Some(Meet(table))
    case _ => None
  }
}
