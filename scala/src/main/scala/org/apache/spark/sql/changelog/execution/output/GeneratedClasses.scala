// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.output

import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.internal.StaticSQLConf.CODEGEN_CACHE_MAX_ENTRIES

/**
 * Warns of a query for which Spark generates more classes than it keeps.
 *
 * Spark compiles code for each batch, unless it still has what it compiled for the one before. It
 * keeps the classes used last, as many as `spark.sql.codegen.cache.maxEntries` says. A query that
 * has more compiles all of them again in every batch, which takes longer than a few rows do.
 */
private[output] object GeneratedClasses extends Logging {

  /**
   * About how many classes are generated for a plan: hardly fewer were counted for aggregates, joins
   * and ranks, alone and in one query.
   */
  def countOf(plan: SparkPlan): Int = 10 + 2 * plan.collect { case node => node }.size

  /** What to say of a plan if only `kept` classes are kept. */
  def warning(plan: SparkPlan, kept: Int): Option[String] = {
    val name = CODEGEN_CACHE_MAX_ENTRIES.key
    Option.when(countOf(plan) > kept)(
      s"A query has about ${countOf(plan)} generated classes, but $name keeps $kept, so that each batch " +
        s"compiles them again. Start the application with $name=5000.")
  }

  def warn(plan: SparkPlan): Unit =
    warning(plan, plan.conf.codegenCacheMaxEntries).foreach(text => logWarning(text))
}
