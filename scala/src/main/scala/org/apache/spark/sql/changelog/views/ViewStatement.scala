// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import scala.util.matching.Regex

import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.quoteIfNeeded
import org.apache.spark.sql.connector.expressions.{ClusterByTransform, Expressions}

import org.apache.spark.sql.changelog.errors.ViewErrors
import org.apache.spark.sql.changelog.explain.{ExplainChangelogCommand, ExplainFormat}
import org.apache.spark.sql.changelog.savepoints.Moment
import org.apache.spark.sql.changelog.views.commands._

/**
 * Understands the statements about views that Spark's grammar doesn't have. `CREATE` without
 * `OR REPLACE` it does have, and those are left to its parser.
 */
class ViewStatement(parser: ParserInterface) {
  import ViewStatement._

  /** @param parse Spark's parser, with the statement's parameters */
  def apply(sqlText: String, parse: String => LogicalPlan): Option[LogicalPlan] =
    LeadingComments.replaceFirstIn(sqlText, "") match {
      case Explain(form, create) =>
        explained(parse(withoutReplace(create)), ExplainFormat(Option(form).getOrElse("TEXT")))
      case CreateClustered(before, columns, after) if !ResolveViewStatements.isInPipeline =>
        // the parser of a format may take the clause for partitioning
        val text = s"$before $after"
        apply(text, parse)
          .orElse(ResolveViewStatements.creation(parse(text), replace = false))
          .map(clustered(_, columns))
      case CreateOrReplace() =>
        val text = LeadingComments.replaceFirstIn(sqlText, "")
        creation(parse(withoutReplace(text)), replace = true)
      case Fork(ifNotExists, name, from, batch, savepoint) =>
        Some(
          ForkKeptView(parts(name), parts(from), moment(batch, savepoint), ifNotExists != null))
      case Restore(name, batch, savepoint) =>
        Some(RestoreKeptView(parts(name), moment(batch, savepoint)))
      case Compare(name, other) => Some(CompareKeptView(parts(name), parts(other)))
      case Swap(name, other) => Some(SwapKeptViews(parts(name), parts(other)))
      case ExplainAlterQuery(name, query) =>
        Some(ExplainAlteredView(parts(name), altered(name, query, parse)))
      case AlterQuery(name, query) =>
        Some(AlterViewQuery(parts(name), altered(name, query, parse)))
      case SetPartitions(name, number) => Some(RescaleView(parts(name), number.toInt))
      case Alter(name, change) =>
        Some(alteration(parts(name), parse(s"ALTER TABLE $name $change"), change))
      case RefreshAll(database) =>
        val which = Option(database).map(parts(_).last).map(RefreshKeptViews.OfDatabase)
        Some(RefreshKeptViews(which.getOrElse(RefreshKeptViews.All)))
      case RefreshUpstream(name) =>
        Some(RefreshKeptViews(RefreshKeptViews.Upstream(parts(name))))
      case Refresh(name, how) =>
        Some(RefreshKeptView(parts(name), Option(how).flatMap(RefreshPolicy.find)))
      case Start(name) => Some(StartKeptView(parts(name)))
      case Stop(name) => Some(StopKeptView(parts(name)))
      case Drop(ifExists, name, cascade) =>
        Some(DropKeptView(parts(name), ifExists != null, cascade != null))
      case Describe(first, second, name) =>
        Some(DescribeKeptView(parts(name), first != null || second != null))
      case Verify(name, percent) =>
        Some(VerifyKeptView(parts(name), Option(percent).map(sample)))
      case Why(name, condition) =>
        val wanted = Option(condition).map(text => parse(s"SELECT * FROM $name WHERE ($text\n)"))
        val filter = wanted.flatMap(_.collectFirst { case filter: Filter => filter })
        Some(WhyKeptView(parts(name), filter))
      case Refreshes(name) => Some(ShowRefreshes(parts(name)))
      case Show(database, pattern) =>
        Some(ShowKeptViews(Option(database).map(parts(_).last), Option(pattern)))
      case _ => None
    }

  private def clustered(plan: LogicalPlan, columns: String): LogicalPlan = plan match {
    case create: CreateKeptView =>
      val names = Column.findAllIn(columns).map(name => Expressions.column(name.trim)).toSeq
      create.copy(layout = create.layout :+ ClusterByTransform(names))
    case other => other
  }

  /** The text of another query for a view. */
  private def altered(name: String, query: String, parse: String => LogicalPlan): String =
    parse(s"CREATE MATERIALIZED VIEW $name AS $query") match {
      case create: CreateMaterializedViewAsSelect =>
        // the plan of a command shows its text
        RefuseSecrets(name, Map.empty, create.query)
        create.originalText
      case _ => query
    }

  private def alteration(name: Seq[String], parsed: LogicalPlan, change: String): LogicalPlan =
    parsed match {
      case SetTableProperties(_, properties) =>
        RefuseSecrets(name.map(quoteIfNeeded).mkString("."), properties, LocalRelation())
        AlterKeptView(name, properties, unset = Nil, ifExists = false)
      case UnsetTableProperties(_, keys, ifExists) =>
        AlterKeptView(name, Map.empty, keys, ifExists)
      case RenameTable(_, to, _) => RenameKeptView(name, to)
      case _ =>
        throw ViewErrors.clauseNotSupported(
          name.mkString("."),
          s"ALTER … ${change.trim.split("\\s+").take(2).mkString(" ")}",
          "AS, SET PARTITIONS, SET TBLPROPERTIES, UNSET TBLPROPERTIES, RENAME TO and SWAP WITH are; for all else use CREATE OR REPLACE.")
    }

  private def moment(batch: String, savepoint: String): Moment =
    if (batch != null) Moment.AtBatch(batch.toLong)
    else if (savepoint != null) Moment.AtSavepoint(savepoint)
    else Moment.Newest

  private def sample(percent: String): Double = {
    val size = percent.toDouble
    if (size <= 0 || size > 100) {
      throw ViewErrors.propertyInvalid("SAMPLE", percent, "a percentage above 0 and up to 100")
    }
    size
  }

  private def parts(name: String): Seq[String] = parser.parseMultipartIdentifier(name)
}

object ViewStatement {

  /** Either of the words for what is kept. */
  val Kind: String = """(?:MATERIALIZED\s+VIEW|STREAMING\s+TABLE)"""
  private val NamePart = """(?:`(?:[^`]++|``)++`|\w+)"""

  // groups repeat possessively, in a loop: Java's expressions recurse once for each other repetition
  private val NameOnly = s"""$NamePart(?:\\s*\\.\\s*$NamePart)*"""

  /** A name of one part or several, as a group. */
  val Name: String = s"($NameOnly)"

  /** What may stand before a statement. */
  val LeadingComments: Regex = """(?s)\A(?:\s++|--[^\n]*+(?:\n|\z)|/\*.*?\*/)++""".r

  private val Explain =
    s"""(?is)EXPLAIN\\s+(?:CHANGELOG\\s+(?:FORMAT\\s+(TEXT|JSON|HTML|SVG)\\s+)?)?(CREATE\\s+(?:OR\\s+REPLACE\\s+)?$Kind\\b.*)""".r
  private val Quoted = """(?:'(?:[^'\\]++|\\.)*+'|"(?:[^"\\]++|\\.)*+"|`(?:[^`]++|``)*+`)"""
  private val CreateClustered =
    s"""(?is)(CREATE\\s+(?:OR\\s+REPLACE\\s+)?$Kind\\s+(?:IF\\s+NOT\\s+EXISTS\\s+)?$NameOnly(?:$Quoted|[^'"`\\w]++|(?!AS\\b|CLUSTER\\s+BY\\s*\\()\\w++)*+)CLUSTER\\s+BY\\s*\\(((?:$Quoted|[^()'"`]++)*+)\\)(.*)""".r
  private val Column = """(?:`(?:[^`]++|``)*+`|[^,`]++)++""".r
  private val CreateOrReplace = s"""(?is)CREATE\\s+OR\\s+REPLACE\\s+$Kind\\b.*""".r
  private val OrReplace = """(?is)\A(\s*CREATE\s+)(OR\s+REPLACE)\b""".r
  private val Refresh =
    s"""(?is)REFRESH\\s+$Kind\\s+$Name(?:\\s+(FULL|INCREMENTAL(?:\\s+STRICT)?))?\\s*;?\\s*""".r
  private val AlterQuery =
    s"""(?is)ALTER\\s+MATERIALIZED\\s+VIEW\\s+$Name\\s+AS\\b(.*?);?\\s*""".r
  private val ExplainAlterQuery =
    s"""(?is)EXPLAIN\\s+(?:CHANGELOG\\s+)?ALTER\\s+MATERIALIZED\\s+VIEW\\s+$Name\\s+AS\\b(.*?);?\\s*""".r
  private val SetPartitions =
    s"""(?is)ALTER\\s+$Kind\\s+$Name\\s+SET\\s+PARTITIONS\\s+(\\d{1,9})\\s*;?\\s*""".r
  private val Alter = s"""(?is)ALTER\\s+$Kind\\s+$Name\\s+(.*)""".r
  private val Kinds = """(?:MATERIALIZED\s+VIEWS|STREAMING\s+TABLES)"""
  private val RefreshAll =
    s"""(?is)REFRESH\\s+$Kinds(?:\\s+(?:IN|FROM)\\s+$Name)?\\s*;?\\s*""".r
  private val RefreshUpstream =
    s"""(?is)REFRESH\\s+$Kind\\s+$Name\\s+WITH\\s+UPSTREAM\\s*;?\\s*""".r
  private val Start = s"""(?is)START\\s+$Kind\\s+$Name\\s*;?\\s*""".r
  private val Stop = s"""(?is)STOP\\s+$Kind\\s+$Name\\s*;?\\s*""".r
  private val Drop =
    s"""(?is)DROP\\s+$Kind\\s+(IF\\s+EXISTS\\s+)?$Name(\\s+CASCADE)?\\s*;?\\s*""".r
  private val Describe =
    s"""(?is)DESC(?:RIBE)?\\s+(EXTENDED\\s+)?$Kind\\s+(EXTENDED\\s+)?$Name\\s*;?\\s*""".r
  private val Verify =
    s"""(?is)VERIFY\\s+$Kind\\s+$Name(?:\\s+SAMPLE\\s+(\\d+(?:\\.\\d+)?)\\s+PERCENT)?\\s*;?\\s*""".r
  private val Why = s"""(?is)WHY\\s+$Kind\\s+$Name(?:\\s+WHERE\\b(.*?))?\\s*;?\\s*""".r
  private val Moments = """(?:BATCH\s+(\d{1,18})|SAVEPOINT\s+(\w+))"""
  private val Fork =
    s"""(?is)CREATE\\s+$Kind\\s+(IF\\s+NOT\\s+EXISTS\\s+)?$Name\\s+FROM\\s+$Name(?:\\s+AT\\s+$Moments)?\\s*;?\\s*""".r
  private val Restore = s"""(?is)RESTORE\\s+$Kind\\s+$Name\\s+TO\\s+$Moments\\s*;?\\s*""".r
  private val Compare =
    s"""(?is)COMPARE\\s+$Kind\\s+$Name\\s+WITH\\s+(?:$Kind\\s+)?$Name\\s*;?\\s*""".r
  private val Swap =
    s"""(?is)ALTER\\s+$Kind\\s+$Name\\s+SWAP\\s+WITH\\s+(?:$Kind\\s+)?$Name\\s*;?\\s*""".r
  private val Refreshes = s"""(?is)SHOW\\s+REFRESHES\\s+OF\\s+(?:$Kind\\s+)?$Name\\s*;?\\s*""".r
  private val Show =
    s"""(?is)SHOW\\s+(?:MATERIALIZED\\s+VIEWS|STREAMING\\s+TABLES)(?:\\s+(?:IN|FROM)\\s+$Name)?(?:\\s+(?:LIKE\\s+)?'([^']*)')?\\s*;?\\s*""".r

  /** What Spark's parser makes of a `CREATE`, as the command that runs it. */
  def creation(plan: LogicalPlan, replace: Boolean): Option[LogicalPlan] = ResolveViewStatements
    .creation(plan, replace)

  /** Spaces take the place of what Spark does not know, so that positions in errors stay. */
  private def withoutReplace(text: String): String =
    OrReplace.replaceAllIn(text, found => found.group(1) + " " * found.group(2).length)

  private def explained(plan: LogicalPlan, form: ExplainFormat): Option[LogicalPlan] =
    plan match {
      case create: CreatePipelineDatasetAsSelect =>
        // a plan would show them
        RefuseSecrets("to explain", Map.empty, create.query)
        val otherwise = ExplainChangelogCommand(create.query, form)
        creation(plan, replace = true).map {
          case command: CreateKeptView => ExplainKeptView(command, otherwise)
          case _ => otherwise
        }
      case _ => None
    }
}
