// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.cost

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.views.history.{
  RefreshEstimate, RefreshHistory, RefreshReason
}
import org.apache.spark.sql.changelog.views.{MaterializedView, ViewDependencies, ViewQuery}

/**
 * CheaperRefresh: decides whether to recompute a view although the changes are known, because recomputing costs less.
 */
class CheaperRefresh(session: SparkSession, view: MaterializedView, query: ViewQuery) {

  /** Fewer bytes take almost no time, and say little about rows, because small files are mostly metadata. */
  private val Little = 1L << 20

  private val Margin = 1.1

  /**
   * Returns the expected costs of both ways, as far as earlier refreshes tell. Returns None if recomputing is not
   * allowed.
   */
  def estimate(history: RefreshHistory): Option[RefreshEstimate] =
    if (query.whyNotRecomputable.nonEmpty) None
    else
      new ViewInputs(query, view.definition.checkpoint).size
        .map(new RefreshCosts(history.newest(RefreshCosts.Last))(_))

  /**
   * Returns whether most of the source data has changed. Recomputing the rows is then cheaper than computing the state.
   */
  def changesMost(changed: RefreshEstimate): Boolean = !changesAreRead &&
    changed.bytesChanged.exists { bytes =>
      bytes >= Little && bytes * 2 > changed.bytesInAll
    }

  /**
   * Returns whether the first refresh of a new view leaves the state to the second. Computing the state costs up to
   * four times as much as recomputing the rows, and pays only if more refreshes follow.
   */
  def waitsWithState(changed: RefreshEstimate, history: RefreshHistory): Boolean =
    history.lastSuccess.exists(_.reason == RefreshReason.New) && changed.bytesInAll >= Little &&
      changed.bytesChanged.exists(_ > 0) && !changesAreRead

  /** Returns the amount of changed data, without estimated costs. */
  def changed: Option[RefreshEstimate] =
    new ViewInputs(query, view.definition.checkpoint).size.map { size =>
      RefreshEstimate(size.inAll, Some(size.changed))
    }

  /** Returns whether recomputing is clearly cheaper. The margin covers rough estimates. */
  def isFull(estimate: RefreshEstimate): Boolean =
    estimate.bytesChanged.exists(_ >= Little) &&
      estimate.incrementalSeconds.zip(estimate.fullSeconds).exists { case (incremental, full) =>
        full * Margin < incremental
      } && !changesAreRead

  /** Whether a downstream view reads the changes. A recomputed Delta table reports all rows as changes. */
  private def changesAreRead: Boolean =
    view.isDelta &&
      new ViewDependencies(session).readersOf(view).nonEmpty
}
