// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.analysis.NamedStreamingRelation
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** Finds what is read as a stream, within the node that gives the source a name. */
object NamedStream {
  def unapply(plan: LogicalPlan): Option[LogicalPlan] = plan match {
    case NamedStreamingRelation(stream, _) => Some(stream)
    case _ => None
  }
}
