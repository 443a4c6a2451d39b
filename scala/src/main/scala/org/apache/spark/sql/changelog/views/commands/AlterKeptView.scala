// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.errors.ViewErrors
import org.apache.spark.sql.changelog.views._

/**
 * `ALTER MATERIALIZED VIEW v SET TBLPROPERTIES (…)` and `UNSET TBLPROPERTIES [IF EXISTS] (…)`. A
 * query that keeps the view now goes on as it is; one of files in another process is an obstacle.
 */
case class AlterKeptView(
    name: Seq[String],
    set: Map[String, String],
    unset: Seq[String],
    ifExists: Boolean)
    extends ViewCommand {
  override protected def runIn(session: SparkSession): Seq[Row] = {
    // what the catalog says of files is changed as a whole, as each batch of the query does
    if (find(session, name).isDelta) ViewLeases.besideQuery(session, name)(alter(session, _))
    else ViewLeases(session, name)(alter(session, _))
    Nil
  }

  private def alter(session: SparkSession, view: KeptView): Unit = {
    val old = view.definition.properties
    def is(name: String)(other: String) = name.equalsIgnoreCase(other)
    if (!ifExists) unset.find(name => !old.keys.exists(is(name))).foreach { name =>
      throw ViewErrors.propertyUnknown(name, old.keys.toSeq)
    }
    val replaced = unset ++ set.keys
    val kept = old.filterNot { case (name, _) => replaced.exists(is(name)) }
    val altered = view.definition.copy(properties = kept ++ set).check()
    val definition =
      if (replaced.exists(is(ViewDefinition.Follow))) altered.following else altered
    ViewStorage(session, definition.provider).alter(view, definition)
  }
}
