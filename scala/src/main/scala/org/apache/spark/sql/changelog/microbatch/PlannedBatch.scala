// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.microbatch

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * A batch that is being planned.
 *
 * @param query
 *   the whole query, as it has been analyzed
 * @param checkpoint
 *   the folder that holds the offset log
 */
private[changelog] final case class PlannedBatch(
    query: LogicalPlan,
    checkpoint: Path,
    batchId: Long)
