// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.errors.ViewErrors
import org.apache.spark.sql.changelog.savepoints.Moment
import org.apache.spark.sql.changelog.views._

/**
 * `RESTORE MATERIALIZED VIEW v TO BATCH n | TO SAVEPOINT s`: the view has the rows, the state and the query
 * that it had then, and goes on from there.
 */
case class RestoreKeptView(name: Seq[String], to: Moment) extends ViewCommand {
  override protected def runIn(session: SparkSession): Seq[Row] = {
    ViewLeases(session, name) { view =>
      RunningViews.active(view).foreach(_ => throw ViewErrors.isRunning(view.name))
      val image = ViewImage(session, view, to)
      new ViewDependencies(session).checkNoCycle(view.name, image.view.definition)
      val moment = to match {
        case Moment.AtSavepoint(savepoint) => s"the savepoint $savepoint, "
        case _ => ""
      }
      new ViewRestore(session, image)(
        view,
        "restored",
        s"it was put back to ${moment}batch ${image.batch}")
    }
    Nil
  }
}
