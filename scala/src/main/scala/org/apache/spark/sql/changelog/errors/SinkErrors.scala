// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.errors

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.types.DataType

import org.apache.spark.sql.changelog.errors.ChangelogErrors.{analysis, runtime}

/** The errors of sinks. An error shows the value of an option only if the option is known not to be secret. */
object SinkErrors {
  def batchSuperseded(
      sink: String,
      table: String,
      query: String,
      batch: Long,
      stored: Long): ChangelogRuntimeException =
    runtime(
      "CHANGELOG_SINK_BATCH_SUPERSEDED",
      Map(
        "sink" -> sink,
        "table" -> table,
        "query" -> query,
        "batch" -> batch.toString,
        "stored" -> stored.toString))

  def changeTypeMissing(sink: String, columns: Seq[String]): AnalysisException =
    analysis(
      "CHANGELOG_SINK_CHANGE_TYPE_MISSING",
      Map("sink" -> sink, "columns" -> columns.mkString(", ")))

  /**
   * @param user
   *   the value of the option; without the option, the URL may contain the user
   * @param error
   *   the error of the driver or Spark; kept as the cause only without a secret
   */
  def connectionFailed(
      url: String,
      user: Option[String],
      password: Option[String],
      error: Throwable): ChangelogRuntimeException = {
    val chain = Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(20).toSeq
    val told = chain.flatMap(e => Option(e.getMessage)).distinct
    def hidden(text: String) = Credentials.removed(
      password.foldLeft(text.replace(url, Credentials.removed(url)))(_.replace(_, "***")))
    runtime(
      "CHANGELOG_SINK_CONNECTION_FAILED",
      Map(
        "sink" -> "changelog-jdbc",
        "address" -> Credentials.removed(url).split("[?;]").head,
        "user" -> user.fold("the user that its url names")(name => s"the user $name"),
        "reason" -> (if (told.isEmpty) error.getClass.getName
                     else hidden(told.mkString(" "))).stripSuffix(".")),
      if (told.forall(text => hidden(text) == text)) error else null)
  }

  def driverNotFound(sink: String, kind: String, driver: Option[String]): AnalysisException =
    analysis(
      "CHANGELOG_SINK_DRIVER_NOT_FOUND",
      Map(
        "sink" -> sink,
        "kind" -> kind,
        "driver" -> driver.fold("")(name => s" of the class $name")))

  def keyDiffers(sink: String, key: Seq[String], by: Seq[String]): AnalysisException =
    analysis(
      "CHANGELOG_SINK_KEY_DIFFERS",
      Map("sink" -> sink, "key" -> list(key), "by" -> list(by)))

  def keyNotUnique(sink: String, key: Seq[String], keys: Seq[Seq[String]]): AnalysisException =
    analysis(
      "CHANGELOG_SINK_KEY_NOT_UNIQUE",
      Map(
        "sink" -> sink,
        "key" -> list(key),
        "keys" -> (if (keys.isEmpty) "none" else keys.map(list).mkString(" or "))))

  /** @param longest in bytes */
  def nameTooLong(table: String, column: String, longest: Int): AnalysisException =
    analysis(
      "CHANGELOG_SINK_NAME_TOO_LONG",
      Map(
        "sink" -> "changelog-jdbc",
        "table" -> table,
        "column" -> column,
        "longest" -> longest.toString))

  /**
   * The target has later rows than the batch from which the query continues.
   *
   * @param origin
   *   the query that wrote the rows
   * @param forked
   *   the last batch that both queries share
   * @param held
   *   the last batch of `origin` in the target
   */
  def notAtFork(
      sink: String,
      table: String,
      origin: String,
      forked: Long,
      held: Long): ChangelogRuntimeException =
    runtime(
      "CHANGELOG_SINK_NOT_AT_FORK",
      Map(
        "sink" -> sink,
        "table" -> table,
        "origin" -> origin,
        "forked" -> forked.toString,
        "held" -> held.toString))

  /**
   * The target has rows of the query before its change, but the changed query writes a complete result.
   *
   * @param origin
   *   the query that wrote the rows
   * @param held
   *   the last batch of `origin` in the target
   */
  def notEmpty(
      sink: String,
      table: String,
      origin: String,
      held: Long): ChangelogRuntimeException =
    runtime(
      "CHANGELOG_SINK_NOT_EMPTY",
      Map("sink" -> sink, "table" -> table, "origin" -> origin, "held" -> held.toString))

  def memoryLost(sink: String, table: String, batch: Long): ChangelogRuntimeException =
    runtime(
      "CHANGELOG_SINK_MEMORY_LOST",
      Map("sink" -> sink, "table" -> table, "batch" -> batch.toString))

  def needsAppend(sink: String, producer: String, kinds: String): AnalysisException =
    analysis(
      "CHANGELOG_SINK_NEEDS_APPEND",
      Map("sink" -> sink, "producer" -> producer, "kinds" -> kinds))

  def needsStream(sink: String): AnalysisException =
    analysis("CHANGELOG_SINK_NEEDS_STREAM", Map("sink" -> sink))

  def optionInvalid(
      sink: String,
      option: String,
      value: String,
      expected: String): AnalysisException =
    analysis(
      "CHANGELOG_SINK_OPTION_INVALID",
      Map("sink" -> sink, "option" -> option, "value" -> value, "expected" -> expected))

  def optionMissing(sink: String, option: String, expected: String): AnalysisException =
    optionInvalid(sink, option, "not set", expected)

  def optionUnknown(sink: String, option: String, meant: String): AnalysisException =
    analysis(
      "CHANGELOG_SINK_OPTION_UNKNOWN",
      Map("sink" -> sink, "option" -> option, "meant" -> meant))

  def partitionEmpty(table: String, column: String): ChangelogRuntimeException =
    runtime("CHANGELOG_SINK_PARTITION_EMPTY", Map("table" -> table, "column" -> column))

  def rowsOfOneKey(sink: String, key: String, rows: Long): ChangelogRuntimeException =
    runtime(
      "CHANGELOG_SINK_ROWS_OF_ONE_KEY",
      Map("sink" -> sink, "key" -> key, "rows" -> rows.toString))

  def tableNotFound(sink: String, table: String): AnalysisException =
    analysis("CHANGELOG_SINK_TABLE_NOT_FOUND", Map("sink" -> sink, "table" -> table))

  def valueNotComparable(sink: String, column: String, dataType: DataType): AnalysisException =
    analysis(
      "CHANGELOG_SINK_VALUE_NOT_COMPARABLE",
      Map("sink" -> sink, "column" -> column, "type" -> dataType.sql))

  /** @param held the value that the database stores instead */
  def valueNotHeld(
      table: String,
      column: String,
      value: Any,
      held: String): ChangelogRuntimeException = {
    val shown = value.toString.replace("\u0000", "\\u0000").take(MaxShown)
    runtime(
      "CHANGELOG_SINK_VALUE_NOT_HELD",
      Map(
        "sink" -> "changelog-jdbc",
        "table" -> table,
        "column" -> column,
        "value" -> shown,
        "held" -> held))
  }

  /** The maximum number of characters of a value in an error. */
  private val MaxShown = 100

  private def list(columns: Seq[String]): String = columns.mkString("(", ", ", ")")
}
