// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.errors.ViewErrors
import org.apache.spark.sql.changelog.evolution.StatePlan
import org.apache.spark.sql.changelog.views._

/**
 * `ALTER MATERIALIZED VIEW v AS query`: the view has the rows of another query from now on. Operators that
 * mean the same as before keep their state. Readers see the old rows until the new ones are there.
 */
case class AlterViewQuery(name: Seq[String], query: String) extends ViewCommand {
  override protected def runIn(session: SparkSession): Seq[Row] = {
    ViewLeases(session, name) { view =>
      RunningViews.active(view).foreach(_ => throw ViewErrors.isRunning(view.name))
      val altered = AlterViewQuery.altered(session, view, query)
      new ViewDependencies(session).checkNoCycle(view.name, altered.definition)
      new ViewRefresh(session, altered).evolve(view)
    }
    Nil
  }
}

/**
 * `EXPLAIN ALTER MATERIALIZED VIEW v AS query`: what would become of the state of each operator. Returns no rows for a
 * view without state, which is recomputed.
 */
case class ExplainAlteredView(name: Seq[String], query: String) extends ViewCommand {
  override val output: Seq[Attribute] = StatePlan.columns

  override protected def runIn(session: SparkSession): Seq[Row] = {
    val view = find(session, name)
    val altered = AlterViewQuery.altered(session, view, query)
    if (ViewRefresh.isWithoutState(session, view)) Nil
    else {
      val evolution = new ViewEvolution(new ViewQuery(session, altered.definition), view)
      evolution.operators.map(_.toRow)
    }
  }
}

object AlterViewQuery {

  /** The view as it is with another query. */
  def altered(session: SparkSession, view: KeptView, query: String): KeptView = {
    val definition = view.definition.copy(query = query, temporaryViews = None)
    val changed = new ViewQuery(session, definition).check()
    if (changed.reads(view.name)) throw ViewErrors.recursive(view.name)
    val schema = new ViewColumns(view.name, Nil)(changed, session)._2
    val known = definition.copy(temporaryViews = Some(changed.temporaryViews))
    KeptView(view.name, schema, known, DeltaLayout.of(session, view, schema))
  }
}
