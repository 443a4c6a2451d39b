// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.errors

import org.apache.spark.sql.AnalysisException

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/** Why a query can't go on otherwise than it was with the state it has. */
object EvolutionErrors {

  /** It can't go on as a changed query. */
  def notPossible(checkpoint: String, reason: String): AnalysisException =
    analysis(
      "CHANGELOG_EVOLUTION_NOT_POSSIBLE",
      Map("checkpoint" -> checkpoint, "reason" -> reason))

  /** Its state can't be spread over another number of partitions. */
  def notRescaled(checkpoint: String, partitions: Int, reason: String): AnalysisException =
    analysis(
      "CHANGELOG_RESCALING_NOT_POSSIBLE",
      Map("checkpoint" -> checkpoint, "partitions" -> partitions.toString, "reason" -> reason))

  def checkpointExists(checkpoint: String): AnalysisException =
    analysis("CHANGELOG_CHECKPOINT_EXISTS", Map("checkpoint" -> checkpoint))
}
