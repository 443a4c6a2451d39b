// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.{quoteIdentifier, quoteIfNeeded}
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.functions.lit
import org.apache.spark.sql.types.StringType

import org.apache.spark.sql.changelog.analysis.LowerSources
import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.identity._
import org.apache.spark.sql.changelog.microbatch.AssignStateInfo
import org.apache.spark.sql.changelog.optimizer.RewrittenOperators
import org.apache.spark.sql.changelog.plans.ToChangelog
import org.apache.spark.sql.changelog.{OutputMode, SqlCommand}

/**
 * Evolution: a changed query that continues with the state of its predecessor.
 *
 * Operators with equal meaning keep their state. New operators start from the stored rows of kept
 * operators. Operators that read sources directly read from the beginning, up to the
 * predecessor's last offset. The first batch of a new checkpoint rebuilds all state. The old
 * checkpoint stays unchanged.
 *
 * @param from
 *   the checkpoint of the stopped predecessor
 * @param query
 *   the changed query, analyzed, with its `to_changelog`
 */
class Evolution(caller: SparkSession, from: Path, query: LogicalPlan) {
  private def refused(reason: String) =
    analysis("CHANGELOG_EVOLUTION_NOT_POSSIBLE", "checkpoint" -> from, "reason" -> reason)

  private val stopped = new StoppedQuery(caller, from, refused)
  private val record = stopped.record

  /** A session with the predecessor's recorded settings. */
  private val session = caller.cloneSession()
  RecordedSettings.use(record.settings, session.sessionState.conf)

  /** The query as at a start: analyzed again below a write. */
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
  private val kept = new ReusableState(record.operators, changedRecord.operators)
  private val known = new KnownSources(record.streams, changedRecord.streams)
  private val reads = new FirstBatchReads(planned, changedRecord.operators, kept)

  /** The state plan of each operator, first of the changed query, then of dropped operators. */
  val operators: Seq[StatePlan] = StatePlan.all(changedRecord.operators, kept)

  // All checks run before anything is written.
  if (changed.exists(_.isInstanceOf[EventTimeWatermark])) {
    changedRecord.operators.find(!kept.contains(_)).foreach { operator =>
      throw refused(
        s"${operator.shown} would start again, and state older than the watermark is gone")
    }
  }
  private val snapshots = new CheckSnapshots(stopped, known, refused)
  snapshots.checkNew(written)
  private val allRead = reads.all
  snapshots.checkExist(allRead)
  new CheckSourceFiles(session, stopped, refused)(allRead)
  new CheckArrivalDependence(record, changedRecord, kept, refused)(reads)

  /**
   * Makes the checkpoint for the start of the changed query.
   *
   * @param into
   *   the new checkpoint, created atomically: a missing or empty folder
   * @param held
   *   the rows of the target. With the rows, the first batch emits only differences. Without
   *   them, the first batch emits everything.
   * @param noted
   *   whether the sink asks the target about the origin of its rows
   */
  def prepare(into: Path, held: Option[DataFrame], noted: Boolean = true): Unit = {
    held.foreach(_ => checkCanRetract())
    new EvolvedCheckpoint(session, stopped, changedRecord, kept, known, into)
      .write(held.map(inColumns), noted)
  }

  private def checkCanRetract(): Unit = changed.collect {
    case root: ToChangelog if root.mode == OutputMode.Append =>
      throw refused("a target that takes inserts only cannot remove rows that left the result")
  }

  /** Returns the rows of the target in the columns of the query. New columns are NULL. */
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

object Evolution {

  /**
   * `EVOLVE CHECKPOINT 'old' INTO 'new' [TARGET table] AS SELECT * FROM to_changelog(…)`: makes a
   * checkpoint with which the changed query continues the stopped query of `old`. `EXPLAIN EVOLVE
   * CHECKPOINT` only shows the plan for each operator.
   *
   * @param into
   *   the new checkpoint; None for EXPLAIN
   * @param target
   *   the table filled by the predecessor, which then receives only differences
   * @param query
   *   the changed query as parsed
   */
  def command(
      from: String,
      into: Option[String],
      target: Option[Seq[String]],
      query: LogicalPlan): LogicalPlan =
    SqlCommand("EVOLVE CHECKPOINT", from, into, target, query)(
      _ => StatePlan.columns,
      session => {
        val analyzed = session.sessionState.executePlan(query).analyzed
        if (!analyzed.exists(_.isInstanceOf[ToChangelog])) {
          throw analysis(
            "CHANGELOG_EVOLUTION_NOT_POSSIBLE",
            "checkpoint" -> from,
            "reason" -> "the query after AS does not call to_changelog")
        }
        val evolution = new Evolution(session, new Path(from), analyzed)
        val held = target.map(name => session.table(name.map(quoteIfNeeded).mkString(".")))
        into.foreach(folder => evolution.prepare(new Path(folder), held))
        evolution.operators.map(_.toRow)
      })
}

/**
 * StatePlan: the handling of an operator's state when a query is changed.
 *
 * @param shown
 *   the operator, as shown by EXPLAIN
 * @param state
 *   `kept`, `rebuilt` or `dropped`
 * @param from
 *   the origin of a rebuilt state, or the use of a kept state
 */
final case class StatePlan(shown: String, state: String, from: String) {
  def isKept: Boolean = state == "kept"

  def toRow: Row = Row(shown, state, from)
}

object StatePlan {

  /** The columns of [[StatePlan.toRow]]. */
  def columns: Seq[Attribute] =
    Seq("operator", "state", "from").map(AttributeReference(_, StringType)())

  /** Returns the operators of the changed query, followed by operators with dropped state. */
  private[evolution] def all(is: Seq[OperatorRecord], kept: ReusableState): Seq[StatePlan] = {
    val now = is.map { operator =>
      if (kept.contains(operator)) {
        val use =
          if (kept.emits(operator)) "the first batch reads the result from the state"
          else "continues unchanged"
        StatePlan(operator.shown, "kept", use)
      } else StatePlan(operator.shown, "rebuilt", origin(operator, is, kept))
    }
    now ++ kept.dropped.map(gone => StatePlan(gone.shown, "dropped", ""))
  }

  /** Returns the inputs read by a rebuilt operator. */
  private def origin(
      operator: OperatorRecord,
      all: Seq[OperatorRecord],
      kept: ReusableState): String = {
    val below = operator.part.map(_.operators).getOrElse(Nil)
    val emitting = all.filter(other => kept.emits(other) && other.ids.exists(below.contains))
    if (emitting.isEmpty) "the sources, from their beginning"
    else emitting.map(_.shown).mkString("the rows of ", " and ", ", and further sources")
  }
}

/**
 * ReusableState: the parts of a changed query that reuse state of the predecessor.
 *
 * A part is reused if the predecessor has an equal part, and the state holds the part's whole
 * result. Operators above are rebuilt from these rows. Among nested parts, only the largest is
 * reused.
 */
private[evolution] class ReusableState(was: Seq[OperatorRecord], is: Seq[OperatorRecord]) {
  private val old = was.flatMap(_.part).map(part => part.fingerprint -> part).toMap

  private val candidates: Seq[PartRecord] =
    is.flatMap(_.part).filter(part => part.givesRows && old.contains(part.fingerprint))

  private val largest: Seq[PartRecord] = candidates.filterNot { part =>
    candidates.exists { other =>
      other.operators.size > part.operators.size &&
      part.operators.forall(other.operators.contains)
    }
  }

  private val operators: Set[Long] = largest.flatMap(_.operators).toSet

  def fingerprints: Set[String] = largest.map(_.fingerprint).toSet

  def contains(operator: OperatorRecord): Boolean = operator.ids.forall(operators)

  /** Whether the operator emits the whole result in the first batch. */
  def emits(operator: OperatorRecord): Boolean = operator.part.exists(largest.contains)

  /** Returns the old number of each operator with kept state, by its new number. */
  def numbers: Map[Long, Long] =
    largest.flatMap(part => part.operators.zip(old(part.fingerprint).operators)).toMap

  /** Returns the operators whose state is unused. */
  def dropped: Seq[OperatorRecord] = {
    val used = numbers.values.toSet
    was.filterNot(_.ids.exists(used))
  }
}

/**
 * The sources of a changed query already read by the predecessor. If a source is read twice, both
 * readings have the same offset, so either may serve the kept state.
 *
 * @param was
 *   names of the predecessor's sources, in the order of offsets
 * @param is
 *   names of the changed query's sources
 */
private[evolution] class KnownSources(was: Seq[String], is: Seq[String]) {

  /** The previous position of each source; None for a new source. */
  val before: Seq[Option[Int]] = {
    val old = was.zipWithIndex.groupMap(_._1)(_._2)
    is.zipWithIndex.map { case (source, place) =>
      val sameBefore = is.take(place).count(_ == source)
      old.get(source).map(places => places.lift(sameBefore).getOrElse(places.last))
    }
  }
}
