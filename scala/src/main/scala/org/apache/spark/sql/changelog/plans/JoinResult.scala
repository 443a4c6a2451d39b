// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.Attribute

import org.apache.spark.sql.changelog.UpdateKind

/**
 * How a join emits what a batch does to its result.
 *
 * @param pairBy
 *   a key of the result: an old and a new row that agree on it are an update
 * @param deletes
 *   whether the consumer knows deletes; if not, a row goes with `-U`
 * @param updateKind
 *   whether the consumer wants before images
 * @param kind
 *   the row kind of the result
 */
final case class JoinResult(
    pairBy: Option[Seq[Attribute]],
    deletes: Boolean,
    updateKind: UpdateKind,
    kind: Attribute)
    extends ParameterGroup
