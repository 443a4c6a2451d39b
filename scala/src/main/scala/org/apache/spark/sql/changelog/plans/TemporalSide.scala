// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}

/**
 * One side of a temporal join.
 *
 * @param key
 *   its side of the join key, such that equal values have equal bytes
 * @param time
 *   the column its rows are in order of
 * @param kind
 *   the row kind, none if it is insert-only
 */
final case class TemporalSide(
    key: Seq[Expression],
    time: Attribute,
    kind: Option[Attribute])
    extends ParameterGroup
