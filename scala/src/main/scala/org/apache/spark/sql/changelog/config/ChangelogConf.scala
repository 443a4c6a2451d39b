// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.config

import java.util.concurrent.TimeUnit

import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.sql.internal.SQLConf

import org.apache.spark.sql.changelog.compat.Setting

/** The settings of the extension. The page `docs/configuration.md` is generated from their texts. */
object ChangelogConf {

  val TWO_PHASE_ENABLED: ConfigEntry[Boolean] = Setting("spark.sql.changelog.twoPhase.enabled")
    .internal()
    .doc(
      "Whether a group aggregate first combines the changes of a batch where they are read, so " +
        "that one row per group and task is shuffled. Pays off unless nearly every change has a " +
        "group of its own.")
    .booleanConf
    .createWithDefault(true)

  val UNMATCHED_RETRACTION: ConfigEntry[String] = Setting(
    "spark.sql.changelog.unmatchedRetraction")
    .doc(
      "What to do with a retraction of a row never inserted. 'ignore' counts the retraction in " +
        "the metric numUnmatchedRetractions, 'warn' also logs a warning once per task, and " +
        "'fail' stops the query before the batch is committed.")
    .stringConf
    .transform(_.toLowerCase(java.util.Locale.ROOT))
    .checkValues(UnmatchedRetraction.values.map(_.toString).toSet)
    .createWithDefault(UnmatchedRetraction.Warn.toString)

  val AGGREGATE_HEAD_SIZE: ConfigEntry[Int] = Setting("spark.sql.changelog.aggregate.headSize")
    .doc(
      "The number of best values of a group that min and max store in the group's own record, " +
        "over rows that can change. Each other value has a record of its own, read only after " +
        "retractions of all these best values.")
    .intConf
    .checkValue(_ > 0, "at least one value must be kept")
    .createWithDefault(16)

  val DISTINCT_SPLIT_ENABLED: ConfigEntry[Boolean] =
    Setting("spark.sql.changelog.aggregate.distinctSplit.enabled")
      .doc(
        "Whether to spread the distinct values of a group over all partitions, so that no task " +
          "has all values of a large group. Costs a second, small shuffle. A query keeps the " +
          "value it started with.")
      .booleanConf
      .createWithDefault(false)

  val COMBINE_VALUES: ConfigEntry[String] = Setting("spark.sql.changelog.aggregate.combineValues")
    .internal()
    .doc(
      "Whether to combine the changes of one group and value before the shuffle, for min and " +
        "max over changing rows and for DISTINCT over insert-only rows: 'always', 'never' (each " +
        "change is shuffled once), or 'auto', by the repetitions in every sixteenth batch.")
    .stringConf
    .transform(_.toLowerCase(java.util.Locale.ROOT))
    .checkValues(Set("auto", "always", "never"))
    .createWithDefault("auto")

  val JOIN_ROWS_AT_ONCE: ConfigEntry[Int] = Setting("spark.sql.changelog.join.rowsAtOnce")
    .doc(
      "The number of changed rows per side and join key that a join holds in memory. A batch " +
        "with more changed rows of a key is joined in parts, and each part reads the stored " +
        "rows of the key again.")
    .intConf
    .checkValue(_ > 0, "at least one row must be held")
    .createWithDefault(10000)

  val SKEW_WAYS: ConfigEntry[Int] = Setting("spark.sql.changelog.skew.ways")
    .doc(
      "The number of parts into which a join divides the rows of each key named by a hint SKEW. " +
        "The other side's rows of that key are copied to every part. A query keeps the value it " +
        "started with.")
    .intConf
    .checkValue(_ > 1, "at least two parts are needed")
    .createWithDefault(16)

  val JOIN_SPREAD_ENABLED: ConfigEntry[Boolean] = Setting(
    "spark.sql.changelog.join.spread.enabled")
    .doc(
      "Whether all tasks work on a join without an equality between the sides. The rows of one " +
        "side are divided among the partitions, at most spark.sql.changelog.skew.ways of them, " +
        "and each of these has a copy of the other side's rows. Not for full joins. A query " +
        "keeps the value it started with.")
    .booleanConf
    .createWithDefault(true)

  val RANK_TWO_LEVEL_ENABLED: ConfigEntry[Boolean] = Setting(
    "spark.sql.changelog.rank.twoLevel.enabled")
    .doc(
      "Whether all tasks work on a rank without PARTITION BY, or on a LIMIT, over rows that can " +
        "change. Each task finds the first of its rows, and one task the first of the results. " +
        "Applies up to the 1000th row, and not with a TTL. A query keeps the value it started " +
        "with.")
    .booleanConf
    .createWithDefault(true)

  val SPREADING_SALTS: ConfigEntry[Option[String]] = Setting("spark.sql.changelog.spreadingSalts")
    .internal()
    .doc(
      "The salts that divide the rows of a single task. The first start of a query chooses the " +
        "salts by the number of partitions, and a query keeps its salts.")
    .stringConf
    .createOptional

  val SHARE_EQUAL_PARTS_ENABLED: ConfigEntry[Boolean] = Setting(
    "spark.sql.changelog.shareEqualParts.enabled")
    .doc(
      "Whether equal parts of a query, such as a common table expression with several readers, " +
        "are computed once per batch, with one state. Costs a shuffle of the changes. A started " +
        "query must keep this value.")
    .booleanConf
    .createWithDefault(true)

  val KEY_SAMPLE_ENABLED: ConfigEntry[Boolean] = Setting("spark.sql.changelog.keySample.enabled")
    .doc("Whether a running query counts the rows of a sample of the keys that sources declare, and logs " +
      "a warning if a key has several rows. Up to 10,000 keys per source are counted, in memory.")
    .booleanConf
    .createWithDefault(true)

  val LOOKUP_KEYS_PER_QUERY: ConfigEntry[Int] =
    Setting("spark.sql.changelog.lookup.keysPerQuery")
      .doc("The number of rows whose keys a lookup in a database asks for in one query.")
      .intConf
      .checkValue(_ > 0, "must be positive")
      .createWithDefault(500)

  val LOOKUP_QUERIES: ConfigEntry[Int] = Setting("spark.sql.changelog.lookup.queriesPerTask")
    .doc(
      "The number of queries that each task of a lookup in a database runs at a time, each on a " +
        "connection of its own.")
    .intConf
    .checkValue(_ > 0, "must be positive")
    .createWithDefault(2)

  val LOOKUP_CACHED_KEYS: ConfigEntry[Int] = Setting("spark.sql.changelog.lookup.cachedKeys")
    .doc("The number of keys that each executor caches for a lookup in a database, with their rows, " +
      "and keys without a row. 0 switches the cache off: each batch then reads the current rows.")
    .intConf
    .checkValue(_ >= 0, "must not be negative")
    .createWithDefault(0)

  val LOOKUP_CACHE_TTL: ConfigEntry[Long] = Setting("spark.sql.changelog.lookup.cacheTtl")
    .doc("How long a lookup in a database uses the cached rows of a key.")
    .timeConf(TimeUnit.SECONDS)
    .checkValue(_ > 0, "must be positive")
    .createWithDefaultString("60s")

  val STATE_PARTITIONS: ConfigEntry[Option[Int]] = Setting("spark.sql.changelog.state.partitions")
    .doc(
      "The number of partitions for the state of a query and for the shuffle of its changes. " +
        "The default is the value of spark.sql.shuffle.partitions, if set. Otherwise the " +
        "default is the number of cores of the application at the start of the query, if this " +
        "number is fixed. A started query keeps its number until it is rescaled.")
    .intConf
    .checkValue(_ > 0, "at least one partition is needed")
    .createOptional

  val SCHEMA_REGISTRY_PASSWORD: ConfigEntry[Option[String]] = Setting(
    "spark.sql.changelog.schemaRegistry.password")
    .doc(
      "The user and password for the schema registry of from_debezium, from_upsert_kafka and changelog-kafka, as " +
        "'user:password', or a token without a colon. Not stored in checkpoints and views.")
    .stringConf
    .createOptional

  val STATE_TTL: ConfigEntry[Long] = Setting("spark.sql.changelog.state.ttl")
    .doc(
      "The time after which a stateful operator forgets unchanged state, such as '36h'. A later " +
        "change to forgotten state counts as new: a group starts again, and its old row is not " +
        "retracted. The metric numExpiredStateRows counts forgotten entries. 0 keeps " +
        "everything. Watermark-bounded state ignores this setting. A started query can change " +
        "the length, but not switch between 0 and another value.")
    .timeConf(TimeUnit.MILLISECONDS)
    .checkValue(_ >= 0, "must not be negative")
    .createWithDefault(0L)

  val VIEW_LEASE: ConfigEntry[Long] = Setting("spark.sql.changelog.views.lease")
    .doc("The time after which the lease of a process that writes a view expires unless renewed. " +
      "Another process may then take the lease, and the first one writes nothing any more. The " +
      "lease is renewed six times in that time. Set a time longer than any pause of a process, " +
      "such as a garbage collection.")
    .timeConf(TimeUnit.MILLISECONDS)
    .checkValue(_ > 0, "must be positive")
    .createWithDefaultString("60s")

  val VIEW_REFRESH_THREADS: ConfigEntry[Int] = Setting("spark.sql.changelog.views.refreshThreads")
    .doc("The number of views that one statement or one spark-changelog run refreshes side by " +
      "side. A view waits for the views that it reads.")
    .intConf
    .checkValue(_ > 0, "at least one view must be refreshed at a time")
    .createWithDefault(4)

  val VIEW_STATE: ConfigEntry[String] = Setting("spark.sql.changelog.views.state")
    .doc("When to compute the state of a materialized view. 'late': CREATE and REFRESH FULL " +
      "compute only the rows, at the cost of a batch query. The next incremental refresh " +
      "computes the state first. 'early': CREATE and REFRESH FULL compute both. A view always " +
      "computes its state early if it cannot be recomputed, or has another refresh policy " +
      "than AUTO. A view keeps the value of the session that created it.")
    .stringConf
    .transform(_.toLowerCase(java.util.Locale.ROOT))
    .checkValues(Set("late", "early"))
    .createWithDefault("late")

  /** Registers the entries with Spark, by initializing the object. */
  def register(): Unit = ()
}

/** The policy for retractions of rows never inserted. */
sealed abstract class UnmatchedRetraction(override val toString: String)

object UnmatchedRetraction {
  case object Ignore extends UnmatchedRetraction("ignore")
  case object Warn extends UnmatchedRetraction("warn")
  case object Fail extends UnmatchedRetraction("fail")

  val values: Seq[UnmatchedRetraction] = Seq(Ignore, Warn, Fail)

  def fromConf(conf: SQLConf): UnmatchedRetraction = {
    val name = conf.getConf(ChangelogConf.UNMATCHED_RETRACTION)
    values.find(_.toString == name).get
  }
}
