// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.errors

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.TableIdentifier

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/** The errors of views. */
object ViewErrors {
  def batchUnfinished(view: TableIdentifier, what: String, batch: Long): AnalysisException =
    analysis(
      "CHANGELOG_VIEW_BATCH_UNFINISHED",
      Map("view" -> view.quotedString, "what" -> what, "batch" -> batch.toString))

  def catalogNotSupported(parts: Seq[String]): AnalysisException =
    analysis("CHANGELOG_VIEW_CATALOG_NOT_SUPPORTED", Map("view" -> parts.mkString(".")))

  def clauseNotSupported(view: String, clause: String, advice: String): AnalysisException =
    analysis(
      "CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED",
      Map("view" -> view, "clause" -> clause, "advice" -> advice))

  def columnsDiffer(
      view: TableIdentifier,
      listed: Seq[String],
      found: Seq[String]): AnalysisException =
    analysis(
      "CHANGELOG_VIEW_COLUMNS_DIFFER",
      Map(
        "view" -> view.quotedString,
        "listed" -> listed.mkString(", "),
        "found" -> found.mkString(", ")))

  def cycle(views: Seq[TableIdentifier]): AnalysisException =
    analysis(
      "CHANGELOG_VIEW_CYCLE",
      Map("view" -> views.head.quotedString, "path" -> names(views, " reads ")))

  def exists(view: TableIdentifier): AnalysisException =
    analysis("CHANGELOG_VIEW_EXISTS", Map("view" -> view.quotedString))

  def comparedColumnsDiffer(
      left: String,
      right: String,
      columns: Seq[String],
      others: Seq[String]): AnalysisException =
    analysis(
      "CHANGELOG_COMPARED_COLUMNS_DIFFER",
      Map(
        "left" -> left,
        "right" -> right,
        "columns" -> columns.mkString(", "),
        "others" -> others.mkString(", ")))

  /** @param reason the reason why there are no batches */
  def hasNoBatches(view: TableIdentifier, reason: String): AnalysisException =
    analysis(
      "CHANGELOG_VIEW_HAS_NO_BATCHES",
      Map("view" -> view.quotedString, "reason" -> reason))

  def isRead(view: TableIdentifier, readers: Seq[TableIdentifier]): AnalysisException =
    hasReaders("CHANGELOG_VIEW_IS_READ", view, readers)

  def isRunning(view: TableIdentifier): AnalysisException =
    analysis("CHANGELOG_VIEW_IS_RUNNING", Map("view" -> view.quotedString))

  /** @param holder the process that refreshes the view, and the time of its start */
  def isRunningElsewhere(view: TableIdentifier, holder: String): AnalysisException =
    analysis(RunningElsewhere, Map("view" -> view.quotedString, "holder" -> holder))

  /** Returns whether a condition means that a running query refreshes the view, so that no refresh is needed. */
  def saysIsRunning(condition: String): Boolean = condition == RunningElsewhere

  private val RunningElsewhere = "CHANGELOG_VIEW_IS_RUNNING_ELSEWHERE"

  def refreshStopped(view: TableIdentifier): AnalysisException =
    analysis("CHANGELOG_VIEW_REFRESH_STOPPED", Map("view" -> view.quotedString))

  def readOnly(view: TableIdentifier, statement: String): AnalysisException =
    analysis(
      "CHANGELOG_VIEW_READ_ONLY",
      Map("view" -> view.quotedString, "statement" -> statement))

  def writtenByOthers(view: TableIdentifier, version: Long): AnalysisException =
    analysis(
      "CHANGELOG_VIEW_WRITTEN_BY_OTHERS",
      Map("view" -> view.quotedString, "version" -> version.toString))

  def leaseLost(view: TableIdentifier): AnalysisException =
    analysis("CHANGELOG_VIEW_LEASE_LOST", Map("view" -> view.quotedString))

  def notBegun(view: TableIdentifier): AnalysisException =
    analysis("CHANGELOG_VIEW_NOT_BEGUN", Map("view" -> view.quotedString))

  def nameIsRead(view: TableIdentifier, readers: Seq[TableIdentifier]): AnalysisException =
    hasReaders("CHANGELOG_VIEW_NAME_IS_READ", view, readers)

  def notComparable(view: TableIdentifier): AnalysisException =
    analysis("CHANGELOG_VIEW_NOT_COMPARABLE", Map("view" -> view.quotedString))

  /**
   * @param reason
   *   the reason why the changes are unknown
   * @param obstacle
   *   the reason against an automatic recompute
   */
  def notRecomputable(
      view: TableIdentifier,
      reason: String,
      obstacle: String,
      cause: Throwable): AnalysisException =
    notAnew("CHANGELOG_VIEW_NOT_RECOMPUTABLE", view, reason, obstacle, cause)

  /**
   * @param reason
   *   the reason why the changed query cannot continue
   * @param obstacle
   *   the reason against a recompute for the changed query
   */
  def notAltered(
      view: TableIdentifier,
      reason: String,
      obstacle: String,
      cause: Throwable): AnalysisException =
    notAnew("CHANGELOG_VIEW_NOT_ALTERED", view, reason, obstacle, cause)

  private def notAnew(
      condition: String,
      view: TableIdentifier,
      reason: String,
      obstacle: String,
      cause: Throwable): AnalysisException =
    analysis(
      condition,
      Map("view" -> view.quotedString, "reason" -> reason, "obstacle" -> obstacle),
      cause)

  def notFound(view: TableIdentifier, isOther: Boolean): AnalysisException =
    analysis(
      "CHANGELOG_VIEW_NOT_FOUND",
      Map(
        "view" -> view.quotedString,
        "found" -> (if (isOther) "a table or view of another kind" else "nothing")))

  def notIncremental(view: String, query: String, obstacles: Seq[String]): AnalysisException = {
    val reasons =
      if (obstacles.isEmpty) "the query reads neither a stream nor a followed table"
      else obstacles.mkString("; ")
    analysis(
      "CHANGELOG_VIEW_NOT_INCREMENTAL",
      Map("view" -> view, "query" -> query, "reasons" -> reasons))
  }

  /** @param first the error of the first failed view, used as the cause */
  def notRefreshed(
      failed: Seq[(TableIdentifier, Throwable)],
      skipped: Seq[TableIdentifier],
      first: Throwable): AnalysisException = {
    val errors = failed.map { case (view, error) =>
      s"${view.quotedString} (${String.valueOf(error.getMessage).linesIterator.nextOption().getOrElse("")})"
    }
    analysis(
      "CHANGELOG_VIEWS_NOT_REFRESHED",
      Map(
        "failed" -> errors.mkString(", "),
        "skipped" -> (if (skipped.isEmpty) "none" else names(skipped))),
      first)
  }

  def propertyInvalid(property: String, value: String, expected: String): AnalysisException =
    analysis(
      "CHANGELOG_VIEW_PROPERTY_INVALID",
      Map("property" -> property, "value" -> value, "expected" -> expected))

  def propertyUnknown(property: String, known: Seq[String]): AnalysisException =
    analysis(
      "CHANGELOG_VIEW_PROPERTY_UNKNOWN",
      Map("property" -> property, "known" -> known.sorted.mkString(", ")))

  def providerNotSupported(provider: String, providers: Seq[String]): AnalysisException =
    analysis(
      "CHANGELOG_VIEW_PROVIDER_NOT_SUPPORTED",
      Map("provider" -> provider, "providers" -> providers.mkString(", ")))

  /** @param cause Delta's message */
  def readTableReplaced(cause: String): AnalysisException =
    analysis("CHANGELOG_READ_TABLE_REPLACED", Map("cause" -> cause))

  def recursive(view: TableIdentifier): AnalysisException =
    analysis("CHANGELOG_VIEW_RECURSIVE", Map("view" -> view.quotedString))

  def streamOfChangedTable(cause: String): AnalysisException =
    analysis("CHANGELOG_STREAM_OF_CHANGED_TABLE", Map("cause" -> cause))

  def schemaChanged(
      view: TableIdentifier,
      stored: Seq[String],
      found: Seq[String]): AnalysisException =
    analysis(
      "CHANGELOG_VIEW_SCHEMA_CHANGED",
      Map(
        "view" -> view.quotedString,
        "stored" -> stored.mkString(", "),
        "found" -> found.mkString(", ")))

  def secret(view: String, place: String): AnalysisException =
    analysis("CHANGELOG_VIEW_SECRET", Map("view" -> view, "place" -> place))

  /** @param oldest the first version from which every change is available */
  def versionGone(
      view: TableIdentifier,
      version: Long,
      oldest: Option[Long],
      newest: Long): AnalysisException =
    analysis(
      "CHANGELOG_VIEW_VERSION_GONE",
      Map(
        "view" -> view.quotedString,
        "version" -> version.toString,
        "oldest" -> oldest.fold("none")(_.toString),
        "newest" -> newest.toString))

  private def hasReaders(
      condition: String,
      view: TableIdentifier,
      readers: Seq[TableIdentifier]): AnalysisException =
    analysis(condition, Map("view" -> view.quotedString, "readers" -> names(readers)))

  private def names(views: Seq[TableIdentifier], separator: String = ", "): String =
    views.map(_.quotedString).mkString(separator)
}
