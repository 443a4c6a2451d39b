// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.spark.sql.catalyst.analysis.{UnresolvedRelation, UnresolvedTableValuedFunction}
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnresolvedWith}

import org.apache.spark.sql.changelog.views.changes.ChangesFunction

/** Finds the names of the tables and views read by a parsed query and by subqueries. */
object NamesRead {
  def apply(query: LogicalPlan): Seq[Seq[String]] = all(query, Set.empty) {
    case (relation: UnresolvedRelation, hidden) =>
      Seq(relation.multipartIdentifier).filterNot(isHidden(_, hidden))
    case (call: UnresolvedTableValuedFunction, _)
        if call.name.last.equalsIgnoreCase(ChangesFunction.Name) =>
      ChangesFunction
        .view(call.functionArgs)
        .map(CatalystSqlParser.parseMultipartIdentifier)
        .toSeq
  }.distinct

  /** Returns the tables of a parsed query, under the names used in the query. */
  def relations(query: LogicalPlan): Seq[UnresolvedRelation] =
    all(query, Set.empty) { case (relation: UnresolvedRelation, _) => Seq(relation) }

  /** Returns whether a name is a common table expression, which hides a table of this name. */
  def isHidden(parts: Seq[String], hidden: Set[String]): Boolean =
    parts.size == 1 && hidden.contains(parts.head.toLowerCase)

  /**
   * Returns the names hidden by common table expressions: in the main query, and in each expression's query, where only
   * earlier expressions are visible.
   *
   * @param hidden
   *   the names hidden around the `WITH`
   */
  def hiddenBy(tables: UnresolvedWith, hidden: Set[String]): (Seq[Set[String]], Set[String]) = {
    val names = tables.cteRelations.map { case (name, _, _) => name.toLowerCase }
    val before = names.scanLeft(hidden)(_ + _)
    (if (tables.allowRecursion) before.tail else before.init, before.last)
  }

  /** Collects `found` at every node of a query, given the names hidden at the node. */
  private def all[T](query: LogicalPlan, hidden: Set[String])(
      found: PartialFunction[(LogicalPlan, Set[String]), Seq[T]]): Seq[T] = query match {
    case tables: UnresolvedWith =>
      val (ofTables, inside) = hiddenBy(tables, hidden)
      tables.cteRelations.zip(ofTables).flatMap { case ((_, table, _), hidden) =>
        all(table, hidden)(found)
      } ++ all(tables.child, inside)(found)
    case other =>
      found.applyOrElse[(LogicalPlan, Set[String]), Seq[T]]((other, hidden), _ => Nil) ++
        (other.children ++ other.subqueries).flatMap(all(_, hidden)(found))
  }
}
