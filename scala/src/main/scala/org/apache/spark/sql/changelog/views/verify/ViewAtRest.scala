// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.verify

import java.io.FileNotFoundException

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.DataFrame

import org.apache.spark.sql.changelog.analysis.ResolvePassingTime
import org.apache.spark.sql.changelog.errors.ViewErrors
import org.apache.spark.sql.changelog.views._

/**
 * A view together with its query as one that reads no stream, but exactly what the sources had delivered
 * when the view's last batch was committed, at the time of that batch.
 *
 * @param what
 *   what is done with it, for errors: `compared with its query`
 */
private[views] class ViewAtRest(view: KeptView, query: ViewQuery, what: String) {
  import ViewAtRest.Patience

  private val session = query.session

  def stored: DataFrame = session.table(view.sql)

  /**
   * Hands the last batch, the rows that are shown of it and the query to `read`. It is not called before
   * there is a batch; what the query reads is there as long as that runs.
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
            val rested = RowsAtOnce.over(query.analyzed, delivered)
            val timed = sources.timeOf(batchId).fold(rested)(ResolvePassingTime.at(rested, _))
            read(batchId, rows, timed)
          }
        catch {
          // a view that is kept current has gone on, and past what that batch has read
          case _: FileNotFoundException if !isRead && sources.lastBatches._2 != Some(batchId) =>
            attempt()
        }
      }
    }
    attempt()
  }

  /** The rows of the view together with the batch they are the result of. */
  private def pin(sources: SourceRows): (Option[Long], DataFrame) = {
    val patience = System.currentTimeMillis() + Patience
    while (true) {
      val before = sources.lastBatches
      if (before._1 == before._2) {
        // the files that are read are fixed now
        val rows = stored
        rows.queryExecution.executedPlan
        if (sources.lastBatches == before) return (before._2, rows)
      } else if (RunningViews.active(view).isEmpty || System.currentTimeMillis() > patience) {
        throw ViewErrors.batchUnfinished(view.name, what, before._1.get)
      }
      Thread.sleep(100)
    }
    throw new IllegalStateException("unreachable")
  }
}

private object ViewAtRest {
  private val Patience = 60000L
}
