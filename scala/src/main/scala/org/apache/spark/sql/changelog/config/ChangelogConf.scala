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
    .version("0.1.0")
    .booleanConf
    .createWithDefault(true)

  val UNMATCHED_RETRACTION: ConfigEntry[String] = Setting(
    "spark.sql.changelog.unmatchedRetraction")
    .doc(
      "What to do when a change takes back a row that was never given: 'ignore' counts it in the " +
        "metric numUnmatchedRetractions, 'warn' also logs it once per task, 'fail' stops the " +
        "query before the batch is committed.")
    .version("0.1.0")
    .stringConf
    .transform(_.toLowerCase(java.util.Locale.ROOT))
    .checkValues(UnmatchedRetraction.values.map(_.toString).toSet)
    .createWithDefault(UnmatchedRetraction.Warn.toString)

  val AGGREGATE_HEAD_SIZE: ConfigEntry[Int] = Setting("spark.sql.changelog.aggregate.headSize")
    .doc(
      "How many of a group's best values min and max keep in the group's own record when values " +
        "can be taken back. Other values are kept one record each and read only when the best " +
        "ones are used up.")
    .version("0.1.0")
    .intConf
    .checkValue(_ > 0, "at least one value must be kept")
    .createWithDefault(16)

  val DISTINCT_SPLIT_ENABLED: ConfigEntry[Boolean] = Setting(
    "spark.sql.changelog.aggregate.distinctSplit.enabled")
    .doc(
      "Whether the distinct values of a group are spread over all partitions, so that a group " +
        "with very many of them is not the work of one task. Costs a second, small shuffle. A " +
        "query that has started keeps the setting it started with.")
    .version("0.1.0")
    .booleanConf
    .createWithDefault(false)

  val COMBINE_VALUES: ConfigEntry[String] = Setting("spark.sql.changelog.aggregate.combineValues")
    .internal()
    .doc(
      "Whether changes of one group and value are combined where they are read, for min and max " +
        "that take values back and for DISTINCT over rows that only come: 'always', 'never' " +
        "(each change is shuffled once), or 'auto', which looks at every sixteenth batch whether " +
        "values repeat so much that it pays.")
    .version("0.1.0")
    .stringConf
    .transform(_.toLowerCase(java.util.Locale.ROOT))
    .checkValues(Set("auto", "always", "never"))
    .createWithDefault("auto")

  val JOIN_ROWS_AT_ONCE: ConfigEntry[Int] = Setting("spark.sql.changelog.join.rowsAtOnce")
    .doc(
      "How many changed rows of one join key a join holds in memory, of each side. Where a batch " +
        "changes more of them, they are joined some at a time; each time the stored rows of the " +
        "key are read once more.")
    .version("0.1.0")
    .intConf
    .checkValue(_ > 0, "at least one row must be held")
    .createWithDefault(10000)

  val SKEW_WAYS: ConfigEntry[Int] = Setting("spark.sql.changelog.skew.ways")
    .doc(
      "In how many parts a join divides the rows of each key that a hint SKEW names; of the other side's " +
        "rows with that key there is a copy for each. A query that has started keeps the setting it " +
        "started with.")
    .version("0.1.0")
    .intConf
    .checkValue(_ > 1, "at least two parts are needed")
    .createWithDefault(16)

  val JOIN_SPREAD_ENABLED: ConfigEntry[Boolean] = Setting(
    "spark.sql.changelog.join.spread.enabled")
    .doc("Whether a join without an equality of its sides is the work of all tasks: the rows of one side " +
      "are divided among as many as there are partitions, up to spark.sql.changelog.skew.ways, " +
      "and each of them keeps a copy of the other side's rows. Not in a full join. A query that " +
      "has started keeps the setting it started with.")
    .version("0.1.0")
    .booleanConf
    .createWithDefault(true)

  val RANK_TWO_LEVEL_ENABLED: ConfigEntry[Boolean] = Setting(
    "spark.sql.changelog.rank.twoLevel.enabled")
    .doc(
      "Whether a rank without PARTITION BY, or a LIMIT, over rows that change or go is the work of all " +
        "tasks: each finds the first rows of some, and one task the first of those. Up to the " +
        "1000th row, and not where rows are forgotten for their age. A query that has started " +
        "keeps the setting it started with.")
    .version("0.1.0")
    .booleanConf
    .createWithDefault(true)

  val SPREADING_SALTS: ConfigEntry[Option[String]] = Setting("spark.sql.changelog.spreadingSalts")
    .internal()
    .doc(
      "The salts among which a query divides rows that one task would have. They are chosen when it " +
        "starts, by the number of its partitions, and stay if that changes.")
    .version("0.1.0")
    .stringConf
    .createOptional

  val SHARE_EQUAL_PARTS_ENABLED: ConfigEntry[Boolean] = Setting(
    "spark.sql.changelog.shareEqualParts.enabled")
    .doc(
      "Whether parts of a query that are equal, such as a common table expression that is read " +
        "several times, are computed once per batch and kept once, if they keep state. Costs a " +
        "shuffle of their changes. A query that has started must keep the setting it started with.")
    .version("0.1.0")
    .booleanConf
    .createWithDefault(true)

  val STATE_PARTITIONS: ConfigEntry[Option[Int]] = Setting("spark.sql.changelog.state.partitions")
    .doc("In how many partitions a query keeps its state, and by how many it shuffles changes. Where " +
      "this is not set, spark.sql.shuffle.partitions says it; where that isn't either, there are " +
      "as many as the application has cores when the query starts, if their number is fixed. A " +
      "query that has started keeps its number until its state is spread over another.")
    .version("0.1.0")
    .intConf
    .checkValue(_ > 0, "at least one partition is needed")
    .createOptional

  val STATE_TTL: ConfigEntry[Long] = Setting("spark.sql.changelog.state.ttl")
    .doc(
      "How long a stateful operator remembers what nothing has changed, such as '36h'. What is " +
        "older is forgotten as if it had never been given, counted in the metric " +
        "numExpiredStateRows: a group that changes afterwards starts anew, and its old row is " +
        "not taken back. 0 keeps everything. State that a watermark bounds is not concerned. " +
        "A query can change the length, but not between 0 and another value, after it started.")
    .version("0.1.0")
    .timeConf(TimeUnit.MILLISECONDS)
    .checkValue(_ >= 0, "must not be negative")
    .createWithDefault(0L)

  val VIEW_LEASE: ConfigEntry[Long] = Setting("spark.sql.changelog.views.lease")
    .doc(
      "How long a process that writes a view may be held up until another one may take it for " +
        "killed, and write the view in its place. It says six times in that time that it still " +
        "writes. Longer than any pause of a process, as for garbage collection.")
    .version("0.1.0")
    .timeConf(TimeUnit.MILLISECONDS)
    .checkValue(_ > 0, "must be positive")
    .createWithDefaultString("60s")

  val VIEW_STATE: ConfigEntry[String] = Setting("spark.sql.changelog.views.state")
    .doc(
      "When to compute the state of a materialized view. 'late': CREATE and REFRESH FULL " +
        "compute only the rows, at the cost of a batch query. The next incremental refresh " +
        "computes the state first. 'early': CREATE and REFRESH FULL compute both. A view that " +
        "can't be recomputed, or has another refresh policy than AUTO, always computes its " +
        "state early. A view keeps the setting of the session that created it.")
    .version("0.1.0")
    .stringConf
    .transform(_.toLowerCase(java.util.Locale.ROOT))
    .checkValues(Set("late", "early"))
    .createWithDefault("late")

  /** Registers the entries with Spark, by initializing the object. */
  def register(): Unit = ()

  /** The public entries, sorted by name. Missing entries are for tests, which compare both ways. */
  val entries: Seq[ConfigEntry[_]] =
    Seq(
      UNMATCHED_RETRACTION,
      AGGREGATE_HEAD_SIZE,
      DISTINCT_SPLIT_ENABLED,
      JOIN_ROWS_AT_ONCE,
      JOIN_SPREAD_ENABLED,
      RANK_TWO_LEVEL_ENABLED,
      SKEW_WAYS,
      SHARE_EQUAL_PARTS_ENABLED,
      STATE_PARTITIONS,
      STATE_TTL,
      VIEW_LEASE,
      VIEW_STATE)
      .sortBy(_.key)
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
