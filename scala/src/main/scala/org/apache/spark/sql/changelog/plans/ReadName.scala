// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, SubqueryAlias, View}

/**
 * What a query calls what it reads: after its view, or as it is called in the query where it has none.
 *
 * @param isOfView
 *   whether nothing below can be called otherwise
 */
final case class ReadName(name: Option[String], isOfView: Boolean = false) {

  /** The name below a node that may give one. */
  def below(node: LogicalPlan): ReadName = node match {
    case _ if isOfView => this
    case alias: SubqueryAlias => ReadName(ReadName.of(alias).orElse(name))
    case _: View => copy(isOfView = name.nonEmpty)
    case _ => this
  }
}

object ReadName {
  val Unknown: ReadName = ReadName(None)

  /** What the rows are called that a source reads. */
  def within(source: FromChangelog): Option[String] =
    source.child.collectFirst { case alias: SubqueryAlias => of(alias) }.flatten

  private def of(alias: SubqueryAlias): Option[String] =
    Some(alias.identifier.name).filterNot(isMadeUp)

  /** Whether PySpark has made up the name, for a data frame. */
  def isMadeUp(name: String): Boolean = name.startsWith("_pyspark") || name.startsWith("__")
}
