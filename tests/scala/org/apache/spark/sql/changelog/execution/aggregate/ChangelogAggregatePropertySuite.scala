// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import org.apache.spark.sql.changelog.testing._

/** Random aggregates over aggregates, unions and filters, against the same queries as batches. */
class ChangelogAggregatePropertySuite extends PropertySuite(numSeeds = 3) {
  override protected def program(seed: Long): (Program, Variant) = RandomProgram(seed)
}
