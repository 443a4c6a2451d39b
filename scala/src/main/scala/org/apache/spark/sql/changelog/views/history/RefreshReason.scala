// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.history

/** Why a view was refreshed in the way it was, where others have to know that later. */
object RefreshReason {
  val New = "the view is new"
  val Replaced = "the view was replaced"
  val StateMissing = "the state was computed first"
}
