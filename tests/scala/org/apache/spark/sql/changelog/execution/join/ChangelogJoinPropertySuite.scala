// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import org.apache.spark.sql.changelog.testing._

/** Random joins of tables, joins and aggregates, against the same queries as batches. */
class ChangelogJoinPropertySuite extends PropertySuite(numSeeds = 3) {
  override protected def program(seed: Long): (Program, Variant) = RandomJoinProgram(seed)
}
