// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.parser

import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.evolution.{Evolution, Rescaling}
import org.apache.spark.sql.changelog.explain.dryrun.{DryRunCommand, Sample}
import org.apache.spark.sql.changelog.explain.lineage.WhyCommand
import org.apache.spark.sql.changelog.explain.{
  ExplainChangelogCommand, ExplainFormat, ExplainQueryCommand
}
import org.apache.spark.sql.changelog.savepoints._
import org.apache.spark.sql.changelog.views._
import org.apache.spark.sql.changelog.views.commands._

/**
 * A statement of this project: its syntax, and the plan of a parsed text.
 *
 * @param syntax
 *   in the notation of [[Syntax]]; `KIND` stands for `MATERIALIZED VIEW` or `STREAMING TABLE`
 */
private[parser] case class Statement(syntax: String)(val plan: ReadStatement => LogicalPlan) {
  val parsed: Seq[Syntax] = Syntax(
    syntax
      .replace("KINDS", "{MATERIALIZED VIEWS | STREAMING TABLES}")
      .replace("KIND", "{MATERIALIZED VIEW | STREAMING TABLE}"))

  /**
   * The possible keyword sequences at the start of the statement, up to the kind of its object.
   */
  val heads: Seq[Seq[String]] = Statement.headsOf(parsed, Vector.empty)
}

private[parser] object Statement {

  /** Kinds of objects. After one of these words, every error in the text is ours. */
  private val Objects =
    "FLOW VIEW TABLE VIEWS TABLES SAVEPOINT SAVEPOINTS REFRESHES CHECKPOINT CHANGELOG"
      .split(' ')
      .toSet

  private val QueryWords = Seq("SELECT", "WITH", "FROM", "TABLE", "VALUES", "(")

  private val Format = "[VERBOSE | FORMAT {TEXT | JSON | HTML | SVG}]"
  private val Create =
    "CREATE [OR REPLACE] KIND [IF NOT EXISTS] v [(columns)] [USING format] " +
      "[PARTITIONED BY (transforms) | CLUSTER BY (keys) | COMMENT 'comment' | TBLPROPERTIES (properties) | DEFAULT COLLATION collation]… " +
      "AS query"
  private val At = "{BATCH n | SAVEPOINT s}"
  private val Of = "OF {CHECKPOINT 'path' | KIND v}"

  private val Changes =
    "FROM {STREAM (source) | STREAM source} KEYS (keys) [IGNORE NULL UPDATES] " +
      "[APPLY AS DELETE WHEN deletion] [APPLY AS TRUNCATE WHEN truncation] SEQUENCE BY sequence " +
      "[COLUMNS {(columns) | * EXCEPT (hidden)}] [STORED AS SCD TYPE n] " +
      "[TRACK HISTORY ON {(tracked) | * EXCEPT (untracked)}]"

  /** All statements. The first statement that matches a text wins. */
  val all: Seq[Statement] = Seq(
    Statement(Create)(created),
    Statement(s"CREATE FLOW f [COMMENT 'comment'] AS AUTO CDC INTO v $Changes")(autoCdc),
    Statement(s"CREATE STREAMING TABLE [IF NOT EXISTS] v FLOW AUTO CDC $Changes")(autoCdc),
    Statement(s"CREATE KIND [IF NOT EXISTS] v FROM w [AT $At]") { read =>
      CreateMaterializedView.fork(
        read.name("v"),
        read.name("w"),
        moment(read),
        read.has("EXISTS"))
    },
    Statement(s"EXPLAIN [CHANGELOG $Format] $Create")(explained),
    Statement(
      "ALTER KIND v {AS query | SET PARTITIONS n | SET TBLPROPERTIES (properties) | " +
        "UNSET TBLPROPERTIES [IF EXISTS] (keys) | RENAME TO w | SWAP WITH [KIND] w}")(altered),
    Statement("ALTER KIND v {ADD | ALTER | CHANGE | CLUSTER | DROP | RECOVER | REPLACE} clause")(
      refused),
    Statement("EXPLAIN [CHANGELOG] ALTER KIND v AS query")(read =>
      ChangeViews.explainQuery(read.name("v"), queryOf(read))),
    Statement("REFRESH KIND v [FULL | INCREMENTAL [STRICT] | WITH UPSTREAM]")(refreshed),
    Statement("REFRESH KINDS [{IN | FROM} database]")(read =>
      RefreshViews.all(read.optional("database", read.name).getOrElse(Nil))),
    Statement("START KIND v")(read => RefreshViews.start(read.name("v"))),
    Statement("STOP KIND v")(read => RefreshViews.stop(read.name("v"))),
    Statement("DROP KIND [IF EXISTS] v [CASCADE]")(read =>
      ChangeViews.drop(read.name("v"), read.has("EXISTS"), read.has("CASCADE"))),
    Statement("{DESCRIBE | DESC} [EXTENDED] KIND [EXTENDED] v")(read =>
      ReadViews.describe(read.name("v"), read.has("EXTENDED"))),
    Statement("VERIFY KIND v [SAMPLE n PERCENT]")(read =>
      ReadViews.verify(read.name("v"), Option.when(read.has("SAMPLE"))(sample(read)))),
    Statement("WHY {KIND v [WHERE condition] | query}")(explainedRows),
    Statement(s"RESTORE KIND v TO $At")(read =>
      ChangeViews.restore(read.name("v"), moment(read))),
    Statement("COMPARE KIND v WITH [KIND] w")(read =>
      ReadViews.compare(read.name("v"), read.name("w"))),
    Statement("SHOW REFRESHES OF [KIND] v")(read => ReadViews.refreshes(read.name("v"))),
    Statement("SHOW KINDS [{IN | FROM} database] [[LIKE] 'pattern']")(read =>
      ReadViews.show(
        read.optional("database", read.name).getOrElse(Nil),
        read.optional("'pattern'", read.text))),
    Statement(s"CREATE SAVEPOINT s $Of [AT BATCH n]")(read =>
      SavepointCommands.create(
        read.word("s"),
        of(read),
        Option.when(read.has("BATCH"))(read.whole("n", 18)))),
    Statement(s"SHOW SAVEPOINTS $Of")(read => SavepointCommands.show(of(read))),
    Statement(s"DROP SAVEPOINT [IF EXISTS] s $Of")(read =>
      SavepointCommands.drop(read.word("s"), of(read), read.has("EXISTS"))),
    Statement(s"FORK CHECKPOINT 'path' [AT $At] INTO 'new'")(read =>
      SavepointCommands.fork(read.text("'path'"), moment(read), read.text("'new'"))),
    Statement("EVOLVE CHECKPOINT 'path' INTO 'new' [TARGET table] AS query")(evolved),
    Statement("EXPLAIN EVOLVE CHECKPOINT 'path' AS query")(evolved),
    Statement("RESCALE CHECKPOINT 'path' INTO 'new' PARTITIONS n")(read =>
      Rescaling.command(read.text("'path'"), read.text("'new'"), read.whole("n", 9).toInt)),
    Statement(
      s"EXPLAIN CHANGELOG $Format {QUERY 'name' | DRY RUN OVER {'changes' | n {ROWS | ROW}} query | query}") {
      read =>
        if (read.has("QUERY")) ExplainQueryCommand(read.text("'name'"), format(read))
        else if (read.has("DRY")) {
          val sample =
            if (read.has("'changes'")) Sample.Changes(read.text("'changes'"))
            else Sample.FirstRows(read.whole("n", 6).toInt)
          DryRunCommand(read.rest("query"), sample, format(read))
        } else ExplainChangelogCommand(read.rest("query"), format(read))
    })

  private def headsOf(items: Seq[Syntax], before: Vector[String]): Seq[Seq[String]] =
    items match {
      case Syntax.Keyword(word) +: _ if Objects(word) => Seq(before :+ word)
      case Syntax.Keyword(word) +: rest => headsOf(rest, before :+ word)
      case Syntax.Choice(options, isOptional, _) +: rest =>
        options.flatMap(option => headsOf(option ++ rest, before)) ++
          (if (isOptional) headsOf(rest, before) else Nil)
      case _ => QueryWords.map(before :+ _)
    }

  private def created(read: ReadStatement): LogicalPlan = {
    val isReplaced = read.has("REPLACE")
    val plan = parsedCreate(read)
    if (isReplaced || read.has("CLUSTER")) creation(read, plan, isReplaced).getOrElse(plan)
    else ResolveViewStatements.parsed(plan)
  }

  /**
   * Parses a `CREATE` without two parts: `OR REPLACE`, which Spark lacks, and `CLUSTER BY`, which
   * Delta's parser mistakes for a partitioning.
   */
  private def parsedCreate(read: ReadStatement): LogicalPlan =
    read.without("CREATE", "OR" -> "REPLACE", "CLUSTER" -> "(keys)")

  private def creation(
      read: ReadStatement,
      plan: LogicalPlan,
      isReplaced: Boolean): Option[LogicalPlan] =
    ResolveViewStatements.creation(plan, isReplaced).map {
      case create: CreateMaterializedView if read.has("CLUSTER") =>
        val table = s"CREATE TABLE t CLUSTER BY ${read.textOf("(keys)")}"
        val keys =
          CatalystSqlParser.parsePlan(table).collect { case t: CreateTable => t.partitioning }
        create.copy(layout = create.layout ++ keys.flatten)
      case other => other
    }

  private def explained(read: ReadStatement): LogicalPlan = parsedCreate(read) match {
    case create: CreatePipelineDatasetAsSelect =>
      // EXPLAIN would show secrets.
      RefuseSecrets("to explain", Map.empty, create.query)
      val otherwise = ExplainChangelogCommand(create.query, format(read))
      creation(read, create, isReplaced = true) match {
        case Some(command: CreateMaterializedView) =>
          CreateMaterializedView.explain(command, otherwise)
        case _ => otherwise
      }
    case other => other
  }

  private def altered(read: ReadStatement): LogicalPlan = {
    val name = read.name("v")
    if (read.has("AS")) ChangeViews.query(name, queryOf(read))
    else if (read.has("PARTITIONS")) ChangeViews.partitions(name, read.whole("n", 9).toInt)
    else if (read.has("RENAME")) ChangeViews.rename(name, read.name("w"))
    else if (read.has("SWAP")) ChangeViews.swap(name, read.name("w"))
    else {
      read.after("v", s"ALTER TABLE ${read.textOf("v")}") match {
        case SetTableProperties(_, properties) =>
          RefuseSecrets(read.textOf("v"), properties, LocalRelation())
          ChangeViews.properties(name, properties, unset = Nil, ifExists = false)
        case UnsetTableProperties(_, keys, ifExists) =>
          ChangeViews.properties(name, Map.empty, keys, ifExists)
        case other => other
      }
    }
  }

  private def autoCdc(read: ReadStatement): LogicalPlan = {
    def chosen(listed: String, excepted: String): AutoCdc.Columns =
      if (read.has(listed)) AutoCdc.Columns(read.columns(listed), isExcept = false)
      else AutoCdc.Columns(read.optional(excepted, read.columns).getOrElse(Nil), isExcept = true)
    val source = if (read.has("(source)")) read.textOf("(source)") else read.textOf("source")
    AutoCdc.create(
      read.name("v"),
      read.has("EXISTS"),
      read.optional("'comment'", read.text),
      AutoCdc(
        s"STREAM $source",
        read.columns("(keys)"),
        read.textOf("sequence"),
        read.optional("deletion", read.textOf),
        read.optional("truncation", read.textOf),
        read.has("IGNORE"),
        chosen("(columns)", "(hidden)"),
        if (read.has("n")) read.whole("n", 1) else 1L,
        chosen("(tracked)", "(untracked)")))
  }

  private def refused(read: ReadStatement): LogicalPlan = throw analysis(
    "CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED",
    "view" -> read.name("v").mkString("."),
    "clause" -> s"ALTER … ${read.textAfter("v").split(' ').take(2).mkString(" ")}",
    "advice" -> "AS, SET PARTITIONS, SET TBLPROPERTIES, UNSET TBLPROPERTIES, RENAME TO and SWAP WITH are; for all else use CREATE OR REPLACE.")

  /** Returns the text of a view's query, with the statement's parameters substituted. */
  private def queryOf(read: ReadStatement): String =
    read.rest("query", "CREATE STREAMING TABLE v AS") match {
      case create: CreatePipelineDatasetAsSelect =>
        // The plan of a command shows the text.
        RefuseSecrets(read.textOf("v"), Map.empty, create.query)
        create.originalText
      case _ => read.textOf("query")
    }

  private def refreshed(read: ReadStatement): LogicalPlan = {
    val name = read.name("v")
    if (read.has("UPSTREAM")) RefreshViews.withUpstream(name)
    else {
      val policy = Seq("FULL", "INCREMENTAL", "STRICT").filter(read.has).mkString(" ")
      RefreshViews.one(name, RefreshPolicy.find(policy))
    }
  }

  private def explainedRows(read: ReadStatement): LogicalPlan =
    if (!read.has("v")) WhyCommand(read.rest("query"))
    else {
      val name = read.name("v")
      val wanted = Option.when(read.has("WHERE")) {
        read.enclosed("condition", s"SELECT * FROM ${read.textOf("v")} WHERE")
      }
      ReadViews.why(name, wanted.flatMap(_.collectFirst { case filter: Filter => filter }))
    }

  private def evolved(read: ReadStatement): LogicalPlan = Evolution.command(
    read.text("'path'"),
    read.optional("'new'", read.text),
    read.optional("table", read.name),
    read.rest("query"))

  private def format(read: ReadStatement): ExplainFormat =
    ExplainFormat(Seq("VERBOSE", "JSON", "HTML", "SVG").find(read.has).getOrElse("TEXT"))

  private def of(read: ReadStatement): SavepointOwner =
    if (read.has("CHECKPOINT")) SavepointOwner.checkpoint(read.text("'path'"))
    else ViewImage.savepointOwner(read.name("v"))

  private def moment(read: ReadStatement): RestorePoint = RestorePoint(
    Option.when(read.has("BATCH"))(read.whole("n", 18)),
    Option.when(read.has("SAVEPOINT"))(read.word("s")))

  private def sample(read: ReadStatement): Double = {
    val percent = read.textOf("n").toDouble
    if (percent <= 0 || percent > 100) {
      throw analysis(
        "CHANGELOG_VIEW_PROPERTY_INVALID",
        "property" -> "SAMPLE",
        "value" -> read.textOf("n"),
        "expected" -> "a percentage above 0 and up to 100")
    }
    percent
  }
}
