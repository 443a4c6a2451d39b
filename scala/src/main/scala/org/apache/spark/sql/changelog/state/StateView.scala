// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

/**
 * Entries of a table as they were at some time.
 *
 * @param removed
 *   addresses of entries that are gone
 * @param put
 *   addresses of entries that are there, and zeros
 */
private[state] final class StateView(
    val records: RowPages.View,
    val removed: Array[Long],
    val put: Array[Long])
