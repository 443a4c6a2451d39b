// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Expression, SortOrder}
import org.apache.spark.sql.catalyst.plans.JoinType

/**
 * Which version a left row of a temporal join gets, and when it comes out with it; see
 * [[TemporalJoin]].
 *
 * @param matchesNull
 *   for each part of the join key, whether NULL equals NULL
 * @param isForward
 *   whether the version is the first one after a row, not the last one before
 * @param allowsEqual
 *   whether a version may have the row's own time
 * @param ties
 *   which of several versions of one time is meant; it comes last
 * @param condition
 *   what a row and its version must meet besides
 * @param isTimed
 *   whether both times are event times, below whose watermark nothing changes
 * @param appends
 *   whether a left row comes out once, when the watermark has passed it
 */
final case class TemporalMatching(
    joinType: JoinType,
    matchesNull: Seq[Boolean],
    isForward: Boolean,
    allowsEqual: Boolean,
    ties: Seq[SortOrder],
    condition: Option[Expression],
    isTimed: Boolean,
    appends: Boolean)
    extends ParameterGroup
