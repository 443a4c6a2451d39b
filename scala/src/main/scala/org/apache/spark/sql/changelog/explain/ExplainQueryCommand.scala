// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain

import org.apache.spark.sql.{Row, SparkSession}

import org.apache.spark.sql.changelog.errors.ChangelogErrors
import org.apache.spark.sql.changelog.status.RunningPlans

/**
 * Shows what a running query does, with the numbers of its last batch: `EXPLAIN CHANGELOG QUERY`.
 *
 * @param name
 *   the query's name, its id, or that of its run
 */
case class ExplainQueryCommand(name: String, format: ExplainFormat) extends ExplainCommand {

  override def run(sparkSession: SparkSession): Seq[Row] = {
    val query = RunningPlans.find(name).getOrElse {
      val names = RunningPlans.all.filter(_.isActive).map(query => query.name.getOrElse(query.id))
      throw ChangelogErrors.queryNotFound(name, names.sorted)
    }
    format(query).map(Row(_))
  }
}
