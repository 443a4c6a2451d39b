// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.quoteIdentifier
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.functions.lit

import org.apache.spark.sql.changelog.OutputMode
import org.apache.spark.sql.changelog.analysis.LowerSources
import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.errors.EvolutionErrors
import org.apache.spark.sql.changelog.identity._
import org.apache.spark.sql.changelog.microbatch.AssignStateInfo
import org.apache.spark.sql.changelog.optimizer.RewrittenOperators
import org.apache.spark.sql.changelog.plans.ToChangelog

/**
 * A changed query that goes on with the state of the one before.
 *
 * Operators that mean the same keep their state. Their rows are what the others begin with; what reads
 * sources itself reads them from their beginning, up to where the query before has come. All that
 * happens in one batch, the first of a new checkpoint beside the old one, which stays as it is.
 *
 * @param from
 *   the checkpoint of the query before, which has been stopped
 * @param query
 *   the changed query, analyzed, with its `to_changelog`
 */
class Evolution(caller: SparkSession, from: Path, query: LogicalPlan) {
  private def refused(reason: String) = EvolutionErrors.notPossible(from.toString, reason)

  private val begun = new BegunQuery(caller, from, refused)
  private val record = begun.record

  /** One that has the settings which the query before keeps for life. */
  private val session = caller.cloneSession()
  RecordedSettings.use(record.settings, session.sessionState.conf)

  /** The query as it is when it is started: below a write it is analyzed once more. */
  private val written: LogicalPlan =
    session.sessionState.analyzer.execute(SubqueryAlias("changes", query))

  private val changed: LogicalPlan = SparkRules.inlineCommonTables(written).children.head
  private val lowered: LogicalPlan = LowerSources(changed)
  private val planned: LogicalPlan = AssignStateInfo.outsideOfQuery(session) {
    session.withActive(session.sessionState.optimizer.execute(lowered))
  }
  private val changedRecord: QueryRecord = {
    val operators = RewrittenOperators.in(planned, SourceNames.byNumber(changed))
    val described = QueryRecord(written, session.sessionState.conf)
    described.copy(settings = record.settings, operators = operators)
  }
  private val kept = new KeptParts(record.operators, changedRecord.operators)
  private val known = new KnownSources(record.streams, changedRecord.streams)
  private val reads = new FirstBatchReads(planned, changedRecord.operators, kept)

  /** What becomes of each operator, those of the changed query first. */
  val operators: Seq[OperatorFate] = OperatorFate.all(changedRecord.operators, kept)

  // what can't be done is refused before anything is
  if (changed.exists(_.isInstanceOf[EventTimeWatermark])) {
    changedRecord.operators.find(!kept.contains(_)).foreach { operator =>
      throw refused(
        s"${operator.shown} would begin anew, and what is older than the watermark has been forgotten")
    }
  }
  private val snapshots = new CheckSnapshots(begun, known, refused)
  snapshots.checkNew(written)
  private val allRead = reads.all
  snapshots.checkThere(allRead)
  new CheckFilesThere(session, begun, refused)(allRead)
  new CheckRowsOfTheirTime(record, changedRecord, kept, refused)(reads)

  /**
   * Makes the checkpoint with which the changed query begins.
   *
   * @param into
   *   where it is made, at once: a folder that is not there yet, or is empty
   * @param held
   *   what the target holds. Then the first batch brings what differs from it, and else all rows
   * @param noted
   *   whether its sink is to ask the target whose rows it holds
   */
  def prepare(into: Path, held: Option[DataFrame], noted: Boolean = true): Unit = {
    held.foreach(_ => checkTakesBack())
    new EvolvedCheckpoint(session, begun, changedRecord, kept, known, into)
      .write(held.map(inColumns), noted)
  }

  private def checkTakesBack(): Unit = changed.collect {
    case root: ToChangelog if root.mode == OutputMode.Append =>
      throw refused("a target that takes inserts only can't be told which of its rows go")
  }

  /** The rows of the target in the columns of the query; it has no values for those that are new. */
  private def inColumns(held: DataFrame): DataFrame = {
    val root = changed.collectFirst { case root: ToChangelog => root }.get
    val columns = root.child.output.map { column =>
      val known = held.schema.fields.find(_.name.equalsIgnoreCase(column.name))
      val value = known.fold(lit(null))(field => held.col(quoteIdentifier(field.name)))
      value.cast(column.dataType).as(column.name)
    }
    held.select(columns: _*)
  }
}
