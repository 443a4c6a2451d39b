// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import scala.util.Try

import org.apache.commons.text.similarity.LevenshteinDistance

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/** The options of a sink. Values may be secret, and only the methods here expose them. */
class SinkOptions(val format: String, parameters: Map[String, String]) extends Serializable {
  private val options = CaseInsensitiveMap(parameters)

  def get(name: String): Option[String] = options.get(name)

  def required(name: String, expected: String): String =
    get(name).filter(_.nonEmpty).getOrElse(throw invalid(name, expected))

  /** Returns the error of an option with a wrong value, or without a value. */
  def invalid(name: String, expected: String): AnalysisException = analysis(
    "CHANGELOG_SINK_OPTION_INVALID",
    "sink" -> format,
    "option" -> name,
    "value" -> get(name).filter(_.nonEmpty).getOrElse("not set"),
    "expected" -> expected)

  def boolean(name: String, default: Boolean): Boolean =
    parsed(name, default, "true or false is expected")(_.toBoolean)

  /** Returns a count of at least one. */
  def count(name: String, default: Int): Int =
    parsed(name, default, "a whole number of at least 1 is expected") { text =>
      Some(text.toInt).filter(_ > 0).get
    }

  /**
   * Rejects an option whose name resembles a known option. An unknown name is no error, because
   * the sink may pass unknown options on.
   */
  def refuseMistyped(known: Seq[String]): Unit = {
    val distance = new LevenshteinDistance(SinkOptions.MaxDistance)
    for {
      name <- parameters.keys if !(known ++ SinkOptions.ofSpark).exists(_.equalsIgnoreCase(name))
      meant <- known.find(option => distance(option.toLowerCase, name.toLowerCase) >= 0)
    } throw analysis(
      "CHANGELOG_SINK_OPTION_UNKNOWN",
      "sink" -> format,
      "option" -> name,
      "meant" -> meant)
  }

  /** The columns of the key, as given by the user. */
  def key: Option[String] = get("key")

  def all: Map[String, String] = parameters

  /**
   * Returns the options of one of several sinks, by the prefix of the sink's name, and Spark's options.
   */
  def ofSink(name: String): Map[String, String] = {
    val prefix = s"$name."
    parameters.collect {
      case (option, value)
          if option.toLowerCase.startsWith(prefix.toLowerCase) && option.drop(
            prefix.length) != "format" =>
        option.drop(prefix.length) -> value
      case (option, value) if SinkOptions.ofSpark.exists(_.equalsIgnoreCase(option)) =>
        option -> value
    }
  }

  /** Returns the options, except Spark's options and `names`. */
  def without(names: String*): Map[String, String] = {
    val dropped = (SinkOptions.ofSpark ++ names).map(_.toLowerCase)
    parameters.filterNot { case (name, _) => dropped.contains(name.toLowerCase) }
  }

  private def parsed[T](name: String, default: T, expected: String)(parse: String => T): T =
    get(name).fold(default)(text => Try(parse(text)).getOrElse(throw invalid(name, expected)))
}

object SinkOptions {

  /** The largest edit distance of a mistyped name. */
  private val MaxDistance = 2

  /** Spark's own options of every sink. */
  private val ofSpark = Set("checkpointLocation", "queryName", "path")
}
