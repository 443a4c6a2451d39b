// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.util.Random

/** A query over tables whose changes are drawn by a seed, of few values, so that many of them meet. */
object SmallProgram {

  /**
   * @param most
   *   in each step fewer changes than that come of each table
   * @param nullsOneIn
   *   one in how many values is NULL
   */
  def apply(
      sql: String,
      feeds: Seq[Feed],
      seed: Long,
      numSteps: Int,
      most: Int,
      nullsOneIn: Int): Program = {
    val random = new Random(seed)
    val values = new RandomValues(random, wraps = false, small = true)
    val changelogs =
      feeds.map(feed => feed -> new RandomChangelog(random, feed, values, nullsOneIn))
    val steps = Seq.fill(numSteps) {
      Step(changelogs.map { case (feed, changelog) =>
        feed.name -> Seq.fill(random.nextInt(most))(changelog.next()).flatten
      }.toMap)
    }
    Program(feeds, sql, steps)
  }
}
