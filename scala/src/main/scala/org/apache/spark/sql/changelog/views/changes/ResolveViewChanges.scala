// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.changes

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.ClassicConversions.castToImpl

import org.apache.spark.sql.changelog.compat.NamedStream
import org.apache.spark.sql.changelog.errors.ChangelogErrors
import org.apache.spark.sql.changelog.views.{ViewCatalog, ViewStorage}

/** Reads the changes of a view from where it is stored, as a table or as a stream. */
class ResolveViewChanges(creator: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsDown {
    case NamedStream(changes: ViewChanges) => read(changes, isStream = true)
    case changes: ViewChanges => read(changes, isStream = false)
  }

  private def read(changes: ViewChanges, isStream: Boolean): LogicalPlan = {
    val session = castToImpl(creator)
    val parts = session.sessionState.sqlParser.parseMultipartIdentifier(changes.view)
    val view = new ViewCatalog(session).get(parts)
    val storage = ViewStorage(session, view.definition.provider)
    if (isStream) changes.to.foreach { last =>
      throw ChangelogErrors.argumentInvalid(
        ChangesFunction.Name,
        "to_version",
        last.toString,
        "none: a stream has no last version")
    }
    val rows =
      if (isStream) storage.changeStream(view, changes.from)
      else storage.changes(view, changes.from.getOrElse(0L), changes.to)
    rows.queryExecution.analyzed
  }
}
