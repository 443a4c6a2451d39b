// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.classic.SparkSession

/**
 * Lets all views that one statement refreshes see a table at one moment, at which it is looked at once.
 *
 * Threads of queries know the statement by a property, which they have of the thread that starts them.
 */
object SharedMoments {
  private val Property = "spark.sql.changelog.statement"
  private val statements = new ConcurrentHashMap[String, Statement]()

  private class Statement {
    val began: Long = System.currentTimeMillis()
    val moments = new ConcurrentHashMap[String, AnyRef]()
  }

  /** Within `body` every table is looked at once. */
  def within[T](session: SparkSession)(body: => T): T = {
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

  /** Since when views share what they see of tables, if they do. */
  def began(session: SparkSession): Option[Long] = statementOf(session).map(_.began)

  /** What is known of a table, which `look` finds out unless another view of the statement has. */
  private[tables] def of[M <: AnyRef](session: SparkSession, table: String)(look: => M): M =
    shared(session).fold(look) { moments =>
      // a query that waits for another here would have looked itself
      moments.computeIfAbsent(table, _ => look).asInstanceOf[M]
    }

  /** Lets a table be looked at once more; false if no view shares what is known of it. */
  private[tables] def forget(session: SparkSession, table: String): Boolean =
    shared(session).exists(_.remove(table) != null)

  /** Lets all tables be looked at once more, as when what was seen of one is no longer there. */
  def forgetAll(session: SparkSession): Unit = shared(session).foreach(_.clear())

  private def shared(session: SparkSession): Option[ConcurrentHashMap[String, AnyRef]] =
    statementOf(session).map(_.moments)

  private def statementOf(session: SparkSession): Option[Statement] =
    Option(session.sparkContext.getLocalProperty(Property)).flatMap { statement =>
      Option(statements.get(statement))
    }
}
