// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.errors.ViewErrors
import org.apache.spark.sql.changelog.views.{KeptView, RefuseSecrets, ViewStorage, ViewTurns}

/**
 * `ALTER MATERIALIZED VIEW v SET TBLPROPERTIES (…)` and `UNSET TBLPROPERTIES [IF EXISTS] (…)`. A
 * query that keeps the view now goes on as it is.
 */
case class AlterKeptView(
    name: Seq[String],
    set: Map[String, String],
    unset: Seq[String],
    ifExists: Boolean)
    extends ViewCommand {
  override protected def runIn(session: SparkSession): Seq[Row] = {
    ViewTurns.besideQuery(session, name)(alter(session, _))
    Nil
  }

  private def alter(session: SparkSession, view: KeptView): Unit = {
    RefuseSecrets(view.sql, set, LocalRelation())
    val old = view.definition.properties
    def is(name: String)(other: String) = name.equalsIgnoreCase(other)
    if (!ifExists) unset.find(name => !old.keys.exists(is(name))).foreach { name =>
      throw ViewErrors.propertyUnknown(name, old.keys.toSeq)
    }
    val replaced = unset ++ set.keys
    val kept = old.filterNot { case (name, _) => replaced.exists(is(name)) }
    val definition = view.definition.copy(properties = kept ++ set).check()
    ViewStorage(session, definition.provider).alter(view, definition)
  }
}
