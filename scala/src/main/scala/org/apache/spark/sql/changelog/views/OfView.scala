// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.savepoints.{HasSavepoints, Moment, Savepoint, Savepoints}

/** A view, whose savepoints hold its rows beside the checkpoint. */
case class OfView(name: Seq[String]) extends HasSavepoints {
  override def savepoints(session: SparkSession): Savepoints =
    ViewImage.savepointsOf(session, new ViewCatalog(session).get(name))

  /** Between two statements that write the view; a query that keeps it current may run. */
  override def keep(session: SparkSession, savepoint: String, batch: Option[Long]): Savepoint =
    ViewLeases(session, name) { view =>
      val at = batch.fold[Moment](Moment.Newest)(Moment.AtBatch(_))
      val image = ViewImage(session, view, at)
      ViewImage.savepointsOf(session, view).create(savepoint, image.batch)(image.write)
    }
}
