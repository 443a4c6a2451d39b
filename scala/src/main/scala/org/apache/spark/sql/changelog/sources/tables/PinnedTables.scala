// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.spark.sql.catalyst.expressions.{Alias, Literal}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE
import org.apache.spark.sql.classic.{Dataset, SparkSession}

import org.apache.spark.sql.changelog.connectors.delta.DeltaRelation

/**
 * PinnedTables: the rows of a query at pinned versions of its Delta tables. The recorded versions always give equal
 * rows.
 */
private[sources] object PinnedTables {

  /**
   * Returns the current versions of the tables, in the order of the plan. Returns None if the plan's result is not
   * repeatable.
   */
  def versions(session: SparkSession, plan: LogicalPlan): Option[Seq[TableVersion]] = {
    val (pinned, others) = plan.collectLeaves().partition(isPinned)
    val tables =
      pinned.map(FollowedTables.trackingOf(session, _, None, keepsCopies = true).toOption)
    if (others.forall(isFixed) && tables.forall(_.isDefined) && isRepeatable(plan)) {
      Some(tables.flatten.map(tracking => new DeltaTable(session, tracking.name).now()))
    } else None
  }

  /** Returns the plan over the recorded versions of the tables. */
  def at(session: SparkSession, plan: LogicalPlan, versions: Seq[TableVersion]): LogicalPlan = {
    val remaining = versions.iterator
    val pinned = plan.transformUp {
      case leaf: LeafNode if isPinned(leaf) =>
        val version = remaining.next()
        val rows = new DeltaTable(session, version.table).rowsOnce(version)
        val columns = leaf.output.map { column =>
          // A column added later is NULL in this version.
          val found =
            rows.output.find(_.name == column.name).getOrElse(Literal(null, column.dataType))
          Alias(found, column.name)(column.exprId, column.qualifier, Some(column.metadata))
        }
        Project(columns, rows)
    }
    Dataset.ofRows(session, pinned).queryExecution.analyzed
  }

  private def isPinned(leaf: LogicalPlan): Boolean = leaf match {
    case DeltaRelation(table) => !table.isTimeTravel
    case _ => false
  }

  private def isFixed(leaf: LogicalPlan): Boolean = leaf match {
    case _: LocalRelation | _: OneRowRelation | _: Range => true
    case other => FollowedTables.isFixed(other)
  }

  /** Returns whether equal source rows always give equal results. */
  private def isRepeatable(plan: LogicalPlan): Boolean =
    plan.deterministic && !plan.containsPattern(CURRENT_LIKE) && plan.subqueriesAll.isEmpty &&
      !plan.exists {
        case _: GlobalLimit | _: LocalLimit | _: Sample => true
        case _ => false
      }
}
