// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import scala.util.Random

import org.apache.spark.sql.changelog.testing._

/** The same random queries, with DISTINCT in some of their calls. */
class ChangelogDistinctPropertySuite extends PropertySuite(numSeeds = 3) {
  private val call = """\b(count|sum|avg)\((?!\*)""".r

  override protected def program(seed: Long): (Program, Variant) = {
    val random = new Random(seed)
    val (program, variant) = RandomProgram(seed)
    val query = call.replaceAllIn(
      program.sql,
      found => if (random.nextInt(3) == 0) found.matched else s"${found.group(1)}(DISTINCT ")
    val split = Map(
      "spark.sql.changelog.aggregate.distinctSplit.enabled" -> random.nextBoolean().toString)
    (program.copy(sql = query), variant.copy(conf = variant.conf ++ split))
  }
}
