// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import org.apache.spark.sql.execution.metric.SQLMetric

/**
 * Counts what happens to the records of one side of a join.
 *
 * @param updated
 *   records written
 * @param removed
 *   records removed
 * @param added
 *   records of this side that were not there before
 * @param dropped
 *   records of this side that are gone
 * @param keys
 *   join keys of which rows of this side come or go
 */
private[join] final case class JoinSideMetrics(
    updated: SQLMetric,
    removed: SQLMetric,
    added: SQLMetric,
    dropped: SQLMetric,
    keys: SQLMetric)
