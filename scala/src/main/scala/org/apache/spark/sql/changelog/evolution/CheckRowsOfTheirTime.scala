// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.identity.QueryRecord
import org.apache.spark.sql.changelog.plans.KeepsState
import org.apache.spark.sql.changelog.sources.RowsOfTheirTime
import org.apache.spark.sql.changelog.sources.tables.FollowedTables

/**
 * Refuses a changed query whose first batch would compute rows anew that depend on when they came. What is read from
 * kept state above them has stayed as it was, and what the query before did not have begins with the changed one.
 *
 * {{{
 *   Project g, s, added                    Filter n > 1
 *   +- Join                                +- ChangelogAggregate  all its rows are read from its state
 *      :- ChangelogAggregate                  +- Join
 *      +- names, a table not followed            :- orders
 *   refused                                      +- names
 * }}}
 *
 * @param refused
 *   the error, given the reason
 */
private[evolution] class CheckRowsOfTheirTime(
    was: QueryRecord,
    is: QueryRecord,
    kept: KeptParts,
    refused: String => AnalysisException) {

  /** @param reads what is computed in the first batch */
  def apply(reads: FirstBatchReads): Unit = {
    reads.computed.foreach {
      case node @ RowsOfTheirTime(why) if wasThere(why) => throw refused(reason(why, node))
      case _ =>
    }
    if (was.operators.exists(_.hasTtl)) {
      is.operators.filterNot(kept.contains).find(_.hasTtl).foreach { operator =>
        throw refused(
          s"${operator.shown} would begin anew, and what it has forgotten by a TTL would come back; " +
            "change the query without spark.sql.changelog.state.ttl")
      }
    }
  }

  private def reason(why: RowsOfTheirTime, node: LogicalPlan): String = why match {
    case RowsOfTheirTime.Leave =>
      s"${shown(node)} would begin anew, and rows that have left by ROW_TTL would come back; $WayOut"
    case RowsOfTheirTime.LookUp =>
      s"${shown(node)} would begin anew, and join rows once more, with the table of lookup as it is now"
    case RowsOfTheirTime.Meet(table) =>
      s"rows would meet ${FollowedTables.describe(table)} once more, as it is now, for its changes are not followed; " +
        WayOut
  }

  private def shown(node: LogicalPlan): String = node match {
    case operator: KeepsState =>
      is.operators.find(_.ids.contains(operator.operatorId)).map(_.shown).mkString
    case other => other.nodeName
  }

  /** Whether the query before has such rows. */
  private def wasThere(why: RowsOfTheirTime): Boolean = why match {
    case RowsOfTheirTime.Leave => was.lines.exists(_.contains("RowTtl"))
    case RowsOfTheirTime.LookUp => was.lines.exists(_.contains("LookupJoin"))
    // a view of Spark's names a table otherwise
    case _: RowsOfTheirTime.Meet => tablesOf(was).exists(tablesOf(is).contains)
  }

  private def tablesOf(record: QueryRecord): Seq[String] =
    record.lines.flatMap(Table.findFirstMatchIn(_)).map(_.group(1))

  private val Table = "^ *s\\d+: ((?:table|files) .*)".r

  private val WayOut =
    "an operator above that keeps its rows, such as an aggregate, can go on where nothing below it is changed"
}
