// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.history

/**
 * One refresh of a view, and what came of it. Times are in milliseconds.
 *
 * @param asOf
 *   if it succeeded, all that had been delivered by then is in the view
 * @param mode
 *   `incremental`, `partitions` or `full`; `started`, if it ran until it was stopped
 * @param reason
 *   why it was done in this mode
 * @param versions
 *   up to where each source was read
 * @param rowsRead
 *   none if they were not counted, as those of a batch query
 * @param stateRows
 *   how many rows the query's operators keep; none if it ran no batch, or was computed as a batch query
 * @param stateBytes
 *   what they take in memory
 * @param estimate
 *   how much there was to read, and what that was expected to cost, as far as that is known
 * @param shown
 *   the last version of the table that holds the rows, where it has any
 * @param error
 *   why it failed, if it did
 */
case class RefreshRecord(
    started: Long,
    asOf: Long,
    finished: Long,
    mode: String,
    reason: String,
    versions: Map[String, String] = Map.empty,
    rowsRead: Option[Long] = None,
    rowsWritten: Option[Long] = None,
    rowsRetracted: Option[Long] = None,
    stateRows: Option[Long] = None,
    stateBytes: Option[Long] = None,
    estimate: Option[RefreshEstimate] = None,
    shown: Option[Long] = None,
    error: Option[String] = None) {

  def succeeded: Boolean = error.isEmpty

  def state: String = if (succeeded) "SUCCEEDED" else "FAILED"

  def millis: Long = finished - started
}

/**
 * How much a refresh had to read, and how long it was expected to take.
 *
 * @param bytesInAll
 *   what the tables hold that the query reads
 * @param bytesChanged
 *   what was to be gone through to know what has changed in them; none if that was not asked, as
 *   when a view is made
 * @param incrementalSeconds
 *   by what has changed; none if no earlier refresh tells
 * @param fullSeconds
 *   by computing all anew
 */
case class RefreshEstimate(
    bytesInAll: Long,
    bytesChanged: Option[Long] = None,
    incrementalSeconds: Option[Double] = None,
    fullSeconds: Option[Double] = None)

/** Why a view was refreshed in the way it was, where others have to know that later. */
object RefreshReason {
  val New = "the view is new"
  val Replaced = "the view was replaced"
  val StateMissing = "the state was computed first"
}
