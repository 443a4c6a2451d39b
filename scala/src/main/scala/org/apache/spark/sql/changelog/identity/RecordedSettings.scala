// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.sql.internal.SQLConf

import org.apache.spark.sql.changelog.config.ChangelogConf

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
