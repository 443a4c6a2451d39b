// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}

/**
 * One side of a join: what its rows are joined by, and how they are kept.
 *
 * @param key
 *   its side of the join key, such that equal values have equal bytes
 * @param kind
 *   the row kind, none if it is insert-only
 * @param form
 *   how its rows are kept
 * @param rowKey
 *   for [[SideForm.RowByKey]], what tells its rows of one join key apart
 * @param tracksMatches
 *   whether its rows are kept with the number of their matches
 * @param replaces
 *   whether a row replaces the one with its key, the old one being left out
 */
final case class JoinedSide(
    key: Seq[Expression],
    kind: Option[Attribute],
    form: SideForm,
    rowKey: Seq[Expression],
    tracksMatches: Boolean,
    replaces: Boolean)
    extends ParameterGroup
