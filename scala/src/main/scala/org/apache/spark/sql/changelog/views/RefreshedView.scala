// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.spark.sql.changelog.views.history.RefreshRecord

/**
 * What came of a view when several were to be refreshed.
 *
 * @param record
 *   its refresh, if there was one that succeeded
 * @param error
 *   why it failed
 */
case class RefreshedView(
    view: KeptView,
    state: String,
    record: Option[RefreshRecord] = None,
    error: Option[Throwable] = None)

object RefreshedView {
  val Refreshed = "REFRESHED"
  val Failed = "FAILED"

  /** Not refreshed, since a view that it reads was not. */
  val Skipped = "SKIPPED"

  /** A query of this process keeps it up to date. */
  val Running = "RUNNING"
}
