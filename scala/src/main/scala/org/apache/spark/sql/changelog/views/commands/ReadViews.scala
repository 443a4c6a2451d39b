// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import java.sql.Timestamp

import scala.util.Try
import scala.util.control.NonFatal

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.plans.logical.{
  Filter, LocalRelation, LogicalPlan, SubqueryAlias
}
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.catalyst.util.quoteIfNeeded
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.functions.{abs, col, lit, when}
import org.apache.spark.sql.types.{LongType, StringType, StructField, StructType}

import org.apache.spark.sql.changelog.SqlCommand
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.explain.lineage.{TraceRows, TracedNode}
import org.apache.spark.sql.changelog.sources.tables.RowDelta
import org.apache.spark.sql.changelog.views._
import org.apache.spark.sql.changelog.views.history.{RefreshError, RefreshHistory}
import org.apache.spark.sql.changelog.views.verify.{PinnedView, VerifyView}

/** ReadViews: the statements that return information about views. */
object ReadViews {
  private def find(session: SparkSession, name: Seq[String]): MaterializedView =
    new ViewCatalog(session).get(name)

  /**
   * `DESCRIBE [EXTENDED] MATERIALIZED VIEW v`: returns the view's columns, refresh method, progress and last
   * verification. `EXTENDED` adds the locations and the plan.
   */
  def describe(name: Seq[String], extended: Boolean): LogicalPlan =
    SqlCommand.returning("name STRING, value STRING", "DESCRIBE", name, extended) { session =>
      val view = find(session, name)
      val columns = view.schema.fields.toSeq.map { field =>
        val comment = field.getComment().fold("")(text => s" COMMENT ${Literal(text).sql}")
        Row(field.name, field.dataType.sql + comment)
      }
      val status = new ViewStatus(session, view)
      val facts = status.facts ++ (if (extended) status.details else Nil)
      (columns :+ Row("", "")) ++ facts.map { case (fact, value) => Row(fact, value) }
    }

  /** `SHOW MATERIALIZED VIEWS [IN database] [LIKE pattern]`: returns the views and their status. */
  def show(database: Seq[String], pattern: Option[String]): LogicalPlan =
    SqlCommand.returning(
      """namespace STRING, name STRING, kind STRING, status STRING, as_of STRING,
      behind_seconds DOUBLE, lag_seconds DOUBLE, reads ARRAY<STRING>, failure STRING""",
      "SHOW VIEWS",
      database,
      pattern) { session =>
      val dependencies = new ViewDependencies(session)
      def rowOf(view: MaterializedView): Row = {
        val status = new ViewStatus(session, view)
        Row(
          view.name.database.orNull,
          view.name.table,
          view.definition.kind.toString,
          status.state,
          status.asOf.orNull,
          status.behindSeconds.getOrElse(null),
          status.lag.map(_ / 1000.0).getOrElse(null),
          dependencies.readBy(view).map(_.shownName).sorted,
          status.failure.orNull)
      }
      val views = new ViewCatalog(session).listWithErrors(database, pattern.getOrElse("*"))
      views.sortBy(_._1.table).map { case (name, found) =>
        Try(rowOf(found.get)).recover { case NonFatal(error) =>
          val kind = found.toOption.map(_.definition.kind.toString).orNull
          val failure = RefreshError(session, error)
          Row(
            name.database.orNull,
            name.table,
            kind,
            "UNREADABLE",
            null,
            null,
            null,
            Nil,
            failure)
        }.get
      }
    }

  /** `SHOW REFRESHES OF v`: returns the recorded refreshes, newest first. */
  def refreshes(name: Seq[String]): LogicalPlan =
    SqlCommand.returning(
      """started TIMESTAMP, seconds DOUBLE, mode STRING, reason STRING, state STRING,
      versions MAP<STRING, STRING>, rows_read BIGINT, rows_written BIGINT, rows_retracted BIGINT,
      state_rows BIGINT, state_bytes BIGINT,
      estimate STRUCT<incremental_seconds: DOUBLE, full_seconds: DOUBLE, bytes_changed: BIGINT,
      bytes_in_all: BIGINT>, error STRING""",
      "SHOW REFRESHES",
      name) { session =>
      RefreshHistory.ofView(session, find(session, name)).all.map { record =>
        val estimate = record.estimate.map { estimate =>
          Row(
            estimate.incrementalSeconds.getOrElse(null),
            estimate.fullSeconds.getOrElse(null),
            estimate.bytesChanged.getOrElse(null),
            estimate.bytesInAll)
        }
        Row(
          new Timestamp(record.started),
          record.millis / 1000.0,
          record.mode,
          record.reason,
          record.state,
          record.versions,
          record.rowsRead.getOrElse(null),
          record.rowsWritten.getOrElse(null),
          record.rowsRetracted.getOrElse(null),
          record.stateRows.getOrElse(null),
          record.stateBytes.getOrElse(null),
          estimate.orNull,
          record.error.orNull)
      }
    }

  /**
   * `VERIFY MATERIALIZED VIEW v [SAMPLE n PERCENT]`: returns the differences from the query's result in batch Spark.
   * The batch query reads the source data delivered up to the view's last batch.
   */
  def verify(name: Seq[String], sample: Option[Double]): LogicalPlan =
    SqlCommand("VERIFY", name, sample)(
      session => toAttributes(VerifyView.schemaOf(find(session, name))),
      session => new VerifyView(session, find(session, name), sample)())

  /**
   * `COMPARE MATERIALIZED VIEW v WITH w`: returns the rows with different numbers of copies in `v` and `w`, at most
   * [[VerifyView.MostRows]] rows. Equal tables give no rows.
   *
   * @param other
   *   a view or any table
   */
  def compare(name: Seq[String], other: Seq[String]): LogicalPlan = {
    def shown(name: Seq[String]): String = name.map(quoteIfNeeded).mkString(".")
    // Names are case-insensitive.
    def columnsOf(table: DataFrame): Seq[String] =
      table.schema.map(field => s"${field.name.toLowerCase} ${field.dataType.sql}")
    SqlCommand("COMPARE", name, other)(
      session =>
        toAttributes(
          StructType(
            StructField("_more_in", StringType, nullable = false) +:
              StructField("_times", LongType, nullable = false) +:
              find(session, name).schema.fields)),
      session => {
        val left = session.table(find(session, name).sql)
        val right = session.table(shown(other))
        val (columns, others) = (columnsOf(left), columnsOf(right))
        if (columns != others) {
          throw analysis(
            "CHANGELOG_COMPARED_COLUMNS_DIFFER",
            "left" -> shown(name),
            "right" -> shown(other),
            "columns" -> columns,
            "others" -> others)
        }
        val renamed = right.toDF(left.columns.toSeq: _*)
        val times = col(RowDelta.Net)
        val moreIn = when(times > 0, lit(shown(name))).otherwise(lit(shown(other)))
        val values = left.columns.toSeq.map(RowDelta.quoted)
        RowDelta
          .counted(left, renamed)
          .select(Seq(moreIn, abs(times)) ++ values: _*)
          .take(VerifyView.MostRows)
          .toSeq
      })
  }

  /**
   * `WHY MATERIALIZED VIEW v [WHERE condition]`: returns the source rows behind rows of the view, as of the view's last
   * batch.
   *
   * @param filter
   *   the parsed condition on the view's rows, without an input
   */
  def why(name: Seq[String], filter: Option[Filter]): LogicalPlan =
    SqlCommand("WHY", name, filter)(
      _ => TracedNode.output.map(_.newInstance()),
      session => {
        val view = find(session, name)
        val query = new ViewQuery(session, view.definition)
        if (query.isStreaming && query.expiresRows)
          throw analysis("CHANGELOG_WHY_ROWS_FORGOTTEN", "view" -> view.name)
        if (query.keepsCommits) throw query.notRecomputable(view.name, "WHY")
        def selectedRows(plan: LogicalPlan) = {
          val wanted = filter.fold(plan)(_.copy(child = SubqueryAlias(name.last, plan)))
          // The condition may name temporary views of the caller's session.
          val analyzed = session.sessionState.executePlan(wanted)
          analyzed.assertAnalyzed()
          analyzed.analyzed
        }
        // Fails for an invalid condition before any source is read.
        selectedRows(LocalRelation(toAttributes(query.schema)))
        def trace(plan: LogicalPlan, note: String) = {
          val nodes = new TraceRows(query.session)(selectedRows(plan))
          // The first node is the result. The note also names the batch of the result.
          nodes
            .take(1)
            .map(result =>
              result.copy(note = Some((note +: result.note.toSeq).mkString("; ")))) ++ nodes.drop(
            1)
        }
        var traced: Seq[TracedNode] = Nil
        if (query.isStreaming) {
          new PinnedView(view, query, "traced").apply { (batchId, _, plan) =>
            traced = trace(plan, s"as of batch $batchId")
          }
        } else traced = trace(query.analyzed, "as its tables are now")
        traced.flatMap(_.toRows)
      })
}
