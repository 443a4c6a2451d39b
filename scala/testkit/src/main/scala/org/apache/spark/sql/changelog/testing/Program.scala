// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{DataFrame, Row}

/**
 * A table defined by a feed of changes.
 *
 * @param name
 *   the table's name in queries
 * @param columns
 *   the table's schema, as DDL
 * @param key
 *   columns that identify a row; empty if rows may repeat
 * @param arguments
 *   further arguments of `from_changelog`, as SQL
 * @param insertOnly
 *   whether the feed has no change types
 * @param upsert
 *   whether the feed sends only the newest row per key
 * @param sequence
 *   columns that order the changes of a key in an upsert feed; empty for arrival order
 * @param below
 *   a query below `from_changelog` that passes the changes of `arrived` unchanged; empty without such a query
 * @param watermark
 *   the column with the time of changes, and the delay of the watermark, if any
 */
final case class Feed(
    name: String,
    columns: String,
    key: Seq[String] = Nil,
    arguments: Seq[String] = Nil,
    insertOnly: Boolean = false,
    upsert: Boolean = false,
    sequence: Seq[String] = Nil,
    below: Option[String] = None,
    watermark: Option[(String, String)] = None) {

  /** The schema as Spark knows it for a table: CHAR and VARCHAR are strings with metadata. */
  val schema: StructType =
    CharVarcharUtils.replaceCharVarcharWithStringInSchema(StructType.fromDDL(columns))

  /** The number of tasks that read the changes: two, unless the order of changes matters. */
  def partitions: Int = if (arguments.isEmpty && !upsert) 2 else 1

  /** Returns a call of `from_changelog` over `source`, as SQL. */
  def read(source: String, changeType: String): String = {
    def names(columns: Seq[String]) =
      columns.map(Literal(_).sql).mkString("array(", ", ", ")")
    val changes = below.fold(source)(query => s"(${query.replace("arrived", source)})")
    val rows = if (insertOnly) s"(SELECT * EXCEPT ($changeType) FROM $changes)" else changes
    val all = Seq(
      Some(s"TABLE($rows)"),
      if (insertOnly) None else Some(s"change_type => '$changeType'"),
      if (key.isEmpty) None else Some(s"key => ${names(key)}"),
      if (upsert) Some("input => 'upsert'") else None,
      if (sequence.isEmpty) None else Some(s"sequence_by => ${names(sequence)}")).flatten
    s"SELECT * FROM from_changelog(${(all ++ arguments).mkString(", ")})"
  }

  /** Omits a missing watermark. */
  override def toString: String = {
    val parts = productIterator.toSeq
    (if (watermark.isEmpty) parts.init else parts).mkString("Feed(", ",", ")")
  }
}

/**
 * Changes that arrive together, by table. The source of a table without an entry is idle. For an empty entry,
 * the source delivers data without changes.
 */
final case class Step(changes: Map[String, Seq[Change]])

object Step {
  def apply(feed: Feed, changes: String*): Step =
    of(feed -> changes)

  /** Returns the step with changes of several feeds. */
  def of(changes: (Feed, Seq[String])*): Step = Step(changes.map { case (feed, rows) =>
    feed.name -> rows.map(TextChangelog.parse(_, feed.schema))
  }.toMap)
}

/**
 * A query over changing tables, with the changes.
 *
 * @param feeds
 *   the tables
 * @param sql
 *   the query, over the tables' names
 * @param steps
 *   the changes, batch by batch
 * @param views
 *   further names in the query: queries over the tables without SQL syntax
 * @param snapshots
 *   by table, the rows of feeds that begin with a snapshot
 */
final case class Program(
    feeds: Seq[Feed],
    sql: String,
    steps: Seq[Step],
    views: Map[String, SparkSession => DataFrame] = Map.empty,
    snapshots: Map[String, Seq[Row]] = Map.empty) {

  /** Registers the views in a session, which must have the tables. */
  def createViews(session: SparkSession): Unit =
    views.foreach { case (name, query) => query(session).createOrReplaceTempView(name) }

  /** Returns the program as text, from which a test can be written. */
  override def toString: String = {
    val batches = steps.zipWithIndex.map { case (step, index) =>
      val changes = feeds.flatMap { feed =>
        step.changes.get(feed.name).toSeq.flatMap {
          case Nil => Seq(s"  ${feed.name} nothing")
          case some => some.map(change => s"  ${feed.name} $change")
        }
      }
      (s"batch $index" +: changes).mkString("\n")
    }
    val begins = snapshots.map { case (name, rows) =>
      s"snapshot of $name ${rows.mkString(" ")}"
    }
    (feeds.map(feed => s"feed $feed") ++ begins ++ Seq(s"query $sql") ++ batches).mkString("\n")
  }
}

/**
 * A way to run a program that must not affect its result.
 *
 * @param mode
 *   the mode of `to_changelog`
 * @param restart
 *   whether the query stops after the first and then every second step, and restarts from its text
 * @param conf
 *   session settings
 * @param sources
 *   the kinds of sources, assigned to the feeds in turn
 */
final case class Variant(
    mode: String = "retract",
    key: Seq[String] = Nil,
    restart: Boolean = false,
    conf: Map[String, String] = Map.empty,
    sources: Seq[SourceKind] = Seq(InMemory)) {

  override def toString: String = {
    val settings = conf.map { case (key, value) => s"${key.split('.').last}=$value" }
    val others = if (sources.forall(_ == InMemory)) Nil else Seq(sources.mkString("+"))
    (Seq(mode) ++ key ++ (if (restart) Seq("restarts") else Nil) ++ others ++ settings)
      .mkString(" ")
  }
}

object Variant {
  val RocksDB: Map[String, String] = Map(
    "spark.sql.streaming.stateStore.providerClass" ->
      "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")

  /** State with separate files per task attempt. */
  val PerAttempt: Map[String, String] =
    RocksDB + ("spark.sql.streaming.stateStore.checkpointFormatVersion" -> "2")
  val Paged: Map[String, String] = Map(
    "spark.sql.streaming.stateStore.providerClass" -> "io.sparkchangelog.PagedStateStoreProvider")

  /** Every state store provider, by name. */
  val Providers: Seq[(String, Map[String, String])] =
    Seq("in memory" -> Map.empty, "in pages" -> Paged, "RocksDB" -> RocksDB)
  val OnePhase: Map[String, String] = Map("spark.sql.changelog.twoPhase.enabled" -> "false")

  /** Shuffles changes uncombined, even if values could be combined. */
  val Uncombined: Map[String, String] =
    Map("spark.sql.changelog.aggregate.combineValues" -> "never")

  /** Every state store provider, restarts, one and two phases, and values combined or not. */
  val all: Seq[Variant] = Seq(
    Variant(),
    Variant(conf = OnePhase ++ Paged),
    Variant(restart = true, conf = RocksDB ++ Uncombined))
}
