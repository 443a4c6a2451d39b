// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{DataFrame, Row}

/**
 * A table kept by changes.
 *
 * @param name
 *   what queries call it
 * @param columns
 *   its schema, as DDL
 * @param key
 *   columns that identify a row; empty if rows may occur several times
 * @param arguments
 *   further arguments of `from_changelog`, as SQL
 * @param insertOnly
 *   whether it has no change types at all
 * @param upsert
 *   whether only the newest row per key is sent
 * @param sequence
 *   columns that order the changes of one key of an upsert feed; empty for arrival order
 * @param below
 *   a query below `from_changelog` that gives all changes of `arrived` as they are; none to read them
 *   right away
 * @param watermark
 *   the column with the time of changes, and how far the watermark is behind it, if there is one
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

  /** As Spark knows it of a table: CHAR and VARCHAR are texts of which metadata say more. */
  val schema: StructType =
    CharVarcharUtils.replaceCharVarcharWithStringInSchema(StructType.fromDDL(columns))

  /** Changes are read by two tasks, unless their order matters. */
  def partitions: Int = if (arguments.isEmpty && !upsert) 2 else 1

  /** A call of `from_changelog` over `source`, as SQL. */
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

  /** Without a watermark that there isn't. */
  override def toString: String = {
    val parts = productIterator.toSeq
    (if (watermark.isEmpty) parts.init else parts).mkString("Feed(", ",", ")")
  }
}

/**
 * Changes to several tables that arrive together, by table. Of a table that has no entry the source
 * is idle; for one that has none in its entry something arrives that holds no changes.
 */
final case class Step(changes: Map[String, Seq[Change]])

object Step {
  def apply(feed: Feed, changes: String*): Step =
    of(feed -> changes)

  /** What arrives for several feeds. */
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
 *   what arrives, batch by batch
 * @param views
 *   what else the query can name, by name: queries over the tables that SQL has no words for
 * @param snapshots
 *   the rows of tables whose feeds begin with a snapshot, by table
 */
final case class Program(
    feeds: Seq[Feed],
    sql: String,
    steps: Seq[Step],
    views: Map[String, SparkSession => DataFrame] = Map.empty,
    snapshots: Map[String, Seq[Row]] = Map.empty) {

  /** Lets a session's queries name the views; the tables must be there. */
  def createViews(session: SparkSession): Unit =
    views.foreach { case (name, query) => query(session).createOrReplaceTempView(name) }

  /** The program as text from which it can be written as a test. */
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
 * A way to run a program that must not change its result.
 *
 * @param mode
 *   what `to_changelog` is asked for
 * @param restart
 *   whether the query is stopped after every second step, from the first, and begun again from its
 *   text
 * @param conf
 *   session settings
 * @param sources
 *   what the feeds are read from, one after the other and again from the first
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

  /** State of which each attempt of a task has files of its own. */
  val PerAttempt: Map[String, String] =
    RocksDB + ("spark.sql.streaming.stateStore.checkpointFormatVersion" -> "2")
  val Paged: Map[String, String] = Map(
    "spark.sql.streaming.stateStore.providerClass" -> "io.sparkchangelog.PagedStateStoreProvider")

  /** Every state store provider, by name. */
  val Providers: Seq[(String, Map[String, String])] =
    Seq("in memory" -> Map.empty, "in pages" -> Paged, "RocksDB" -> RocksDB)
  val OnePhase: Map[String, String] = Map("spark.sql.changelog.twoPhase.enabled" -> "false")

  /** Changes are shuffled one by one, though values could be combined before. */
  val Uncombined: Map[String, String] =
    Map("spark.sql.changelog.aggregate.combineValues" -> "never")

  /** State of all providers, restarts, one and two phases, values combined and not. */
  val all: Seq[Variant] = Seq(
    Variant(),
    Variant(conf = OnePhase ++ Paged),
    Variant(restart = true, conf = RocksDB ++ Uncombined))
}
