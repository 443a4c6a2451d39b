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
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.evolution.Rescaling
import org.apache.spark.sql.changelog.plans.Emission

/**
 * ViewDefinition: the query and the options of a view, as stored in the table properties.
 *
 * @param query
 *   the query's text
 * @param namespace
 *   the current catalog and namespace for the names in the query
 * @param settings
 *   the session settings that affect the query's meaning, such as the time zone
 * @param provider
 *   the format of the stored rows
 * @param generation
 *   the folder of the checkpoint, and of rows outside a table's own folder. A recomputation starts a new generation.
 * @param otherCheckpoint
 *   the folder of the checkpoint below `home`, if a generation's first checkpoint was replaced
 * @param properties
 *   the table properties given by the user
 * @param followsTables
 *   whether the view follows tables read without `STREAM`
 * @param temporaryViews
 *   the session's temporary views named in the query; if None, every temporary view is visible
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
        .getOrElse(
          throw analysis(
            "CHANGELOG_VIEW_PROPERTY_INVALID",
            "property" -> Policy,
            "value" -> text,
            "expected" -> RefreshPolicy.values.mkString("one of ", ", ", "")))
    }

  /**
   * Returns the definition with tables followed according to the properties. A streaming table never changes written
   * rows, even if a joined table changes.
   */
  def following: ViewDefinition =
    copy(followsTables = kind == ViewKind.MaterializedView && followed != Streams)

  /** Whether file tables are compared with a copy of their rows. */
  def keepsCopies: Boolean = followed == Copies

  private def followed: String = oneOf(Follow, Follows)

  /** Whether the stored query lists its columns, so that columns added to a source table do not reach the view. */
  def listsColumns: Boolean = onSchemaChange == Ignore

  /** Whether a refresh takes over other columns of the query. */
  def takesColumns: Boolean = onSchemaChange == Evolve && policy != RefreshPolicy.Strict

  private def onSchemaChange: String = oneOf(SchemaChange, SchemaChanges)

  /** Returns the value of a property, by default the first of its values. */
  private def oneOf(property: String, values: Seq[String]): String =
    options.get(property).fold(values.head) { text =>
      values
        .find(_.equalsIgnoreCase(text))
        .getOrElse(
          throw analysis(
            "CHANGELOG_VIEW_PROPERTY_INVALID",
            "property" -> property,
            "value" -> text,
            "expected" -> values.mkString("one of ", ", ", "")))
    }

  /** When the view's query emits changes. */
  def emission: Emission = options.get(Emit).fold[Emission](Emission.Changes) { text =>
    def refused(expected: String) = throw analysis(
      "CHANGELOG_VIEW_PROPERTY_INVALID",
      "property" -> Emit,
      "value" -> text,
      "expected" -> expected)
    Emission.parse(text) match {
      case Some(_: Emission.Every) =>
        refused(s"'changes', with the interval in the property $Interval,")
      case Some(Emission.OnClose(corrections))
          if corrections > 0 && kind == ViewKind.StreamingTable =>
        refused("'on close', because written rows of a streaming table stay,")
      case Some(emission) => emission
      case None => refused(Emission.Grammar)
    }
  }

  /** Returns the changelog mode of the view. `hasKey` says whether a key identifies the rows to replace. */
  def mode(hasKey: Boolean): OutputMode =
    if (emission == Emission.OnClose(0)) OutputMode.Append else kind.mode(hasKey)

  /** The arguments of `history` over the query, if the view keeps a history. */
  def history: Option[Map[String, Seq[String]]] = options.get(History).map { text =>
    if (!text.equalsIgnoreCase("scd2")) {
      throw analysis(
        "CHANGELOG_VIEW_PROPERTY_INVALID",
        "property" -> History,
        "value" -> text,
        "expected" -> "scd2")
    }
    HistoryArguments.flatMap { case (property, argument) =>
      options.get(property).map { text =>
        argument -> (if (argument == "delete_when") Seq(text)
                     else text.split(',').toSeq.map(_.trim))
      }
    }
  }

  /** Whether a version has the time of the refresh that brought it. */
  def keepsCommits: Boolean = history.exists(!_.contains("history_by"))

  /** The interval of refreshes while the view's query runs. */
  def trigger: Trigger = interval(Interval, "10 seconds").getOrElse(Trigger.ProcessingTime(0))

  /** How long replaced files stay for their readers, in milliseconds. */
  def retention: Long = interval(Retention, "1 hour").fold(DefaultRetention)(_.intervalMs)

  /** The permitted age of the view's rows in milliseconds, if given. */
  def lag: Option[Long] = interval(Lag, "5 minutes").map(_.intervalMs)

  private def interval(property: String, example: String): Option[ProcessingTimeTrigger] =
    options.get(property).map { text =>
      try ProcessingTimeTrigger(text)
      catch {
        case _: RuntimeException =>
          throw analysis(
            "CHANGELOG_VIEW_PROPERTY_INVALID",
            "property" -> property,
            "value" -> text,
            "expected" -> s"an interval such as '$example'")
      }
    }

  /** Returns the definition with the query of another definition. */
  def withQueryOf(other: ViewDefinition): ViewDefinition = copy(
    kind = other.kind,
    query = other.query,
    namespace = other.namespace,
    settings = other.settings,
    followsTables = other.followsTables,
    temporaryViews = other.temporaryViews)

  /** Rejects invalid properties. */
  def check(): ViewDefinition = {
    policy
    followed
    history
    trigger
    retention
    lag
    emission
    if (onSchemaChange == Evolve && kind == ViewKind.StreamingTable) {
      throw analysis(
        "CHANGELOG_VIEW_PROPERTY_INVALID",
        "property" -> SchemaChange,
        "value" -> Evolve,
        "expected" -> s"'$Fail' or '$Ignore', because written rows of a streaming table stay,")
    }
    properties.keys.filter(_.toLowerCase.startsWith(Prefix)).foreach { name =>
      throw analysis(
        "CHANGELOG_VIEW_PROPERTY_INVALID",
        "property" -> name,
        "value" -> properties(name),
        "expected" -> "another name: this one is taken")
    }
    properties.keys.foreach { name =>
      if (name.toLowerCase.startsWith(Ours) && !known(name).isDefined) {
        throw analysis(
          "CHANGELOG_VIEW_PROPERTY_UNKNOWN",
          "property" -> name,
          "known" -> Known.sorted)
      }
    }
    // A fixed spelling lets statements alter the property.
    copy(properties = properties.map { case (name, value) =>
      known(name).getOrElse(name) -> value
    })
  }

  private def known(name: String): Option[String] = Known.find(_.equalsIgnoreCase(name))

  /** The folder of the view's generations and of shared data. */
  def home: Path = folder.getParent

  def folder: Path = new Path(
    generation.getOrElse(throw new IllegalStateException("a view without a generation")))

  def checkpoint: Path = otherCheckpoint
    .map(new Path(home, _))
    .filter(_.getParent == folder)
    .getOrElse(new Path(folder, "checkpoint"))

  /** Returns the definition with a new checkpoint, for state in `numPartitions` partitions. */
  def inPartitions(numPartitions: Int): ViewDefinition = copy(
    otherCheckpoint = Some(s"${folder.getName}/checkpoint-${UUID.randomUUID}"),
    settings = settings + (Rescaling.Partitions -> numPartitions.toString))

  /** The number of state partitions, if given. */
  def partitions: Option[String] = settings.get(Rescaling.Partitions)

  /** Returns the definition for an existing view. By default, the number of partitions stays as is. */
  def continuing(before: ViewDefinition): ViewDefinition = copy(
    generation = before.generation,
    otherCheckpoint = before.otherCheckpoint,
    settings = before.settings.filter(_._1 == Rescaling.Partitions) ++ settings)

  /** The folder of rows outside a table's own folder. */
  def rows: Path = new Path(folder, "rows")

  /** Returns the whole definition as table properties. */
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
  val Emit = "changelog.emit"
  val Policy = "changelog.refreshPolicy"
  val Follow = "changelog.follow"
  val History = "changelog.history"
  val Interval = "changelog.interval"
  val Lag = "changelog.lag"
  val Retention = "changelog.retention"
  val SchemaChange = "changelog.onSchemaChange"

  /** The properties with the arguments of the function `history`. */
  private val HistoryArguments = Map(
    s"$History.key" -> "key",
    s"$History.by" -> "history_by",
    s"$History.track" -> "track",
    s"$History.deleteWhen" -> "delete_when")

  /** The view properties of this extension for users. */
  private val Known = HistoryArguments.keys.toSeq ++
    Seq(Emit, Follow, History, Interval, Lag, Policy, Retention, SchemaChange)
  private val Ours = "changelog."

  /** Whether a property changes the rows of the view. */
  def changesRows(property: String): Boolean = property.toLowerCase.startsWith(History)

  /** The prefix of properties reserved for this extension. */
  val Prefix = "changelog.view."

  /** The folder of the visible generation. */
  val Generation: String = Prefix + "generation"

  /** The term of a lease holder after fencing off the predecessor. */
  val Term: String = Prefix + "term"
  private val Checkpoint = Prefix + "checkpoint"

  /** Distinguishes views from tables. */
  val Kind: String = Prefix + "kind"

  private val Tables = "tables"
  private val Copies = "copies"
  private val Streams = "streams"
  private val Follows = Seq(Tables, Copies, Streams)

  private val Fail = "fail"
  private val Ignore = "ignore"
  private val Evolve = "evolve"
  private val SchemaChanges = Seq(Fail, Ignore, Evolve)

  /** Views of earlier versions lack this property. */
  private val FollowsTables = Prefix + "followsTables"

  /** Views of earlier versions lack this property, too. */
  private val TemporaryViews = Prefix + "temporaryViews"

  private val Query = Prefix + "query"
  private val Provider = Prefix + "provider"
  private val Given = Prefix + "given."
  private val Setting = Prefix + "setting."
  private val Namespace = Prefix + "namespace."
  private val DefaultRetention = 10 * 60 * 1000L

  /** Returns the view defined by a table's properties, or None for other tables. Fails for an unknown definition. */
  def fromProperties(properties: Map[String, String]): Option[ViewDefinition] =
    properties.get(Kind).map { name =>
      def isUnknown(reason: String) = throw new IllegalArgumentException(reason)
      ViewDefinition(
        ViewKind.values
          .find(_.toString == name)
          .getOrElse(isUnknown(s"this version of spark-changelog knows no $name")),
        properties.getOrElse(Query, isUnknown(s"the table has no property $Query")),
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
          // `ALTER` may have changed a property of this extension since the view's creation.
          Known.contains(name)
        },
        properties.get(Generation),
        properties.get(Checkpoint),
        properties.get(FollowsTables).contains("true"),
        properties
          .get(TemporaryViews)
          .map(names => if (names.isEmpty) Nil else parseMultipartIdentifier(names)))
    }

  /** Returns the settings with an effect on a query's meaning, as stored by Spark for its own views. */
  def settingsOf(conf: SQLConf): Map[String, String] = {
    sqlConfigsToProps(conf, "").filter { case setting @ (key, _) =>
      key.startsWith("spark.sql.") && !unrelated.exists(key.startsWith) &&
      !RefuseSecrets.isSecret(setting)
    }
  }

  /** Settings of locations or of execution, without effect on a query's meaning. */
  private val unrelated =
    Seq("catalog.", "extensions", "warehouse", "streaming.", "ui.").map("spark.sql." + _)

  private def startingWith(prefix: String, all: Map[String, String]): Map[String, String] =
    all.collect {
      case (key, value) if key.startsWith(prefix) => key.drop(prefix.length) -> value
    }
}

/** ViewKind: whether the rows of a view change with the query's result, or stay once written. */
final class ViewKind private (override val toString: String) {

  /** Returns the changelog mode of a view of this kind. `hasKey` says whether a key identifies the rows to replace. */
  def mode(hasKey: Boolean): OutputMode =
    if (this == ViewKind.StreamingTable) OutputMode.Append
    else if (hasKey) OutputMode.Upsert
    else OutputMode.Retract
}

object ViewKind {
  val MaterializedView = new ViewKind("MATERIALIZED VIEW")

  /** A table with rows written once. A query with changing rows is rejected. */
  val StreamingTable = new ViewKind("STREAMING TABLE")

  val values: Seq[ViewKind] = Seq(MaterializedView, StreamingTable)
}

/** RefreshPolicy: the choice between incremental and full refreshes. */
final class RefreshPolicy private (override val toString: String) {

  /** Whether the policy forbids recomputation. */
  def isIncremental: Boolean =
    this == RefreshPolicy.Incremental || this == RefreshPolicy.Strict
}

object RefreshPolicy {

  /** Incremental if the query reads a stream or followed tables, else full. */
  val Auto = new RefreshPolicy("auto")

  /** Incremental. A query without a source of changes is rejected. */
  val Incremental = new RefreshPolicy("incremental")

  /** Incremental. If changes are lost, REFRESH fails with one error for every reason. */
  val Strict = new RefreshPolicy("incremental strict")

  /** A full recomputation in each refresh. */
  val Full = new RefreshPolicy("full")

  val values: Seq[RefreshPolicy] = Seq(Auto, Incremental, Strict, Full)

  /** Returns the policy named by a text, with any spacing. */
  def find(text: String): Option[RefreshPolicy] =
    values.find(_.toString.equalsIgnoreCase(text.trim.replaceAll("\\s+", " ")))
}
