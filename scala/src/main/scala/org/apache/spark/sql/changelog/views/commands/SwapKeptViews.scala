// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.errors.ViewErrors
import org.apache.spark.sql.changelog.views._

/** `ALTER MATERIALIZED VIEW v SWAP WITH w`: each is from then on what the other was. */
case class SwapKeptViews(name: Seq[String], other: Seq[String]) extends ViewCommand {
  override protected def runIn(session: SparkSession): Seq[Row] = {
    ViewLeases.both(session, name, other) { (v, w) =>
      Seq(v, w).foreach { view =>
        RunningViews.active(view).foreach(_ => throw ViewErrors.isRunning(view.name))
      }
      if (v.definition.provider != w.definition.provider) {
        throw ViewErrors.clauseNotSupported(
          v.sql,
          s"SWAP with ${w.sql}, which is stored USING ${w.definition.provider}",
          s"Make that one USING ${v.definition.provider}.")
      }
      val dependencies = new ViewDependencies(session)
      dependencies.checkNoCycle(v.name, w.definition)
      dependencies.checkNoCycle(w.name, v.definition)
      if (v.name != w.name) ViewSwap(session, v, w)
    }
    Nil
  }
}
