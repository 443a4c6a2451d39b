// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.util.UUID

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.CapturesConfig
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser.parseMultipartIdentifier
import org.apache.spark.sql.catalyst.util.{CaseInsensitiveMap, quoteIdentifier}
import org.apache.spark.sql.execution.streaming.ProcessingTimeTrigger
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streaming.Trigger

import org.apache.spark.sql.changelog.OutputMode
import org.apache.spark.sql.changelog.errors.ViewErrors
import org.apache.spark.sql.changelog.evolution.Rescaling

/**
 * What a view is, as the properties of its table remember it.
 *
 * @param query
 *   its text
 * @param namespace
 *   the current catalog and namespace its names are looked up in
 * @param settings
 *   the settings of the session that decide what it means, such as the time zone
 * @param provider
 *   the format of the stored rows
 * @param generation
 *   the folder of the checkpoint, and of rows that are not in a table's own folder. What is
 *   recomputed from scratch gets a new one
 * @param otherCheckpoint
 *   the folder of the checkpoint, below `home`, where the first one of a generation was replaced
 * @param properties
 *   the table properties the user gave
 * @param followsTables
 *   whether tables are followed that are read without `STREAM`
 * @param temporaryViews
 *   which temporary views of a session its names stand for; none if any of them
 */
case class ViewDefinition(
    kind: ViewKind,
    query: String,
    namespace: Seq[String],
    settings: Map[String, String],
    provider: String,
    comment: Option[String],
    properties: Map[String, String],
    generation: Option[String] = None,
    otherCheckpoint: Option[String] = None,
    followsTables: Boolean = false,
    temporaryViews: Option[Seq[String]] = None) {
  import ViewDefinition._

  private val options = CaseInsensitiveMap(properties)

  def policy: RefreshPolicy =
    options.get(Policy).fold(RefreshPolicy.Auto) { text =>
      RefreshPolicy
        .find(text)
        .getOrElse(throw ViewErrors
          .propertyInvalid(Policy, text, RefreshPolicy.values.mkString("one of ", ", ", "")))
    }

  /**
   * The same with tables followed as its properties say. Rows of a streaming table stay, whatever becomes of a
   * table they were joined with.
   */
  def following: ViewDefinition =
    copy(followsTables = kind == ViewKind.MaterializedView && followed != Streams)

  /** Whether tables of files are compared with a copy of their rows. */
  def keepsCopies: Boolean = followed == Copies

  private def followed: String = options.get(Follow).fold(Tables) { text =>
    Follows
      .find(_.equalsIgnoreCase(text))
      .getOrElse(
        throw ViewErrors.propertyInvalid(Follow, text, Follows.mkString("one of ", ", ", "")))
  }

  /** How often the view is brought up to date while it runs. */
  def trigger: Trigger = interval(Interval, "10 seconds").getOrElse(Trigger.ProcessingTime(0))

  /** How long files that were replaced stay for those who still read them, in milliseconds. */
  def retention: Long = interval(Retention, "1 hour").fold(DefaultRetention)(_.intervalMs)

  /** How old its rows may get, in milliseconds, if somebody says. */
  def lag: Option[Long] = interval(Lag, "5 minutes").map(_.intervalMs)

  private def interval(property: String, example: String): Option[ProcessingTimeTrigger] =
    options.get(property).map { text =>
      try ProcessingTimeTrigger(text)
      catch {
        case _: RuntimeException =>
          throw ViewErrors.propertyInvalid(property, text, s"an interval such as '$example'")
      }
    }

  /** The same view with what another definition says of its query. */
  def withQueryOf(other: ViewDefinition): ViewDefinition = copy(
    kind = other.kind,
    query = other.query,
    namespace = other.namespace,
    settings = other.settings,
    followsTables = other.followsTables,
    temporaryViews = other.temporaryViews)

  /** Refuses properties that can't be read. */
  def check(): ViewDefinition = {
    policy
    followed
    trigger
    retention
    lag
    properties.keys.filter(_.toLowerCase.startsWith(Prefix)).foreach { name =>
      throw ViewErrors.propertyInvalid(name, properties(name), "another name: this one is taken")
    }
    properties.keys.foreach { name =>
      if (name.toLowerCase.startsWith(Ours) && !known(name).isDefined) {
        throw ViewErrors.propertyUnknown(name, Known)
      }
    }
    // names are written in one way, so that properties can be altered
    copy(properties = properties.map { case (name, value) =>
      known(name).getOrElse(name) -> value
    })
  }

  private def known(name: String): Option[String] = Known.find(_.equalsIgnoreCase(name))

  /** Where generations lie, and what is known of all of them. */
  def home: Path = folder.getParent

  def folder: Path = new Path(
    generation.getOrElse(throw new IllegalStateException("a view without a generation")))

  def checkpoint: Path = otherCheckpoint
    .map(new Path(home, _))
    .filter(_.getParent == folder)
    .getOrElse(new Path(folder, "checkpoint"))

  /** The same with another checkpoint, of a query that keeps its state in so many partitions. */
  def inPartitions(numPartitions: Int): ViewDefinition = copy(
    otherCheckpoint = Some(s"${folder.getName}/checkpoint-${UUID.randomUUID}"),
    settings = settings + (Rescaling.Partitions -> numPartitions.toString))

  /** In how many partitions the state is to be, if somebody has said it. */
  def partitions: Option[String] = settings.get(Rescaling.Partitions)

  /** The same of a view that there is, whose partitions stay as they are if nobody says how many. */
  def goingOn(before: ViewDefinition): ViewDefinition = copy(
    generation = before.generation,
    otherCheckpoint = before.otherCheckpoint,
    settings = before.settings.filter(_._1 == Rescaling.Partitions) ++ settings)

  /** Where rows are kept that are in no table's own folder. */
  def rows: Path = new Path(folder, "rows")

  /** The whole definition, as the properties of the table. */
  def toProperties: Map[String, String] =
    properties ++
      properties.map { case (key, value) => s"$Given$key" -> value } ++
      settings.map { case (key, value) => s"$Setting$key" -> value } ++
      namespace.zipWithIndex.map { case (part, index) => s"$Namespace$index" -> part } ++
      comment.map("comment" -> _) ++
      generation.map(Generation -> _) ++
      otherCheckpoint.map(Checkpoint -> _) ++
      Option.when(followsTables)(FollowsTables -> "true") ++
      temporaryViews.map(TemporaryViews -> _.map(quoteIdentifier).mkString(".")) ++
      Map(Kind -> kind.toString, Query -> query, Provider -> provider)
}

object ViewDefinition extends CapturesConfig {
  val Policy = "changelog.refreshPolicy"
  val Follow = "changelog.follow"
  val Interval = "changelog.interval"
  val Lag = "changelog.lag"
  val Retention = "changelog.retention"

  /** All that can be said of a view, besides what its table knows. */
  private val Known = Seq(Follow, Interval, Lag, Policy, Retention)
  private val Ours = "changelog."

  /** The names of properties that only we give. */
  val Prefix = "changelog.view."

  /** The folder of what is shown. */
  val Generation: String = Prefix + "generation"

  /** The term of a holder that had to fence off the one before. */
  val Term: String = Prefix + "term"
  private val Checkpoint = Prefix + "checkpoint"

  /** Tells views from other tables. */
  val Kind: String = Prefix + "kind"

  private val Tables = "tables"
  private val Copies = "copies"
  private val Streams = "streams"
  private val Follows = Seq(Tables, Copies, Streams)

  /** Views of earlier versions don't have it. */
  private val FollowsTables = Prefix + "followsTables"

  /** Views of earlier versions don't have it either. */
  private val TemporaryViews = Prefix + "temporaryViews"

  private val Query = Prefix + "query"
  private val Provider = Prefix + "provider"
  private val Given = Prefix + "given."
  private val Setting = Prefix + "setting."
  private val Namespace = Prefix + "namespace."
  private val DefaultRetention = 10 * 60 * 1000L

  /** What a table's properties say of a view; none if it is no view of ours. */
  def fromProperties(properties: Map[String, String]): Option[ViewDefinition] =
    for {
      name <- properties.get(Kind)
      kind <- ViewKind.values.find(_.toString == name)
      query <- properties.get(Query)
    } yield ViewDefinition(
      kind,
      query,
      Iterator
        .from(0)
        .map(index => properties.get(s"$Namespace$index"))
        .takeWhile(_.isDefined)
        .flatten
        .toSeq,
      startingWith(Setting, properties),
      properties.getOrElse(Provider, "parquet"),
      properties.get("comment"),
      startingWith(Given, properties) ++ properties.filter { case (name, _) =>
        // of those given at first, properties of ours can have been altered since
        Known.contains(name)
      },
      properties.get(Generation),
      properties.get(Checkpoint),
      properties.get(FollowsTables).contains("true"),
      properties
        .get(TemporaryViews)
        .map(names => if (names.isEmpty) Nil else parseMultipartIdentifier(names)))

  /** The settings that decide what a query means, as Spark keeps them for its own views. */
  def settingsOf(conf: SQLConf): Map[String, String] = {
    sqlConfigsToProps(conf, "").filter { case setting @ (key, _) =>
      key.startsWith("spark.sql.") && !unrelated.exists(key.startsWith) &&
      !RefuseSecrets.isSecret(setting)
    }
  }

  /** Settings that say where things are, or how a query runs. */
  private val unrelated =
    Seq("catalog.", "extensions", "warehouse", "streaming.", "ui.").map("spark.sql." + _)

  private def startingWith(prefix: String, all: Map[String, String]): Map[String, String] =
    all.collect {
      case (key, value) if key.startsWith(prefix) => key.drop(prefix.length) -> value
    }
}

/** What is kept: a query's rows as they change, or rows that, once written, stay. */
final class ViewKind private (override val toString: String) {

  /** The changes a table of this kind is kept by; `hasKey`: whether rows can be replaced by one. */
  def mode(hasKey: Boolean): OutputMode =
    if (this == ViewKind.StreamingTable) OutputMode.Append
    else if (hasKey) OutputMode.Upsert
    else OutputMode.Retract
}

object ViewKind {
  val MaterializedView = new ViewKind("MATERIALIZED VIEW")

  /** Its rows are written once: a query that would change them is refused. */
  val StreamingTable = new ViewKind("STREAMING TABLE")

  val values: Seq[ViewKind] = Seq(MaterializedView, StreamingTable)
}

/** How a view is brought up to date. */
final class RefreshPolicy private (override val toString: String) {

  /** Whether nothing is recomputed. */
  def isIncremental: Boolean =
    this == RefreshPolicy.Incremental || this == RefreshPolicy.Strict
}

object RefreshPolicy {

  /** By changes if the query reads a stream or tables that can be followed, else in full. */
  val Auto = new RefreshPolicy("auto")

  /** By changes; a query that reads nothing whose changes can be told is refused. */
  val Incremental = new RefreshPolicy("incremental")

  /** The same; where changes can't be told, one error says so, whatever the reason. */
  val Strict = new RefreshPolicy("incremental strict")

  /** From scratch, each time. */
  val Full = new RefreshPolicy("full")

  val values: Seq[RefreshPolicy] = Seq(Auto, Incremental, Strict, Full)

  /** The one that a text names, whatever spaces it has. */
  def find(text: String): Option[RefreshPolicy] =
    values.find(_.toString.equalsIgnoreCase(text.trim.replaceAll("\\s+", " ")))
}
