// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.views.history.RefreshHistory

/**
 * Gives a view the rows and the state of an image, and the query that belongs to them. Both are made in a
 * generation of its own, and shown at once; its next refresh goes on from there.
 */
class ViewRestore(session: SparkSession, image: ViewImage) {

  /**
   * @param mode
   *   what the view's history calls it
   * @param named
   *   the folder of the generation that it gets, if that was chosen before
   */
  def apply(view: KeptView, mode: String, reason: String, named: Option[String] = None): Unit =
    RefreshHistory.ofView(session, view).remember { report =>
      report.isFor(mode, reason)
      image.time.foreach(report.isAsOf)
      val layout = DeltaLayout.of(session, view, image.view.schema)
      val generation = named.getOrElse(ViewStorage.newGeneration(view.definition.home))
      val definition =
        view.definition.withQueryOf(image.view.definition).copy(generation = Some(generation))
      val restored = KeptView(view.name, image.view.schema, definition, layout)
      val query = ViewQuery.sessionFor(session, definition)
      val storage = ViewStorage(query, definition.provider)
      val retention = definition.retention
      try {
        image.fork(restored.definition.checkpoint)
        val how =
          if (restored.beginsWithColumnsOf(view)) Replacement.OfDifference(image.key)
          else Replacement.Anew
        val rows = storage.stage(restored, image.rows, image.batch)
        new ReplaceRows(session, storage, report)(restored, rows, how)
      } catch {
        case error: Throwable =>
          ViewStorage.discard(session, restored)
          throw error
      }
      ViewStorage.retire(session, restored, view, retention)
    }
}
