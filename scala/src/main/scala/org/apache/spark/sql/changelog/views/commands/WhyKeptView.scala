// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{
  Filter,
  LocalRelation,
  LogicalPlan,
  SubqueryAlias
}
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.errors.LineageErrors
import org.apache.spark.sql.changelog.explain.lineage.{TraceRows, TracedNode}
import org.apache.spark.sql.changelog.views.ViewQuery
import org.apache.spark.sql.changelog.views.verify.ViewAtRest

/**
 * `WHY MATERIALIZED VIEW v [WHERE condition]`: the rows behind those of a view, as of its last batch.
 *
 * @param filter
 *   which of the view's rows, as parsed: what it filters is put below
 */
case class WhyKeptView(name: Seq[String], filter: Option[Filter]) extends ViewCommand {

  override val output: Seq[Attribute] = TracedNode.output.map(_.newInstance())

  override protected def runIn(session: SparkSession): Seq[Row] = {
    val view = find(session, name)
    val query = new ViewQuery(session, view.definition)
    if (query.isStreaming && query.forgetsRows) throw LineageErrors.forgetsRows(view.name)
    def wantedOf(plan: LogicalPlan) = {
      val wanted = filter.fold(plan)(_.copy(child = SubqueryAlias(name.last, plan)))
      // the condition may name temporary views of who asks
      val analyzed = session.sessionState.executePlan(wanted)
      analyzed.assertAnalyzed()
      analyzed.analyzed
    }
    // a condition that makes no sense is refused before the sources are read
    wantedOf(LocalRelation(toAttributes(query.schema)))
    def trace(plan: LogicalPlan) = new TraceRows(query.session)(wantedOf(plan))
    var traced: Seq[TracedNode] = Nil
    if (query.isStreaming) {
      new ViewAtRest(view, query, "traced").apply { (batchId, _, plan) =>
        traced = noted(trace(plan), s"as of batch $batchId")
      }
    } else traced = noted(trace(query.analyzed), "as its tables are now")
    traced.flatMap(_.toRows)
  }

  /** The result with what it is the result of. */
  private def noted(nodes: Seq[TracedNode], note: String): Seq[TracedNode] =
    nodes
      .take(1)
      .map(result => result.copy(note = Some((note +: result.note.toSeq).mkString("; ")))) ++
      nodes.drop(1)
}
