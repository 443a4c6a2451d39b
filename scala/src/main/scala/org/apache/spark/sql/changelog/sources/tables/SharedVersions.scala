// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.catalyst.expressions.{Alias, Literal}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE
import org.apache.spark.sql.classic.{Dataset, SparkSession}

import org.apache.spark.sql.changelog.connectors.delta.DeltaRelation

/**
 * SharedVersions: lets the views refreshed by a statement read a table at the same version, and look a table up once.
 *
 * A local property names the statement. Threads of queries inherit the property from their starting thread.
 */
object SharedVersions {
  private val Property = "spark.sql.changelog.statement"
  private val statements = new ConcurrentHashMap[String, Statement]()

  private class Statement {
    val began: Long = System.currentTimeMillis()
    val versions = new ConcurrentHashMap[String, AnyRef]()
    val lookups = new ConcurrentHashMap[(SparkSession, String), AnyRef]()
  }

  /** Runs `body`, as a part of the running statement if any. Each table's snapshot is taken once. */
  def within[T](session: SparkSession)(body: => T): T =
    if (began(session).nonEmpty) body else alone(session)(body)

  private def alone[T](session: SparkSession)(body: => T): T = {
    val context = session.sparkContext
    val before = context.getLocalProperty(Property)
    val statement = UUID.randomUUID.toString
    statements.put(statement, new Statement)
    context.setLocalProperty(Property, statement)
    try body
    finally {
      context.setLocalProperty(Property, before)
      statements.remove(statement)
      ()
    }
  }

  /** Returns the start of the sharing statement, if any. */
  def began(session: SparkSession): Option[Long] = statementOf(session).map(_.began)

  /** Returns the shared snapshot of a table. The first view of the statement takes the snapshot by `look`. */
  private[tables] def of[M <: AnyRef](session: SparkSession, table: String)(look: => M): M =
    shared(session).fold(look) { versions =>
      // A query waiting here for another query would otherwise take a separate snapshot.
      versions.computeIfAbsent(table, _ => look).asInstanceOf[M]
    }

  /** Returns the result of `look` for a table. A statement looks once in each session. */
  private[tables] def lookup[L <: AnyRef](session: SparkSession, wanted: String)(look: => L): L =
    statementOf(session).map(_.lookups).fold(look) { lookups =>
      Option(lookups.get((session, wanted)))
        .getOrElse {
          val found = look
          lookups.put((session, wanted), found)
          found
        }
        .asInstanceOf[L]
    }

  /** Discards the shared snapshot of a table. Returns false if the table has no shared snapshot. */
  private[tables] def forget(session: SparkSession, table: String): Boolean = {
    statementOf(session).foreach(_.lookups.clear())
    shared(session).exists(_.remove(table) != null)
  }

  /** Discards all shared snapshots, for example after a table has lost the version. */
  def forgetAll(session: SparkSession): Unit = statementOf(session).foreach { statement =>
    statement.versions.clear()
    statement.lookups.clear()
  }

  private def shared(session: SparkSession): Option[ConcurrentHashMap[String, AnyRef]] =
    statementOf(session).map(_.versions)

  private def statementOf(session: SparkSession): Option[Statement] =
    Option(session.sparkContext.getLocalProperty(Property)).flatMap { statement =>
      Option(statements.get(statement))
    }
}

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
