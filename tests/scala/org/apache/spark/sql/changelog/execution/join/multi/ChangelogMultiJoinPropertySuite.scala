// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join.multi

import org.apache.spark.sql.changelog.testing._

/** Random chains of inner joins on one key, against the same queries as batches. */
class ChangelogMultiJoinPropertySuite extends PropertySuite(numSeeds = 3) {
  override protected def program(seed: Long): (Program, Variant) = RandomMultiJoinProgram(seed)
}
