// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.history

/**
 * RefreshRecord: one refresh of a view and its outcome. Times are in milliseconds.
 *
 * @param asOf
 *   the time up to which all delivered data is in the view, if the refresh succeeded
 * @param mode
 *   `incremental`, `partitions`, `full`, or `started` for a run until STOP
 * @param reason
 *   the reason for the mode
 * @param versions
 *   the end offset of each source
 * @param rowsRead
 *   the number of rows read; None if not counted, as in a batch query
 * @param stateRows
 *   the number of rows in the query's state; None without a batch, or for a batch query
 * @param stateBytes
 *   the memory used by the state
 * @param estimate
 *   the data to read, and the expected costs, as far as known
 * @param shown
 *   the last version of the table with the rows, if the table has versions
 * @param error
 *   the cause of a failure
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
 * RefreshEstimate: the amount of data to read, and the expected time.
 *
 * @param bytesInAll
 *   the size of the query's source tables
 * @param bytesChanged
 *   the bytes to read for finding the changes; None if not asked, as for a new view
 * @param incrementalSeconds
 *   the time of an incremental refresh; None without earlier refreshes
 * @param fullSeconds
 *   the time of a full refresh
 */
case class RefreshEstimate(
    bytesInAll: Long,
    bytesChanged: Option[Long] = None,
    incrementalSeconds: Option[Double] = None,
    fullSeconds: Option[Double] = None)

/** RefreshReason: the reasons with a meaning for later refreshes. */
object RefreshReason {
  val New = "the view is new"
  val Replaced = "the view was replaced"
  val OtherColumns = "the query has other columns"
  val StateMissing = "the state was computed first"
  val StateWaits = "the next refresh computes the state"
}
