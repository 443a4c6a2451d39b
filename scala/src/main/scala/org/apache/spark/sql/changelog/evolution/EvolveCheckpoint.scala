// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.util.quoteIfNeeded
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.{Row, SparkSession}

import org.apache.spark.sql.changelog.errors.EvolutionErrors
import org.apache.spark.sql.changelog.plans.ToChangelog

/**
 * `EVOLVE CHECKPOINT 'old' INTO 'new' [TARGET table] AS SELECT * FROM to_changelog(…)`: makes a checkpoint with
 * which the query goes on where the one of `old` has been stopped. `EXPLAIN EVOLVE CHECKPOINT` only tells what
 * would become of its operators.
 *
 * @param into
 *   where it is made; none to explain
 * @param target
 *   what the query before has filled, which then gets what differs only
 * @param query
 *   the changed query as parsed
 */
case class EvolveCheckpoint(
    from: String,
    into: Option[String],
    target: Option[Seq[String]],
    query: LogicalPlan)
    extends LeafRunnableCommand {

  override val output: Seq[Attribute] = OperatorFate.columns

  override def run(sparkSession: SparkSession): Seq[Row] = {
    val session = castToImpl(sparkSession)
    val analyzed = session.sessionState.executePlan(query).analyzed
    if (!analyzed.exists(_.isInstanceOf[ToChangelog])) {
      throw EvolutionErrors.notPossible(from, "the query after AS does not call to_changelog")
    }
    val evolution = new Evolution(session, new Path(from), analyzed)
    val held = target.map(name => session.table(name.map(quoteIfNeeded).mkString(".")))
    into.foreach(folder => evolution.prepare(new Path(folder), held))
    evolution.operators.map(_.toRow)
  }
}
