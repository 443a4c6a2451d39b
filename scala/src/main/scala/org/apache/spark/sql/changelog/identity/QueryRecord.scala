// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import java.nio.charset.StandardCharsets.UTF_8
import java.util.zip.CRC32

import org.json4s.JsonAST._
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods.{compact, parse, pretty, render}

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.internal.SQLConf

import org.apache.spark.sql.changelog.analysis.LowerSources
import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.plans.ToChangelog

/**
 * What a query is, so that it can be begun again: `changelog/plan.json` in its checkpoint.
 *
 * @param settings
 *   those that decide what expressions mean, or how state is laid out
 * @param sources
 *   where each of the query's streams comes from, in the order of its offsets
 * @param queries
 *   what is below each `to_changelog`, as it was written by the user
 * @param operators
 *   the nodes that keep state; none before the query is optimized
 * @param streams
 *   the same as `sources`, but of a common table once
 * @param readings
 *   which of `streams` each of the offsets of a batch is of: one that is read twice has two
 * @param spark
 *   the version of Spark that has planned it
 */
private[changelog] final case class QueryRecord(
    settings: Map[String, String],
    sources: Seq[String],
    queries: Seq[CanonicalNode],
    operators: Seq[OperatorRecord] = Nil,
    streams: Seq[String] = Nil,
    readings: Seq[Int] = Nil,
    spark: String = SPARK_VERSION) {

  def lines: Seq[String] = queries.flatMap(_.lines)

  /** What the snapshots are called that feeds of it begin with. */
  def snapshots: Seq[String] = streams.filter(SourceNames.isSnapshot)

  /** With the snapshots that the query has begun with: a start that is not its first reads none. */
  def begunAs(was: QueryRecord): QueryRecord = {
    def begun(was: Seq[String], is: Seq[String]) =
      if (was.size != is.size) is
      else is.zip(was).map { case (now, old) => if (SourceNames.isSnapshot(now)) old else now }
    copy(sources = begun(was.sources, sources), streams = begun(was.streams, streams))
  }

  def toJson: String = {
    val product = Option(getClass.getPackage.getImplementationVersion).getOrElse("unreleased")
    val json: JObject =
      ("version" -> QueryRecord.Version) ~
        ("product" -> product) ~
        ("spark" -> spark) ~
        ("settings" -> JObject(settings.toSeq.sorted.map { case (key, value) =>
          key -> (JString(value): JValue)
        }.toList)) ~
        ("sources" -> sources) ~
        ("streams" -> streams) ~
        ("readings" -> readings) ~
        ("queries" -> JArray(queries.map(_.toJson).toList)) ~
        ("operators" -> JArray(operators.map(_.toJson).toList))
    pretty(render(json ~ (QueryRecord.Checksum -> QueryRecord.checksum(json))))
  }
}

private[changelog] object QueryRecord {

  /**
   * The form of what is written; another form is refused.
   *
   * Where a later version words queries or operators otherwise, such as by a column that a node now tells
   * or an expression it calls by another name, the same query would be told apart from itself. So the number
   * goes up with the wording, and an older record is refused by it rather than by a difference that its
   * user has not made.
   */
  val Version = 1

  private val Checksum = "checksum"

  private def checksum(json: JValue): String = {
    val sum = new CRC32
    sum.update(compact(render(json)).getBytes(UTF_8))
    f"${sum.getValue}%08x"
  }

  /** The query of a stream, as it has been analyzed with `conf`. */
  def apply(query: LogicalPlan, conf: SQLConf): QueryRecord = {
    val lifted = SparkRules.inlineCommonTables(query)
    val inlined = LowerSources(lifted)
    QueryRecord(
      RecordedSettings.valuesIn(conf),
      SourceNames(lifted),
      inlined.collect { case root: ToChangelog => CanonicalPlan(root) },
      streams = SourceNames(query),
      readings = SourceNames.readings(query))
  }

  /** Throws whatever a text that is no record makes it throw. */
  def fromJson(text: String): QueryRecord = {
    val json = parse(text)
    val JInt(version) = json \ "version": @unchecked
    require(version == Version, s"version $version is not $Version")
    val JObject(settings) = json \ "settings": @unchecked
    val JArray(sources) = json \ "sources": @unchecked
    val JArray(queries) = json \ "queries": @unchecked
    val JArray(operators) = json \ "operators": @unchecked
    val JArray(streams) = json \ "streams": @unchecked
    val JArray(readings) = json \ "readings": @unchecked
    val JString(spark) = json \ "spark": @unchecked
    val rest = json.removeField(_._1 == Checksum)
    require(
      json \ Checksum == JString(checksum(rest)),
      "its checksum is not that of what is in it")
    QueryRecord(
      settings.collect { case (key, JString(value)) => key -> value }.toMap,
      sources.collect { case JString(source) => source },
      queries.map(CanonicalNode.fromJson),
      operators.map(OperatorRecord.fromJson),
      streams.collect { case JString(stream) => stream },
      readings.collect { case JInt(source) => source.toInt },
      spark)
  }
}
