// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

/**
 * How much a table holds, and how much of it has changed, in bytes of its files.
 *
 * @param changed
 *   what is to be gone through to know what has changed. Of files that were written anew, rows that
 *   stayed what they were count less: they only cancel out
 */
case class TableSize(inAll: Long, changed: Long)
