// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.expressions.AttributeMap
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * One plan in place of two. It has the columns of the first one.
 *
 * @param places
 *   where in its output the columns of the second one are
 */
final case class MergedPlans(plan: LogicalPlan, places: AttributeMap[Int])
