// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.cost

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.views.history.{RefreshEstimate, RefreshHistory}
import org.apache.spark.sql.changelog.views.{KeptView, ViewDependencies, ViewQuery}

/**
 * Decides whether all rows of a view are computed anew although what has changed is known, because
 * that costs less.
 */
class CheaperRefresh(session: SparkSession, view: KeptView, query: ViewQuery) {

  /** What both ways are expected to take, as far as earlier refreshes tell; none if only one is open. */
  def estimate(history: RefreshHistory): Option[RefreshEstimate] =
    if (query.whyNotRecomputable.nonEmpty) None
    else
      new ViewInputs(query, view.definition.checkpoint).size
        .map(new RefreshCosts(history.newest(RefreshCosts.Last))(_))

  /** Whether so much has changed that computing state pays less than computing the rows once more. */
  def isMost(changed: RefreshEstimate): Boolean = !changesAreRead &&
    changed.bytesChanged.exists { bytes =>
      bytes >= CheaperRefresh.Little && bytes * 2 > changed.bytesInAll
    }

  /** How much has changed, without a guess at what that takes. */
  def changed: Option[RefreshEstimate] =
    new ViewInputs(query, view.definition.checkpoint).size.map { size =>
      RefreshEstimate(size.inAll, Some(size.changed))
    }

  /** Whether computing all anew is taken for enough cheaper: estimates are rough. */
  def isFull(estimate: RefreshEstimate): Boolean =
    estimate.bytesChanged.exists(_ >= CheaperRefresh.Little) &&
      estimate.incrementalSeconds.zip(estimate.fullSeconds).exists { case (incremental, full) =>
        full * CheaperRefresh.Margin < incremental
      } && !changesAreRead

  /** A Delta table that is written anew gives all its rows as changes to the views that read it. */
  private def changesAreRead: Boolean =
    view.isDelta &&
      new ViewDependencies(session).readersOf(view).nonEmpty
}

object CheaperRefresh {

  /** Fewer bytes are gone through in no time, and say little: of small files most is not rows. */
  private val Little = 1L << 20

  private val Margin = 1.1
}
