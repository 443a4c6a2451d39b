// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.history

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
