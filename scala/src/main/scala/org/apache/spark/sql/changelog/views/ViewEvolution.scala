// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.changelog.evolution.{Evolution, StatePlan}

/** How a view goes on whose query is another one from now on. Refuses what can't. */
class ViewEvolution(query: ViewQuery, before: KeptView) {
  private val evolution = new Evolution(
    query.session,
    before.definition.checkpoint,
    query.changes.queryExecution.analyzed)

  /** What becomes of each operator. */
  def operators: Seq[StatePlan] = evolution.operators

  /** Makes the checkpoint with which the changed query begins. The view itself knows whose rows it shows. */
  def prepare(checkpoint: Path): Unit =
    evolution.prepare(checkpoint, held = None, noted = false)

  /** Whether anything of what was kept is of use. */
  def keepsState: Boolean = numKept > 0

  /** How much is kept, for people. */
  def summary: String = {
    val numNow = operators.count(_.state != "dropped")
    s"the query was changed; $numKept of $numNow nodes have kept their state"
  }

  private def numKept: Int = operators.count(_.isKept)
}
