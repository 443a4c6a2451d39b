// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.json4s.jackson.Serialization
import org.json4s.{Formats, NoTypeHints}

import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf

import org.apache.spark.sql.changelog.checkpoint.{BatchLogs, TextFile}
import org.apache.spark.sql.changelog.compat.RunningStream
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.microbatch._

/**
 * The start or restart of a query, when the first batch of a run is planned.
 *
 * Before the first batch is done, the record is replaced. If a view's first rows were computed
 * without state, the record has no operators yet.
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
  private val begun = recorded.fold(current)(current.withSnapshotsOf)

  /** The query's sources by number. */
  lazy val sources: Map[Int, String] =
    SourceNames.byNumber(batch.query, current.streams.zip(begun.streams).toMap)

  /** The inherited state, if this is the first batch after an evolution. */
  lazy val inheritedState: Option[InheritedState] =
    if (batch.batchId == 0) None
    else {
      InheritedState
        .file(batch.checkpoint, hadoopConf)
        .find()
        .map(InheritedState.fromJson)
        .filter(_.batch == batch.batchId)
    }

  /**
   * Whether sources net their changes before any expression is computed. A rerun may be due to an expression that
   * fails for a row inserted and deleted in the batch. Other batches save the shuffle, as do first batches begun by an
   * evolution or a view.
   */
  def netsSources: Boolean =
    batch.isRerun && inheritedState.isEmpty && (batch.batchId > 0 || recorded.isEmpty)

  /** Returns the folder with the target's rows, if the target is not filled from scratch. */
  def inheritedRows: Option[String] =
    inheritedState
      .filter(_.hasResult)
      .map(_ => InheritedState.resultFolder(batch.checkpoint).toString)

  /** Rejects a query different from the record, and applies the recorded settings. */
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
    // Operators with state then use the shuffle of operators without state, instead of a second
    // shuffle.
    conf.setConf(SQLConf.SHUFFLE_PARTITIONS, AssignStateInfo.numPartitions(session))
  }

  /** Rejects operators different from the record, and writes the new record. */
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
 * RecordedSettings: the settings fixed for the lifetime of a query, whatever a restarting session
 * sets.
 *
 * Spark records some settings in the offset log, for example the number of partitions of Spark's
 * operators.
 */
private[changelog] object RecordedSettings {

  /** Settings that decide about operators and their state. */
  private val layout: Seq[ConfigEntry[_]] = Seq(
    ChangelogConf.DISTINCT_SPLIT_ENABLED,
    ChangelogConf.SKEW_WAYS,
    ChangelogConf.SHARE_EQUAL_PARTS_ENABLED,
    ChangelogConf.RANK_TWO_LEVEL_ENABLED,
    ChangelogConf.JOIN_SPREAD_ENABLED)

  /** Optional settings: the first run of a query chooses their values. */
  private val optional: Seq[ConfigEntry[_ <: Option[_]]] =
    Seq(ChangelogConf.STATE_PARTITIONS, ChangelogConf.SPREADING_SALTS)

  /** Settings that decide about the results of expressions. */
  private val meaning: Seq[ConfigEntry[_]] = Seq(
    SQLConf.ANSI_ENABLED,
    SQLConf.CASE_SENSITIVE,
    SQLConf.DECIMAL_OPERATIONS_ALLOW_PREC_LOSS,
    SQLConf.LEGACY_TIME_PARSER_POLICY,
    SQLConf.MAP_KEY_DEDUP_POLICY,
    SQLConf.SESSION_LOCAL_TIMEZONE)

  /** Settings that decide about parsing. */
  private val reading: Seq[ConfigEntry[_]] =
    Seq(
      SQLConf.ESCAPED_STRING_LITERALS,
      SQLConf.DOUBLE_QUOTED_IDENTIFIERS,
      SQLConf.TIMESTAMP_TYPE)

  private val Legacy = "spark.sql.legacy."

  /** Returns the values of the recorded settings in a session. */
  def valuesIn(conf: SQLConf): Map[String, String] = {
    val named = (layout ++ meaning).map(entry => entry.key -> conf.getConf(entry).toString)
    conf.getAllConfs.filter(_._1.startsWith(Legacy)) ++ named ++
      optional.flatMap(entry => conf.getConf(entry).map(entry.key -> _.toString))
  }

  /**
   * Resets the settings for results and parsing to defaults, except for the names `known`. The
   * defaults are set explicitly, because tasks would otherwise use the values of the calling
   * session.
   */
  def resetToDefaults(conf: SQLConf, known: Set[String]): Unit = {
    val names = (meaning ++ reading).map(_.key).toSet
    // Further settings are never recorded, for example former names of a setting.
    val found = conf.getAllConfs.keys.filter { key =>
      (names(key) || key.startsWith(Legacy)) && conf.isModifiable(key)
    }
    found.filterNot(known).foreach { key =>
      conf.unsetConf(key)
      val default = ConfigEntry.findEntry(key).defaultValueString
      if (default != ConfigEntry.UNDEFINED) conf.setConfString(key, default)
    }
  }

  /**
   * Returns the names of settings with a value different from the record. Settings chosen by the
   * first run are omitted if the session does not set them.
   */
  def changed(recorded: Map[String, String], is: Map[String, String]): Seq[String] = {
    val chosen = optional.map(_.key).filterNot(is.contains)
    val names = recorded.keySet ++ is.keySet -- chosen
    names.toSeq.sorted.filter(key => recorded.get(key) != is.get(key))
  }

  /**
   * Applies recorded settings to `conf`. The ANSI mode is omitted, because expressions contain
   * their mode.
   */
  def use(recorded: Map[String, String], conf: SQLConf): Unit = {
    valuesIn(conf).keys.filterNot(recorded.contains).foreach(conf.unsetConf(_: String))
    (recorded - SQLConf.ANSI_ENABLED.key).foreach { case (key, value) =>
      conf.setConfString(key, value)
    }
  }
}

/**
 * State that an evolved query inherits from the checkpoint of its predecessor:
 * `changelog/taken-over.json`.
 *
 * @param batch
 *   the first batch of the evolved query
 * @param parts
 *   fingerprints of the parts with inherited state
 * @param hasResult
 *   whether the checkpoint has the target's rows. The first batch then retracts rows absent from
 *   the new result.
 */
private[changelog] final case class InheritedState(
    batch: Long,
    parts: Set[String],
    hasResult: Boolean) {

  def toJson: String = Serialization.write(this)(InheritedState.formats)
}

private[changelog] object InheritedState {
  private implicit val formats: Formats = Serialization.formats(NoTypeHints)

  /** Returns the folder with the target's rows. */
  def resultFolder(checkpoint: Path): Path = new Path(new Path(checkpoint, "changelog"), "result")

  def file(checkpoint: Path, hadoopConf: Configuration): TextFile =
    new TextFile(new Path(new Path(checkpoint, "changelog"), "taken-over.json"), hadoopConf)

  def fromJson(text: String): InheritedState = Serialization.read[InheritedState](text)
}
