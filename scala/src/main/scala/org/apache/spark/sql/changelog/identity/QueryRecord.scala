// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import java.nio.charset.StandardCharsets.UTF_8
import java.util.zip.CRC32

import scala.collection.immutable.ListMap
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.json4s.JsonDSL._
import org.json4s._
import org.json4s.jackson.JsonMethods.{compact, parse, pretty, render}
import org.json4s.jackson.Serialization

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.internal.SQLConf

import org.apache.spark.sql.changelog.analysis.LowerSources
import org.apache.spark.sql.changelog.checkpoint.TextFile
import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime
import org.apache.spark.sql.changelog.plans.{StateTable, ToChangelog}

/**
 * The recorded plan of a query for restarts: `changelog/plan.json` in the checkpoint.
 *
 * @param settings
 *   the settings that decide about expressions or about the layout of state
 * @param sources
 *   the location of each stream, in the order of offsets
 * @param queries
 *   the plan below each `to_changelog`, as analyzed
 * @param operators
 *   the stateful nodes; empty before the query is optimized
 * @param streams
 *   like `sources`, with each common table once
 * @param readings
 *   for each offset of a batch, the position in `streams`: a stream read twice has two offsets
 * @param spark
 *   the version of Spark that planned the query
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

  /** The names of the snapshots at the start of feeds. */
  def snapshots: Seq[String] = streams.filter(SourceNames.isSnapshot)

  /** Returns the record with the original snapshots. A restart reads no snapshot. */
  def withSnapshotsOf(was: QueryRecord): QueryRecord = {
    def begun(was: Seq[String], is: Seq[String]) =
      if (was.size != is.size) is
      else is.zip(was).map { case (now, old) => if (SourceNames.isSnapshot(now)) old else now }
    copy(sources = begun(was.sources, sources), streams = begun(was.streams, streams))
  }

  def toJson: String = {
    import QueryRecord.formats
    val product = Option(getClass.getPackage.getImplementationVersion).getOrElse("unreleased")
    val json: JObject =
      ("version" -> QueryRecord.Version) ~
        ("product" -> product) ~
        ("spark" -> spark) ~
        ("settings" -> Extraction.decompose(ListMap.from(settings.toSeq.sorted))) ~
        ("sources" -> sources) ~
        ("streams" -> streams) ~
        ("readings" -> readings) ~
        ("queries" -> JArray(queries.map(_.toJson).toList)) ~
        ("operators" -> Extraction.decompose(operators))
    pretty(render(json ~ (QueryRecord.Checksum -> QueryRecord.checksum(json))))
  }
}

private[changelog] object QueryRecord {

  /**
   * The version of the record's format. Other versions are rejected.
   *
   * A later version of the extension may describe queries or operators in other words. An
   * unchanged query would then differ from its own record. The number therefore increases with
   * the words, and an older record fails by its number. The user never sees a difference without
   * a cause in the query.
   */
  val Version = 1

  private implicit val formats: Formats = Serialization.formats(NoTypeHints)

  private val Checksum = "checksum"

  private def checksum(json: JValue): String = {
    val sum = new CRC32
    sum.update(compact(render(json)).getBytes(UTF_8))
    f"${sum.getValue}%08x"
  }

  /** Returns the record of a stream's query, analyzed with `conf`. */
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

  /** Parses a record. Throws any error for an invalid text. */
  def fromJson(text: String): QueryRecord = {
    val json = parse(text)
    val JInt(version) = json \ "version": @unchecked
    require(version == Version, s"version $version is not $Version")
    val rest = json.removeField(_._1 == Checksum)
    require(json \ Checksum == JString(checksum(rest)), "the checksum does not match the content")
    QueryRecord(
      (json \ "settings").extract[Map[String, String]],
      (json \ "sources").extract[Seq[String]],
      (json \ "queries").children.map(CanonicalNode.fromJson),
      (json \ "operators").extract[Seq[OperatorRecord]],
      (json \ "streams").extract[Seq[String]],
      (json \ "readings").extract[Seq[Int]],
      (json \ "spark").extract[String])
  }
}

/**
 * The record of a stateful node.
 *
 * @param ids
 *   the ids of the node's operators, which name folders below `state`
 * @param node
 *   the text of the optimized node, which determines the layout of state
 * @param shown
 *   the text of the node for readers
 * @param tables
 *   the stored tables, with their bounds
 * @param part
 *   the record of the node with its inputs, for reuse by a changed query, if possible
 */
private[changelog] final case class OperatorRecord(
    ids: Seq[Long],
    node: String,
    shown: String,
    mode: String,
    tables: Seq[String],
    part: Option[PartRecord] = None) {

  /** The text that must be equal at a restart. */
  def line: String = s"${ids.mkString(", ")}: $node"

  /**
   * The kinds of tables, for example `rows`. Kinds must be equal at a restart. Columns may have
   * new names.
   */
  def kinds: Seq[String] = tables.map(_.takeWhile(_.isLetter))

  /** Whether the operator has a state TTL. */
  def hasTtl: Boolean = tables.exists(StateTable.hasTtl)

  /** A description of the operator's state. */
  def kept: String = s"${ids.mkString(", ")}: $shown keeps ${tables.mkString("; ")}"
}

/**
 * The record of a stateful node with all its inputs. A query with an equal part can inherit its
 * state.
 *
 * @param fingerprint
 *   equal for two parts exactly if either part can use the state of both
 * @param operators
 *   all operators of the part
 * @param givesRows
 *   whether the node's current result can be read from its state
 */
private[changelog] final case class PartRecord(
    fingerprint: String,
    operators: Seq[Long],
    givesRows: Boolean)

/**
 * The file `changelog/plan.json` of a checkpoint, written when the first batch is planned.
 *
 * @param checkpoint
 *   the folder with the offset log
 */
private[changelog] class QueryRecordFile(checkpoint: Path, hadoopConf: Configuration) {
  private val path = new Path(new Path(checkpoint, "changelog"), "plan.json")
  private val file = new TextFile(path, hadoopConf)

  def exists: Boolean = file.exists

  /** Returns the record. Fails if the file is missing or damaged. */
  def read(): QueryRecord = {
    val record =
      try file.find().map(QueryRecord.fromJson)
      catch {
        case NonFatal(e) =>
          throw runtime("CHANGELOG_QUERY_RECORD_DAMAGED", e, "file" -> path, "cause" -> e)
      }
    record.getOrElse(throw runtime("CHANGELOG_QUERY_RECORD_MISSING", "file" -> path))
  }

  def write(record: QueryRecord): Unit = file.write(record.toJson)
}
