// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import java.nio.charset.StandardCharsets.UTF_8
import java.util.zip.CRC32

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.json4s.JsonAST._
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods.{compact, parse, pretty, render}

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.internal.SQLConf

import org.apache.spark.sql.changelog.analysis.LowerSources
import org.apache.spark.sql.changelog.checkpoint.TextFile
import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.errors.CheckpointErrors
import org.apache.spark.sql.changelog.plans.{StateTable, ToChangelog}

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

  /** The names of the snapshots that feeds begin with. */
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

/**
 * What a checkpoint says of a node that keeps state.
 *
 * @param ids
 *   the operators it is run by: its folders below `state`
 * @param node
 *   what the node is, as its query is optimized: this decides what is kept, and in which order
 * @param shown
 *   the same for people
 * @param tables
 *   what it keeps, and what bounds that
 * @param part
 *   what tells the node, with all that lies below it, from those of other queries, if that can be told
 */
private[changelog] final case class OperatorRecord(
    ids: Seq[Long],
    node: String,
    shown: String,
    mode: String,
    tables: Seq[String],
    part: Option[PartRecord] = None) {

  def toJson: JObject =
    ("ids" -> ids) ~ ("node" -> node) ~ ("shown" -> shown) ~ ("mode" -> mode) ~
      ("tables" -> tables) ~ ("part" -> part.map(_.toJson))

  /** What must be the same at a restart. */
  def line: String = s"${ids.mkString(", ")}: $node"

  /** The kinds of its tables, such as `rows`, which must be the same too; columns may be renamed. */
  def kinds: Seq[String] = tables.map(_.takeWhile(_.isLetter))

  /** Whether it forgets what nothing has changed for some time. */
  def hasTtl: Boolean = tables.exists(StateTable.hasTtl)

  /** A description of the operator's state. */
  def kept: String = s"${ids.mkString(", ")}: $shown keeps ${tables.mkString("; ")}"
}

private[changelog] object OperatorRecord {
  def fromJson(json: JValue): OperatorRecord = {
    def text(field: String) = {
      val JString(value) = json \ field: @unchecked
      value
    }
    def texts(field: String) = {
      val JArray(values) = json \ field: @unchecked
      values.collect { case JString(value) => value }
    }
    OperatorRecord(
      numbers(json, "ids"),
      text("node"),
      text("shown"),
      text("mode"),
      texts("tables"),
      (json \ "part").toOption.map(PartRecord.fromJson))
  }

  private[identity] def numbers(json: JValue, field: String): Seq[Long] = {
    val JArray(values) = json \ field: @unchecked
    values.collect { case JInt(value) => value.toLong }
  }
}

/**
 * What a checkpoint says of a node with state and of all that lies below it, so that another query with
 * an equal part can go on with its state.
 *
 * @param fingerprint
 *   the same for two parts exactly if the state of one can be taken for that of the other
 * @param operators
 *   all operators of the part
 * @param givesRows
 *   whether the rows that the node has emitted, and not taken back, can be read from its state
 */
private[changelog] final case class PartRecord(
    fingerprint: String,
    operators: Seq[Long],
    givesRows: Boolean) {

  def toJson: JObject =
    ("fingerprint" -> fingerprint) ~ ("operators" -> operators) ~ ("givesRows" -> givesRows)
}

private[changelog] object PartRecord {
  def fromJson(json: JValue): PartRecord = {
    val JString(fingerprint) = json \ "fingerprint": @unchecked
    val JBool(givesRows) = json \ "givesRows": @unchecked
    PartRecord(fingerprint, OperatorRecord.numbers(json, "operators"), givesRows)
  }
}

/**
 * The file `changelog/plan.json` of a checkpoint. It is written when the first batch is planned.
 *
 * @param checkpoint
 *   the folder that holds the offset log
 */
private[changelog] class QueryRecordFile(checkpoint: Path, hadoopConf: Configuration) {
  private val path = new Path(new Path(checkpoint, "changelog"), "plan.json")
  private val file = new TextFile(path, hadoopConf)

  def exists: Boolean = file.exists

  /** Fails if the file is missing or damaged. */
  def read(): QueryRecord = {
    val record =
      try file.find().map(QueryRecord.fromJson)
      catch { case NonFatal(e) => throw CheckpointErrors.recordDamaged(path.toString, e) }
    record.getOrElse(throw CheckpointErrors.recordMissing(path.toString))
  }

  def write(record: QueryRecord): Unit = file.write(record.toJson)
}
