// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.analysis.LowerSources
import org.apache.spark.sql.changelog.plans.ChangelogOutput

/** What is known of the changes of a query before it runs. */
object PlannedChanges {

  /** @param changes a query with `to_changelog`, as SQL */
  def apply(session: SparkSession, changes: String): ChangelogOutput =
    session.sessionState.optimizer
      .execute(LowerSources(session.sql(changes).queryExecution.analyzed))
      .collectFirst { case output: ChangelogOutput => output }
      .get

  def isInsertOnly(output: ChangelogOutput): Boolean = output.explained.symbols == Seq("I")
}
