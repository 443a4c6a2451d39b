// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}

import org.apache.spark.sql.changelog.UpdateKind

/**
 * Which rows of each partition a [[ChangelogRank]] keeps, and how it emits them.
 *
 * @param partition
 *   the columns rows are ranked by themselves by; equal exactly if their bytes are
 * @param order
 *   the better row first; empty if any rows will do
 * @param start
 *   the lowest rank kept, from 1
 * @param end
 *   the highest rank kept, inclusive
 * @param number
 *   the column with the rank, if it is part of the result
 * @param strategy
 *   what is kept of the rows beyond the last rank
 * @param replaceBy
 *   for [[RankStrategy.UpdateFast]], the key by which a row replaces the one before
 * @param bySlot
 *   whether a rank's old and new row are an update; else rows that agree on `pairBy` are
 * @param pairBy
 *   a key of the rows, if there is one
 * @param updateKind
 *   whether the consumer wants before images
 * @param inputKind
 *   the row kind of the rows that are ranked, none if they only come
 */
final case class Ranking(
    function: RankFunction,
    partition: Seq[Attribute],
    order: Seq[SortOrder],
    start: Long,
    end: Long,
    number: Option[Attribute],
    strategy: RankStrategy,
    replaceBy: Seq[Attribute],
    bySlot: Boolean,
    pairBy: Option[Seq[Attribute]],
    updateKind: UpdateKind,
    inputKind: Option[Attribute])
    extends ParameterGroup
