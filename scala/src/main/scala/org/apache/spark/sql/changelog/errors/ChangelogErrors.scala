// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.errors

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.{ErrorClassesJsonReader, SparkRuntimeException}

/**
 * Builds errors for users, from `error/changelog-error-conditions.json`.
 *
 * Mistakes in a query raise an [[org.apache.spark.sql.AnalysisException]], invalid rows raise a
 * [[ChangelogRuntimeException]]. Both have the condition's name, its SQLSTATE and the parameters.
 */
object ChangelogErrors {
  private lazy val reader = new ErrorClassesJsonReader(
    Seq(getClass.getClassLoader.getResource("error/changelog-error-conditions.json")))

  /** Returns the error of a mistake in a query. */
  def analysis(
      condition: String,
      parameters: Map[String, String],
      cause: Throwable = null): AnalysisException =
    new ChangelogAnalysisException(
      message(condition, parameters),
      condition,
      parameters,
      reader.getSqlState(condition),
      cause)

  /** Returns the error of an invalid row, or of a checkpoint that cannot be continued. */
  def runtime(
      condition: String,
      parameters: Map[String, String],
      cause: Throwable = null): ChangelogRuntimeException =
    new ChangelogRuntimeException(
      message(condition, parameters),
      condition,
      parameters,
      reader.getSqlState(condition),
      cause)

  /** @param reader the function that reads the changes */
  def changesNotAskedFor(reader: String): AnalysisException =
    analysis("CHANGELOG_CHANGES_NOT_ASKED_FOR", Map("reader" -> reader))

  def changesNotStarted(): AnalysisException =
    analysis("CHANGELOG_CHANGES_NOT_STARTED", Map.empty)

  /** @param excerpt the line of the statement, with a mark at `found` in the line below */
  def syntaxError(
      expected: String,
      found: String,
      line: Int,
      position: Int,
      excerpt: String,
      syntax: String): AnalysisException =
    analysis(
      "CHANGELOG_SYNTAX_ERROR",
      Map(
        "expected" -> expected,
        "found" -> found,
        "line" -> line.toString,
        "position" -> position.toString,
        "excerpt" -> excerpt,
        "syntax" -> syntax))

  def lookupMisplaced(): AnalysisException = analysis("CHANGELOG_LOOKUP_MISPLACED", Map.empty)

  def argumentInvalid(
      function: String,
      argument: String,
      value: String,
      expected: String): AnalysisException =
    analysis(
      "CHANGELOG_ARGUMENT_INVALID",
      Map(
        "function" -> function,
        "argument" -> argument,
        "value" -> value,
        "expected" -> expected))

  /** @param running the names of running queries */
  def queryNotFound(name: String, running: Seq[String]): AnalysisException = analysis(
    "CHANGELOG_QUERY_NOT_FOUND",
    Map("name" -> name, "running" -> (if (running.isEmpty) "none" else running.mkString(", "))))

  def columnNotFound(
      function: String,
      argument: String,
      column: String,
      columns: Seq[String]): AnalysisException =
    analysis(
      "CHANGELOG_COLUMN_NOT_FOUND",
      Map(
        "function" -> function,
        "argument" -> argument,
        "column" -> column,
        "columns" -> columns.mkString(", ")))

  def nested(function: String, outer: String, advice: String): AnalysisException =
    analysis(
      "CHANGELOG_NESTED",
      Map("function" -> function, "outer" -> outer, "advice" -> advice))

  def beforeImageMissing(column: String, value: String): ChangelogRuntimeException =
    runtime("CHANGELOG_BEFORE_IMAGE_MISSING", Map("column" -> column, "value" -> value))

  def columnReserved(column: String, use: String, advice: String): AnalysisException =
    analysis(
      "CHANGELOG_COLUMN_RESERVED",
      Map("column" -> column, "use" -> use, "advice" -> advice))

  def changeTypeUnknown(
      column: String,
      value: Option[String],
      expected: Seq[String]): ChangelogRuntimeException =
    runtime(
      "CHANGELOG_CHANGE_TYPE_UNKNOWN",
      Map(
        "column" -> column,
        "value" -> value.map(text => s"'$text'").getOrElse("NULL"),
        "expected" -> expected.mkString(", "),
        "example" -> value.getOrElse("your value")))

  def groupTooLarge(function: String, rows: Long, most: Long): ChangelogRuntimeException =
    runtime(
      "CHANGELOG_GROUP_TOO_LARGE",
      Map("function" -> function, "rows" -> rows.toString, "most" -> most.toString))

  def kafkaNotReachable(
      option: String,
      servers: String,
      reason: String,
      cause: Throwable): ChangelogRuntimeException =
    runtime(
      "CHANGELOG_KAFKA_NOT_REACHABLE",
      Map(
        "option" -> option,
        "servers" -> Credentials.removed(servers),
        "reason" -> Credentials.removed(reason)),
      cause)

  def keyNull(column: String, row: String): ChangelogRuntimeException =
    runtime("CHANGELOG_KEY_NULL", Map("column" -> column, "row" -> row))

  def recordMalformed(
      function: String,
      place: Option[String],
      fault: String,
      record: String): ChangelogRuntimeException =
    ofRecord("CHANGELOG_RECORD_MALFORMED", function, place, record, "fault" -> fault)

  def recordTruncates(
      function: String,
      place: Option[String],
      record: String): ChangelogRuntimeException =
    ofRecord("CHANGELOG_RECORD_TRUNCATES", function, place, record)

  private def ofRecord(
      condition: String,
      function: String,
      place: Option[String],
      record: String,
      more: (String, String)*): ChangelogRuntimeException =
    runtime(
      condition,
      Map(
        "function" -> function,
        "place" -> place.map(text => s" ($text)").getOrElse(""),
        "record" -> record) ++ more)

  def valueUnavailable(key: String, column: String): ChangelogRuntimeException =
    runtime("CHANGELOG_VALUE_UNAVAILABLE", Map("key" -> key, "column" -> column))

  def keyDuplicate(
      columns: String,
      key: String,
      row: String,
      rows: Long): ChangelogRuntimeException =
    runtime(
      "CHANGELOG_KEY_DUPLICATE",
      Map("columns" -> columns, "key" -> key, "row" -> row, "rows" -> rows.toString))

  def unmatchedRetraction(
      operator: String,
      key: String,
      conf: String): ChangelogRuntimeException =
    runtime(
      "CHANGELOG_UNMATCHED_RETRACTION",
      Map("operator" -> operator, "key" -> key, "conf" -> conf))

  def watermarkOnTable(column: String): AnalysisException =
    analysis("CHANGELOG_WATERMARK_ON_TABLE", Map("column" -> column))

  /** Returns the message in the form of Spark's own messages. */
  private def message(condition: String, parameters: Map[String, String]): String = {
    // a message that another one quotes has its own SQLSTATE
    val quoted = parameters.map { case (name, value) =>
      name -> (if (value == null) null else value.replaceAll(" SQLSTATE: \\w{5}", ""))
    }
    val text = reader.getErrorMessage(condition, quoted)
    s"[$condition] $text SQLSTATE: ${reader.getSqlState(condition)}"
  }
}

private class ChangelogAnalysisException(
    message: String,
    condition: String,
    parameters: Map[String, String],
    state: String,
    cause: Throwable)
    extends AnalysisException(
      message = message,
      errorClass = Some(condition),
      messageParameters = parameters,
      cause = Option(cause),
      sqlState = Some(state)) {

  /**
   * Returns this error unchanged, because the message already names the fault. Spark would format an error with
   * a query context again, from its own list of conditions, which lacks the project's conditions.
   */
  override def withPosition(origin: Origin): AnalysisException = this
}

/**
 * The error of an invalid row. The batch is not committed, and nothing is lost.
 *
 * The class extends a Spark exception, because PySpark converts only Spark's exceptions. Spark's constructor
 * requires one of Spark's conditions, which is never shown.
 */
class ChangelogRuntimeException(
    message: String,
    condition: String,
    parameters: Map[String, String],
    state: String,
    cause: Throwable)
    extends SparkRuntimeException(
      errorClass = "INTERNAL_ERROR",
      messageParameters = Map("message" -> message),
      cause = cause) {
  override def getMessage: String = message

  override def getCondition: String = condition

  override def getSqlState: String = state

  override def getMessageParameters: java.util.Map[String, String] = parameters.asJava
}
