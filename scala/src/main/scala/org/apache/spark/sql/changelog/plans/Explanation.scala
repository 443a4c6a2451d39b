// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

/**
 * What EXPLAIN says of a planned query, made when it is asked for first: of most batches it never is.
 * Only itself is equal to it. It stays on the driver.
 *
 * @param mode
 *   the row kinds the query sends
 */
final class Explanation private (val mode: String, @transient private val make: () => ExplainNode)
    extends Serializable {
  @transient lazy val tree: ExplainNode = make()
}

object Explanation {
  def apply(mode: String)(tree: => ExplainNode): Explanation = new Explanation(mode, () => tree)
}
