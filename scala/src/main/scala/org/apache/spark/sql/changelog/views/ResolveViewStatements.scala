// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkEnv
import org.apache.spark.internal.config.SECRET_REDACTION_PATTERN
import org.apache.spark.sql.catalyst.analysis.{ResolvedIdentifier, UnresolvedIdentifier}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.catalog.CatalogV2Implicits._
import org.apache.spark.sql.internal.{SQLConf, StaticSQLConf}

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.errors.Credentials
import org.apache.spark.sql.changelog.views.commands.CreateMaterializedView

/**
 * ResolveViewStatements: gives a meaning to statements that Spark can parse but not run, by commands.
 *
 * Runs with Spark's first rules, where the query is still text. The command analyzes the query later, as a view's
 * query. The rule never sees Spark's own pipelines.
 */
object ResolveViewStatements extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case create: CreatePipelineDataset =>
      creation(create, replace = false).getOrElse(create)
    case other => other
  }

  /**
   * Replaces a statement just parsed, in two cases:
   *   - Sessions with a Hive catalog, such as `spark-sql`, skip the first rules of extensions.
   *   - A statement with a streaming query counts as a stream. To show a stream, Spark analyzes and runs the statement
   *     again.
   *
   * Statements of a pipeline stay as Spark parses them.
   */
  def parsed(plan: LogicalPlan): LogicalPlan = plan match {
    case create: CreatePipelineDataset
        if (leavesOutFirstRules || create.isStreaming) && !isInPipeline =>
      apply(create)
    case other => other
  }

  private def leavesOutFirstRules: Boolean =
    SQLConf.get.getConf(StaticSQLConf.CATALOG_IMPLEMENTATION) == "hive"

  /** Returns whether Spark is reading the definition of a pipeline. A pipeline's statements belong to Spark. */
  def isInPipeline: Boolean = StackWalker.getInstance.walk[Boolean](
    _.anyMatch(_.getClassName.startsWith("org.apache.spark.sql.pipelines.")))

  /** Returns the command for a `CREATE` statement with a known name. */
  def creation(plan: LogicalPlan, replace: Boolean): Option[LogicalPlan] = plan match {
    case create: CreateMaterializedViewAsSelect =>
      command(ViewKind.MaterializedView, create, create.query, create.originalText, replace)
    case create: CreateStreamingTableAsSelect =>
      command(ViewKind.StreamingTable, create, create.query, create.originalText, replace)
    case _ => None
  }

  private def command(
      kind: ViewKind,
      create: CreatePipelineDataset,
      query: LogicalPlan,
      text: String,
      replace: Boolean): Option[LogicalPlan] = nameOf(create.name).map { name =>
    def refuse(clause: String, advice: String) =
      throw analysis(
        "CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED",
        "view" -> s"$kind ${name.quoted}",
        "clause" -> clause,
        "advice" -> advice)
    create.columns.find(isMoreThanNamed).foreach { column =>
      refuse(
        s"A column ${column.name} that is not NULL, or has a default or a generated value",
        "Let the query compute the values it should have.")
    }
    val spec = create.tableSpec
    if (spec.collation.nonEmpty) {
      refuse("A default collation", "Write COLLATE in the query.")
    }
    RefuseSecrets(name.quoted, spec.properties, query)
    CreateMaterializedView(
      kind,
      name,
      text,
      spec.provider,
      spec.comment,
      spec.properties,
      create.columns.map(_.toV1Column),
      create.partitioning,
      create.ifNotExists,
      replace)
  }

  private def isMoreThanNamed(column: ColumnDefinition): Boolean =
    !column.nullable || column.defaultValue.nonEmpty || column.generationExpression.nonEmpty ||
      column.identityColumnSpec.nonEmpty

  private def nameOf(plan: LogicalPlan): Option[Seq[String]] = plan match {
    case UnresolvedIdentifier(parts, _) => Some(parts)
    case ResolvedIdentifier(catalog, identifier) =>
      Some(catalog.name() +: identifier.asMultipartIdentifier)
    case _ => None
  }
}

/**
 * RefuseSecrets: rejects a view with a password in its properties, or in the name or an option of a source table.
 *
 * The catalog stores the text of a view's statement and shows the text to everyone. The check therefore precedes
 * planning. Names of settings reveal a secret, as elsewhere in Spark, and some values do, too.
 */
object RefuseSecrets {
  def apply(view: String, properties: Map[String, String], query: LogicalPlan): Unit = {
    def refuse(place: String) =
      throw analysis("CHANGELOG_VIEW_SECRET", "view" -> view, "place" -> place)
    properties.find(isSecret).foreach { case (name, _) => refuse(s"property $name") }
    NamesRead.relations(query).foreach { relation =>
      relation.options.asScala.find(isSecret).foreach { case (name, _) =>
        refuse(s"option $name of its query")
      }
      // parquet.`s3a://key:secret@bucket/path`
      if (relation.multipartIdentifier.exists(Credentials.hasSecret)) {
        refuse(s"path of a table of the format ${relation.multipartIdentifier.head} in its query")
      }
    }
  }

  def isSecret(setting: (String, String)): Boolean =
    SparkEnv.get.conf.get(SECRET_REDACTION_PATTERN).findFirstIn(setting._1).isDefined ||
      Credentials.hasSecret(setting._2)
}
