// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.errors

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.{ErrorClassesJsonReader, SparkRuntimeException}

/**
 * ChangelogErrors: builds errors for users, from `error/changelog-error-conditions.json`.
 *
 * Mistakes in a query raise an [[org.apache.spark.sql.AnalysisException]], invalid rows raise a
 * [[ChangelogRuntimeException]]. Both have the condition's name, the SQLSTATE and the parameters.
 */
object ChangelogErrors {
  private lazy val reader = new ErrorClassesJsonReader(
    Seq(getClass.getClassLoader.getResource("error/changelog-error-conditions.json")))

  /**
   * Returns the error of a mistake in a query.
   *
   * @param parameters
   *   the parameters of the condition's message. A sequence is shown as its elements, or as `none`.
   */
  def analysis(condition: String, parameters: (String, Any)*): AnalysisException =
    analysis(condition, null, parameters: _*)

  def analysis(
      condition: String,
      cause: Throwable,
      parameters: (String, Any)*): AnalysisException = {
    val texts = textsOf(parameters)
    val state = reader.getSqlState(condition)
    new ChangelogAnalysisException(message(condition, texts), condition, texts, state, cause)
  }

  /** Returns the error of an invalid row, or of an unusable checkpoint. */
  def runtime(condition: String, parameters: (String, Any)*): ChangelogRuntimeException =
    runtime(condition, null, parameters: _*)

  def runtime(
      condition: String,
      cause: Throwable,
      parameters: (String, Any)*): ChangelogRuntimeException = {
    val texts = textsOf(parameters)
    val state = reader.getSqlState(condition)
    new ChangelogRuntimeException(message(condition, texts), condition, texts, state, cause)
  }

  def argumentInvalid(
      function: String,
      argument: String,
      value: String,
      expected: String): AnalysisException =
    analysis(
      "CHANGELOG_ARGUMENT_INVALID",
      "function" -> function,
      "argument" -> argument,
      "value" -> value,
      "expected" -> expected)

  def changeTypeUnknown(
      column: String,
      value: Option[String],
      expected: Seq[String]): ChangelogRuntimeException =
    runtime(
      "CHANGELOG_CHANGE_TYPE_UNKNOWN",
      "column" -> column,
      "value" -> value.map(text => s"'$text'").getOrElse("NULL"),
      "expected" -> expected,
      "example" -> value.getOrElse("your value"))

  /** @param advice the advice for an undamaged file; empty, or a sentence */
  def fileDamaged(
      file: String,
      fault: String,
      advice: String = "",
      cause: Throwable = null): ChangelogRuntimeException =
    runtime(
      "CHANGELOG_CHECKPOINT_FILE_DAMAGED",
      cause,
      "file" -> file,
      "fault" -> fault,
      "advice" -> (if (advice.isEmpty) "" else s" $advice"))

  private def textsOf(parameters: Seq[(String, Any)]): Map[String, String] =
    parameters.map { case (name, value) => name -> textOf(value) }.toMap

  private def textOf(value: Any): String = value match {
    case values: collection.Seq[_] =>
      if (values.isEmpty) "none" else values.map(textOf).mkString(", ")
    case Some(value) => textOf(value)
    case None => "none"
    case table: TableIdentifier => table.quotedString
    case other => if (other == null) null else other.toString
  }

  /** Returns the message in the form of Spark's own messages. */
  private def message(condition: String, parameters: Map[String, String]): String = {
    // a quoted message ends with an SQLSTATE, and the whole message does too
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
   * Returns the unchanged error, because the message already names the fault. With a query context, Spark would
   * format the message again, from Spark's list of conditions without the conditions of this project.
   */
  override def withPosition(origin: Origin): AnalysisException = this
}

/**
 * The error of an invalid row. The batch is not committed, and nothing is lost.
 *
 * The class extends a Spark exception, because PySpark converts only Spark's exceptions. The constructor
 * requires a condition of Spark. Users never see the condition.
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

/** Removes users and passwords from texts to store or show. */
private[changelog] object Credentials {
  private val secrets =
    "(?:[\\w.-]*passw(?:or)?d\\d?|[\\w.-]*pwd|[\\w.-]*secret|[\\w.-]*token|" +
      "[\\w.-]*(?:secret|private|access|account|client)_?\\w*key|sig|x-amz-(?:signature|credential))"
  private val names = s"(?:user|username|uid|$secrets)"

  // jdbc:oracle:thin:user/password@host
  private val oracle = "(?i)(jdbc:oracle:\\w+:)[^\\s(]*@"
  // a password may contain an @
  private val jdbc = "(?i)(jdbc:[^\\s?;]*//)[^\\s?;]*@"
  // a password may contain a /, and a / follows a port
  private val authority = "(?<=//)[^\\s/@:]+:(?!\\d+/)[^\\s@]*@"

  private val patterns = Seq(
    oracle -> "$1@",
    jdbc -> "$1",
    authority -> "",
    "//[^/@]*@" -> "//",
    s"(?i)([?&;:]$names\\s*=)(\\{[^}]*\\}|[^&;]*)" -> "$1",
    // jdbc:mysql://(host=db,user=...,password=...)
    s"(?i)([(,]$names\\s*=)[^),]*" -> "$1")

  /** Patterns of secrets, apart from user names. The last is a setting of Kafka's JAAS. */
  private val revealing = Seq(
    "(?i)jdbc:oracle:\\w+:[^\\s(/]+/[^\\s(]*@",
    "(?i)jdbc:[^\\s?;]*//[^\\s?;:@]*:[^\\s?;]*@",
    authority,
    s"(?i)[?&;:(,]$secrets\\s*=",
    s"(?i)\\s$secrets\\s*=\\s*[\"']",
    "-----BEGIN [\\w ]*PRIVATE KEY").map(_.r)

  /** Returns an address without user and password. */
  def removed(address: String): String = patterns.foldLeft(address) {
    case (text, (pattern, replacement)) => text.replaceAll(pattern, replacement)
  }

  /** Returns whether an address or a client setting contains a password, a token or a key. */
  def hasSecret(text: String): Boolean = revealing.exists(_.findFirstIn(text).isDefined)
}
