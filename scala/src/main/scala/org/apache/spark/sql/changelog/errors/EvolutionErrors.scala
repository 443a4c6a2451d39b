// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.errors

import org.apache.spark.sql.AnalysisException

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/** Why a changed query can't go on with the state of the one before. */
object EvolutionErrors {
  def notPossible(checkpoint: String, reason: String): AnalysisException =
    analysis(
      "CHANGELOG_EVOLUTION_NOT_POSSIBLE",
      Map("checkpoint" -> checkpoint, "reason" -> reason))

  def checkpointExists(checkpoint: String): AnalysisException =
    analysis("CHANGELOG_EVOLUTION_CHECKPOINT_EXISTS", Map("checkpoint" -> checkpoint))
}
