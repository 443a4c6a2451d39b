// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.internal.SQLConf

/**
 * Finds the tables that a hint names, as Spark finds those of join hints: within the `SELECT` the
 * hint stands in.
 */
private[analysis] object HintedTables {

  /** `query` with what `over` makes of each table of that name; none if it reads no such table. */
  def placed(
      query: LogicalPlan,
      name: Seq[String],
      over: LogicalPlan => LogicalPlan): Option[LogicalPlan] = {
    val placed = place(query, name, over)
    if (placed.fastEquals(query)) None else Some(placed)
  }

  /** The names of the tables a query reads, as they would stand in a hint. */
  def names(query: LogicalPlan): Seq[String] = nameOf(query) match {
    case Some(name) => Seq(s"'${name.mkString(".")}'")
    case None if isOtherQuery(query) => Nil
    case None => query.children.flatMap(names)
  }

  private def place(
      plan: LogicalPlan,
      name: Seq[String],
      over: LogicalPlan => LogicalPlan): LogicalPlan = {
    val relation = nameOf(plan)
    if (relation.exists(matches(name, _))) over(plan)
    else if (relation.isDefined || isOtherQuery(plan)) plan
    else plan.mapChildren(place(_, name, over))
  }

  /** What a query calls a relation it reads. */
  private def nameOf(plan: LogicalPlan): Option[Seq[String]] = plan match {
    case UnresolvedRelation(name, _, _) => Some(name)
    case alias: SubqueryAlias => Some(alias.identifier.qualifier :+ alias.identifier.name)
    case _ => None
  }

  private def isOtherQuery(plan: LogicalPlan): Boolean =
    plan.isInstanceOf[View] || plan.isInstanceOf[UnresolvedWith]

  /** Whether a name in a hint is the end of a relation's. */
  private def matches(name: Seq[String], relation: Seq[String]): Boolean =
    name.size <= relation.size &&
      name.zip(relation.takeRight(name.size)).forall { case (one, other) =>
        SQLConf.get.resolver(one, other)
      }
}
