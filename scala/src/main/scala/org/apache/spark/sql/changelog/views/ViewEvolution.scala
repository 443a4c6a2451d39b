// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.changelog.evolution.{Evolution, OperatorFate}

/** How a view goes on whose query is another one from now on. */
class ViewEvolution(query: ViewQuery, before: KeptView) {
  private lazy val evolution = new Evolution(
    query.session,
    before.definition.checkpoint,
    query.changes.queryExecution.analyzed)

  /** What becomes of each operator. */
  def operators: Seq[OperatorFate] = evolution.operators

  /** Refuses what can't go on. */
  def prepared(): this.type = {
    evolution.check()
    this
  }

  /** Makes the checkpoint with which the changed query begins. */
  def prepare(checkpoint: Path): Unit = evolution.prepare(checkpoint, held = None)

  /** How much is kept, for people. */
  def summary: String = {
    val now = operators.filter(_.state != "dropped")
    val kept = now.count(_.state == "kept")
    s"the query was changed; $kept of ${now.size} nodes have kept their state"
  }
}
