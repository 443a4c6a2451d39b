// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.verify

import java.io.FileNotFoundException

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.DataFrame

import org.apache.spark.sql.changelog.analysis.ResolvePassingTime
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.views._

/**
 * PinnedView: a view with its query as a batch query. The batch query reads exactly the data delivered up to the view's
 * last batch, at the time of this batch.
 *
 * @param what
 *   the action for error messages, such as `compared with its query`
 */
private[views] class PinnedView(view: MaterializedView, query: ViewQuery, what: String) {
  private val session = query.session
  private val Patience = 60000L

  def stored: DataFrame = {
    new ViewCatalog(session).invalidate(view.name)
    session.table(view.sql)
  }

  /**
   * Passes the last batch, the view's rows after this batch and the batch query to `read`. Without a batch, `read` is
   * not called. The query's inputs exist while `read` runs.
   */
  def apply(read: (Long, DataFrame, LogicalPlan) => Unit): Unit = {
    val sources = new SourceRows(session, view.definition.checkpoint)
    val streaming = query.changes.queryExecution.analyzed
    def attempt(): Unit = {
      val (batchId, rows) = pin(sources)
      batchId.foreach { batchId =>
        var isRead = false
        try
          sources.upTo(batchId, streaming) { delivered =>
            isRead = true
            val rested = RowsByBatchPlan.over(query.analyzed, delivered)
            val timed = sources.timeOf(batchId).fold(rested)(ResolvePassingTime.at(rested, _))
            read(batchId, rows, timed)
          }
        catch {
          // The view's running query has continued beyond the batch.
          case _: FileNotFoundException if !isRead && sources.lastBatches._2 != Some(batchId) =>
            attempt()
        }
      }
    }
    attempt()
  }

  /** Returns the rows of the view with their batch. */
  private def pin(sources: SourceRows): (Option[Long], DataFrame) = {
    val patience = System.currentTimeMillis() + Patience
    while (true) {
      val before = sources.lastBatches
      if (before._1 == before._2) {
        // Planning fixes the files to read.
        val rows = stored
        rows.queryExecution.executedPlan
        if (sources.lastBatches == before) return (before._2, rows)
      } else if (RunningViews.active(view).isEmpty || System.currentTimeMillis() > patience) {
        throw analysis(
          "CHANGELOG_VIEW_BATCH_UNFINISHED",
          "view" -> view.name,
          "what" -> what,
          "batch" -> before._1.get)
      }
      Thread.sleep(100)
    }
    throw new IllegalStateException("unreachable")
  }
}
