// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.errors

import org.apache.spark.sql.AnalysisException

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/** The errors of a changed or rescaled query that cannot continue with its state. */
object EvolutionErrors {

  /** The changed query cannot continue with the state. */
  def notPossible(checkpoint: String, reason: String): AnalysisException =
    analysis(
      "CHANGELOG_EVOLUTION_NOT_POSSIBLE",
      Map("checkpoint" -> checkpoint, "reason" -> reason))

  /** The state cannot be distributed over another number of partitions. */
  def notRescaled(checkpoint: String, partitions: Int, reason: String): AnalysisException =
    analysis(
      "CHANGELOG_RESCALING_NOT_POSSIBLE",
      Map("checkpoint" -> checkpoint, "partitions" -> partitions.toString, "reason" -> reason))

  def checkpointExists(checkpoint: String): AnalysisException =
    analysis("CHANGELOG_CHECKPOINT_EXISTS", Map("checkpoint" -> checkpoint))
}
