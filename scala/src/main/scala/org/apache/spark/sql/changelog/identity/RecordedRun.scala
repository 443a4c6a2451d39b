// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.json4s.JsonAST._
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods.{parse, pretty, render}

import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf

import org.apache.spark.sql.changelog.checkpoint.{BatchLogs, TextFile}
import org.apache.spark.sql.changelog.compat.RunningStream
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.microbatch._

/**
 * A query that begins, or begins again, when the first batch of a run is planned.
 *
 * While no batch is done there is nothing to protect, and the query is written down anew. A view's query whose first
 * rows were computed without state is recorded with no operators yet.
 */
private[changelog] class RecordedRun(session: SparkSession, batch: PlannedBatch) {
  private val conf = session.sessionState.conf
  private val hadoopConf = session.sessionState.newHadoopConf()
  private val file = new QueryRecordFile(batch.checkpoint, hadoopConf)
  private val recorded =
    if (batch.batchId == 0 && !new BatchLogs(session, batch.checkpoint).isWithoutState) None
    else Some(file.read())
  private val hasOperators = batch.batchId > 0 || recorded.exists(_.operators.nonEmpty)
  private val current = QueryRecord(batch.query, conf)
  private val begun = recorded.fold(current)(current.begunAs)

  /** The query's sources by number. */
  lazy val sources: Map[Int, String] =
    SourceNames.byNumber(batch.query, current.streams.zip(begun.streams).toMap)

  /** The inherited state, if this is the first batch after an evolution. */
  lazy val takenOver: Option[InheritedState] =
    if (batch.batchId == 0) None
    else {
      InheritedState
        .file(batch.checkpoint, hadoopConf)
        .find()
        .map(InheritedState.fromJson)
        .filter(_.batch == batch.batchId)
    }

  /** The folder with the rows that the target holds, if it is not to be filled from nothing. */
  def heldRows: Option[String] =
    takenOver.filter(_.hasResult).map(_ => InheritedState.resultIn(batch.checkpoint).toString)

  /** Refuses another query than the recorded one, and goes on with the settings of that. */
  def begin(): Unit = {
    RunningStream(session).foreach(_.findLatestOffsets())
    recorded.foreach { record =>
      CheckSameQuery(batch.checkpoint.toString, record, current)
      RecordedSettings.use(record.settings, conf)
    }
    if (!hasOperators) {
      conf.setConf(ChangelogConf.STATE_PARTITIONS, Some(StatePartitions(session)))
      conf.setConf(ChangelogConf.SPREADING_SALTS, Some(SpreadingSalts.text(session)))
    }
    // rows that operators without state have shuffled are not shuffled again for those with state
    conf.setConf(SQLConf.SHUFFLE_PARTITIONS, AssignStateInfo.numPartitions(session))
  }

  /** Refuses other operators than the recorded ones, and writes down what the query is from now on. */
  def rewrittenTo(operators: Seq[OperatorRecord]): Unit = {
    val settings = RecordedSettings.valuesIn(conf)
    val next = begun.copy(settings = settings, operators = operators)
    recorded
      .filter(_ => hasOperators)
      .foreach(CheckSameQuery.operators(batch.checkpoint.toString, _, operators))
    if (!recorded.contains(next)) file.write(next)
  }
}

/**
 * The settings that a query keeps for life, whatever a session has when it is begun again.
 *
 * Spark itself keeps a few in its offset log, such as the number of partitions of its own operators.
 */
private[changelog] object RecordedSettings {

  /** Settings that decide which operators there are, and what those keep. */
  private val layout: Seq[ConfigEntry[_]] = Seq(
    ChangelogConf.DISTINCT_SPLIT_ENABLED,
    ChangelogConf.SKEW_WAYS,
    ChangelogConf.SHARE_EQUAL_PARTS_ENABLED,
    ChangelogConf.RANK_TWO_LEVEL_ENABLED,
    ChangelogConf.JOIN_SPREAD_ENABLED)

  /** Settings that a session need not have: the first run of a query chooses their values. */
  private val optional: Seq[ConfigEntry[_ <: Option[_]]] =
    Seq(ChangelogConf.STATE_PARTITIONS, ChangelogConf.SPREADING_SALTS)

  /** Settings that decide what expressions give. */
  private val meaning: Seq[ConfigEntry[_]] = Seq(
    SQLConf.ANSI_ENABLED,
    SQLConf.CASE_SENSITIVE,
    SQLConf.DECIMAL_OPERATIONS_ALLOW_PREC_LOSS,
    SQLConf.LEGACY_TIME_PARSER_POLICY,
    SQLConf.MAP_KEY_DEDUP_POLICY,
    SQLConf.SESSION_LOCAL_TIMEZONE)

  /** Settings that decide how a text is read. */
  private val reading: Seq[ConfigEntry[_]] =
    Seq(
      SQLConf.ESCAPED_STRING_LITERALS,
      SQLConf.DOUBLE_QUOTED_IDENTIFIERS,
      SQLConf.TIMESTAMP_TYPE)

  private val Legacy = "spark.sql.legacy."

  /** The values they have in a session. */
  def valuesIn(conf: SQLConf): Map[String, String] = {
    val named = (layout ++ meaning).map(entry => entry.key -> conf.getConf(entry).toString)
    conf.getAllConfs.filter(_._1.startsWith(Legacy)) ++ named ++
      optional.flatMap(entry => conf.getConf(entry).map(entry.key -> _.toString))
  }

  /**
   * Lets `conf` have the defaults of settings that decide what a text gives, but for those of the names `known`.
   * They are set, for tasks would find those of the session that has begun the statement.
   */
  def forgetMeaning(conf: SQLConf, known: Set[String]): Unit = {
    val names = (meaning ++ reading).map(_.key).toSet
    // others are never recorded, such as names that a setting had
    val found = conf.getAllConfs.keys.filter { key =>
      (names(key) || key.startsWith(Legacy)) && conf.isModifiable(key)
    }
    found.filterNot(known).foreach { key =>
      conf.unsetConf(key)
      val default = ConfigEntry.findEntry(key).defaultValueString
      if (default != ConfigEntry.UNDEFINED) conf.setConfString(key, default)
    }
  }

  /** Names of settings that a session has otherwise than the query was begun with, but for those it chose itself. */
  def changed(recorded: Map[String, String], is: Map[String, String]): Seq[String] = {
    val chosen = optional.map(_.key).filterNot(is.contains)
    val names = recorded.keySet ++ is.keySet -- chosen
    names.toSeq.sorted.filter(key => recorded.get(key) != is.get(key))
  }

  /** Lets `conf` have them again, but for the mode of expressions: that is part of them. */
  def use(recorded: Map[String, String], conf: SQLConf): Unit = {
    valuesIn(conf).keys.filterNot(recorded.contains).foreach(conf.unsetConf(_: String))
    (recorded - SQLConf.ANSI_ENABLED.key).foreach { case (key, value) =>
      conf.setConfString(key, value)
    }
  }
}

/**
 * State that an evolved query inherits from the checkpoint of the query before it:
 * `changelog/taken-over.json`.
 *
 * @param batch
 *   the first batch of the evolved query
 * @param parts
 *   fingerprints of the parts whose state is inherited
 * @param hasResult
 *   whether the checkpoint holds the target's rows, of which the first batch retracts those that are
 *   not in the new result
 */
private[changelog] final case class InheritedState(
    batch: Long,
    parts: Set[String],
    hasResult: Boolean) {

  def toJson: String = pretty(
    render(("batch" -> batch) ~ ("parts" -> parts.toSeq.sorted) ~ ("hasResult" -> hasResult)))
}

private[changelog] object InheritedState {

  /** The folder of the rows that the target holds. */
  def resultIn(checkpoint: Path): Path = new Path(new Path(checkpoint, "changelog"), "result")

  def file(checkpoint: Path, hadoopConf: Configuration): TextFile =
    new TextFile(new Path(new Path(checkpoint, "changelog"), "taken-over.json"), hadoopConf)

  def fromJson(text: String): InheritedState = {
    val json = parse(text)
    val JInt(batch) = json \ "batch": @unchecked
    val JArray(parts) = json \ "parts": @unchecked
    val JBool(hasResult) = json \ "hasResult": @unchecked
    InheritedState(batch.toLong, parts.collect { case JString(part) => part }.toSet, hasResult)
  }
}
