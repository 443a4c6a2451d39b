// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.spark.sql.catalyst.analysis.{UnresolvedRelation, UnresolvedTableValuedFunction}
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnresolvedWith}

import org.apache.spark.sql.changelog.views.changes.ChangesFunction

/** The names of the tables and views that a parsed query reads, in any of its parts. */
object NamesRead {
  def apply(query: LogicalPlan): Seq[Seq[String]] = {
    val found = relations(query).map(_.multipartIdentifier) ++ ofChanges(query)
    // a common table hides what else has its name
    val common = withs(query).flatMap(_.cteRelations).map(_._1.toLowerCase).toSet
    found.filterNot(parts => parts.size == 1 && common.contains(parts.head.toLowerCase)).distinct
  }

  /** The tables of a parsed query, as it names them. */
  def relations(query: LogicalPlan): Seq[UnresolvedRelation] =
    all(query) { case relation: UnresolvedRelation => relation }

  /** The views of which it reads `changes`. */
  private def ofChanges(query: LogicalPlan): Seq[Seq[String]] =
    all(query) {
      case call: UnresolvedTableValuedFunction
          if call.name.last.equalsIgnoreCase(ChangesFunction.Name) =>
        ChangesFunction.view(call.functionArgs).map(CatalystSqlParser.parseMultipartIdentifier)
    }.flatten

  private def withs(query: LogicalPlan): Seq[UnresolvedWith] =
    all(query) { case tables: UnresolvedWith => tables }

  /** What is found among all nodes of a query, those of its common tables too. */
  private def all[T](query: LogicalPlan)(found: PartialFunction[LogicalPlan, T]): Seq[T] =
    query.collectWithSubqueries(found) ++ commonTables(query).flatMap(all(_)(found))

  /** Common tables of a query, which are no children of its nodes. */
  private def commonTables(query: LogicalPlan): Seq[LogicalPlan] =
    query.collectWithSubqueries { case tables: UnresolvedWith =>
      tables.cteRelations.map(_._2)
    }.flatten
}
