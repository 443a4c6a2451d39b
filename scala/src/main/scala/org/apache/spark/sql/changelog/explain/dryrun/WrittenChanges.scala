// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain.dryrun

import java.util.UUID

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  Attribute, AttributeReference, SubqueryExpression
}
import org.apache.spark.sql.catalyst.plans.logical.{Sample => _, _}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.ByteType
import org.apache.spark.unsafe.types.CalendarInterval

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.plans.{FromChangelog, ReadName}

/**
 * Replaces the sources of a query by changes in text form, in the columns of the query's tables.
 */
private[dryrun] class WrittenChanges(session: SparkSession, batches: Seq[Seq[SampleChange]]) {
  private val timeZone = session.sessionState.conf.sessionLocalTimeZone

  def apply(changes: LogicalPlan): LogicalPlan = {
    val sources = NamedSources(changes)
    if (sources.isEmpty)
      throw analysis("CHANGELOG_DRY_RUN_WITHOUT_ROWS", "reason" -> "the query reads no changes")
    if (batches.isEmpty)
      throw analysis("CHANGELOG_DRY_RUN_WITHOUT_ROWS", "reason" -> "the text has no changes")
    val sampled = batches.map(_.groupBy(sourceOf(_, sources)))
    val readings = sources.flatMap { source =>
      val rows = sampled.map(_.getOrElse(source, Nil).map(rowOf(_, source))).toIndexedSeq
      source.readings.distinct.map(reading => reading -> reads(reading, rows))
    }.toMap
    changes.transformDownWithSubqueries {
      case source: FromChangelog if readings.contains(source) => readings(source)
    }
  }

  private def sourceOf(change: SampleChange, sources: Seq[NamedSource]): NamedSource = {
    val resolver = session.sessionState.conf.resolver
    val found = change.source match {
      case Some(name) =>
        sources
          .find(_.names.exists(resolver(_, name)))
          .orElse(name.toIntOption.flatMap(number => sources.lift(number - 1)))
      case None => Option.when(sources.size == 1)(sources.head)
    }
    found.getOrElse {
      val known = sources.zipWithIndex.map { case (source, index) =>
        val names = s"${index + 1}" +: source.names.headOption.toSeq
        names.mkString(" or ") + SampleChange.listed(source.columns)
      }
      throw analysis(
        "CHANGELOG_DRY_RUN_SOURCE_NOT_FOUND",
        "line" -> change.line,
        "name" -> change.source.map(name => s"'$name'"),
        "sources" -> known)
    }
  }

  private def rowOf(change: SampleChange, source: NamedSource): InternalRow = {
    val produces = source.readings.head.produces
    val isExpected = change.kind match {
      case RowKind.Insert => true
      case RowKind.Delete => produces.delete
      case _ => produces.update
    }
    if (!isExpected) {
      throw change.invalid(source.columns, s"the source sends ${produces.words} only")
    }
    val row = change.row(source.columns, timeZone)
    InternalRow.fromSeq(row.toSeq(source.columns.map(_.dataType)) :+ change.kind)
  }

  private def reads(source: FromChangelog, rows: IndexedSeq[Seq[InternalRow]]): FromChangelog = {
    val kind = AttributeReference("_kind", ByteType, nullable = false)()
    // The columns before the watermark was added.
    val stream = Sample.stream(session, source.output :+ kind, rows)
    val delayKey = EventTimeWatermark.delayKey
    val timed =
      source.output.filter(_.metadata.contains(delayKey)).foldLeft(stream) { (plan, column) =>
        val micros = column.metadata.getLong(delayKey) * 1000
        EventTimeWatermark(UUID.randomUUID, column, new CalendarInterval(0, 0, micros), plan)
      }
    source.copy(
      kind = source.kind.map(_ => kind),
      sequence = source.sequence.filter(source.outputSet.contains),
      skipsBadRows = false,
      child = timed,
      unavailable = None,
      snapshot = None)
  }
}

/**
 * A source of a query, with its names.
 *
 * @param names
 *   the names in the query: the view's name, else the relation's name
 * @param readings
 *   the readings of the source, with equal columns under different ids
 */
private[dryrun] final case class NamedSource(names: Seq[String], readings: Seq[FromChangelog]) {
  def columns: Seq[Attribute] = readings.head.output
}

private[dryrun] object NamedSources {

  /** Returns the sources of a query, in the order of reading. */
  def apply(plan: LogicalPlan): Seq[NamedSource] = {
    val found = mutable.ArrayBuffer.empty[(FromChangelog, Option[String])]
    def visit(plan: LogicalPlan, name: ReadName): Unit = plan match {
      case source: FromChangelog => found += source -> name.name.orElse(ReadName.within(source))
      case _ =>
        val below = plan match {
          case _: SubqueryAlias | _: View | _: Project | _: Filter => name.below(plan)
          case _ => ReadName.Unknown
        }
        plan.children.foreach(visit(_, below))
        plan.expressions
          .flatMap(_.collect { case subquery: SubqueryExpression => subquery })
          .foreach(subquery => visit(subquery.plan, ReadName.Unknown))
    }
    visit(plan, ReadName.Unknown)
    val keys = found.map { case (source, _) => keyOf(source) }
    keys.distinct.toSeq.map { key =>
      val readings = found.filter { case (source, _) => keyOf(source) == key }.toSeq
      NamedSource(readings.flatMap(_._2).distinct, readings.map(_._1))
    }
  }

  /** Readings of one source have one number, if sources are numbered. */
  private def keyOf(source: FromChangelog): Any =
    if (source.number > 0) source.number else source.output.map(_.exprId)
}
