// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.parser

import java.lang.management.ManagementFactory
import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkSqlParser

import org.apache.spark.sql.changelog.testing._
import org.apache.spark.sql.changelog.testing.sqltests.SqlTestFile

/** A mistyped statement fails with what was expected where; a statement that isn't ours is Spark's. */
class StatementParserSuite
    extends AnyFunSuite
    with ChangelogSession
    with ErrorChecks
    with GoldenFiles {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Quick)

  /** @param marked the statement, with a mark before the token that is wrong */
  private def isWrong(marked: String, expected: String, syntax: String): Unit =
    withClue(marked) {
      val at = marked.indexOf('^')
      val sql = marked.replace("^", "")
      val error = checkError("CHANGELOG_SYNTAX_ERROR", "expected" -> expected)(spark.sql(sql))
      assert(error.getMessageParameters.get("syntax").startsWith(syntax))
      val before = sql.substring(0, at)
      assert(error.getMessageParameters.get("line").toInt == before.count(_ == '\n') + 1)
      val position = error.getMessageParameters.get("position").toInt
      assert(position == at - (before.lastIndexOf('\n') + 1))
      val Array(line, mark) = error.getMessageParameters.get("excerpt").split('\n')
      assert(mark == "-" * math.min(position, 60) + "^^^" && sql.contains(line))
      assert(error.getSqlState == "42601")
    }

  private val refresh =
    "REFRESH MATERIALIZED VIEW v [FULL | INCREMENTAL [STRICT] | WITH UPSTREAM]"
  private val create = "CREATE [OR REPLACE] MATERIALIZED VIEW [IF NOT EXISTS] v "
  private val alter = "ALTER MATERIALIZED VIEW v {AS query | SET PARTITIONS n | SET TBLPROPERTIES"
  private val why = "WHY {MATERIALIZED VIEW v [WHERE condition] | query}"
  private val explain = "EXPLAIN CHANGELOG [VERBOSE | FORMAT {TEXT | JSON | HTML | SVG}] {QUERY"
  private val rescale = "RESCALE CHECKPOINT 'path' INTO 'new' PARTITIONS n"
  private val end = "the end of the statement"

  test("a mistyped word of a statement") {
    isWrong("^REFRES MATERIALIZED VIEW v", "REFRESH", refresh)
    isWrong("REFRESH ^MATERIALISED VIEW v", "MATERIALIZED", refresh)
    isWrong("^refres materialised view v", "REFRESH", refresh)
    isWrong("-- all\nCREATE MATERIALIZED ^VEIW v AS SELECT 1", "VIEW", create)
    isWrong(
      "CREATE OR REPLACE STREAMING ^TABEL t AS SELECT 1",
      "TABLE",
      "CREATE [OR REPLACE] STREAMING TABLE")
    isWrong("SHOW MATERIALIZED ^VEIWS", "VIEWS", "SHOW MATERIALIZED VIEWS [")
    isWrong("^STOPP STREAMING TABLE t", "STOP", "STOP STREAMING TABLE v")
    isWrong("EXPLAIN ^CHANGELO SELECT 1", "CHANGELOG", "EXPLAIN ")
    isWrong("RESCALE ^CHECKPONIT 'a' INTO 'b' PARTITIONS 4", "CHECKPOINT", rescale)
    isWrong("WHY ^SELEC 1", "SELECT", why)
  }

  test("a statement that begins right and goes on wrong") {
    isWrong("REFRESH MATERIALIZED VIEW v ^FUL", s"FULL, INCREMENTAL, WITH or $end", refresh)
    isWrong("REFRESH MATERIALIZED VIEW v FULL; ^REFRESH", end, refresh)
    isWrong("REFRESH MATERIALIZED VIEW^", "a name", refresh)
    isWrong("REFRESH MATERIALIZED VIEW a^.'b'", s"FULL, INCREMENTAL, WITH or $end", refresh)
    isWrong("REFRESH MATERIALIZED VIEW v ^/* all", s"FULL, INCREMENTAL, WITH or $end", refresh)
    isWrong(
      "VERIFY MATERIALIZED VIEW v SAMPLE 5^",
      "PERCENT",
      "VERIFY MATERIALIZED VIEW v [SAMPLE n")
    isWrong("RESCALE CHECKPOINT 'a' ^PARTITIONS 4", "INTO", rescale)
    isWrong(
      "RESCALE CHECKPOINT 'a' INTO 'b' PARTITIONS ^2.5",
      "a whole number of at most 9 digits",
      rescale)
    isWrong("WHY MATERIALIZED VIEW v ^city = 'a'", s"WHERE or $end", why)
    isWrong("WHY MATERIALIZED VIEW v WHERE city = 'a'^) LIMIT (1", end, why)
    isWrong("ALTER MATERIALIZED VIEW v SET ^PARTITION 4", "PARTITIONS or TBLPROPERTIES", alter)
    isWrong("ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ^a = 1", "(", alter)
    isWrong("ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('a' = 1^", ")", alter)
    isWrong("CREATE MATERIALIZED VIEW IF NOT ^EXIST v AS SELECT 1", "EXISTS", create)
    isWrong(
      "CREATE MATERIALIZED VIEW v USING orc\n  COMENT 'x' ^AS SELECT 1"
        .replace("^", "")
        .replace("COMENT", "^COMENT"),
      "PARTITIONED, CLUSTER, COMMENT, TBLPROPERTIES, DEFAULT or AS",
      create)
    isWrong("CREATE MATERIALIZED VIEW v COMMENT 'x' AS^", "a query", create)
    isWrong("CREATE MATERIALIZED VIEW v CLUSTER BY ^a AS SELECT 1", "(", create)
    isWrong(
      "EXPLAIN CREATE MATERIALIZED VIEW v COMMENT ^AS SELECT 1",
      "a text in quotes",
      "EXPLAIN ")
    isWrong("EXPLAIN CHANGELOG FORMAT ^PNG SELECT 1", "TEXT, JSON, HTML or SVG", "EXPLAIN ")
    isWrong("EXPLAIN CHANGELOG QUERY ^totals", "a text in quotes", explain)
    isWrong(
      "EXPLAIN CHANGELOG CREATE ^MATERIALISED VIEW v AS SELECT 1",
      "OR, MATERIALIZED or STREAMING",
      "EXPLAIN ")
    isWrong(
      "CREATE SAVEPOINT ^a.b OF MATERIALIZED VIEW v".replace("^a.", "a^."),
      "a name of one part",
      "CREATE SAVEPOINT s")
    // it names a folder
    Seq("../../x", "a/b", ".").foreach { name =>
      isWrong(
        s"DROP SAVEPOINT ^`$name` OF MATERIALIZED VIEW v",
        "a name of letters, digits and underscores",
        "DROP SAVEPOINT ")
    }
  }

  test("a statement that only this extension has needs its verb alone to be known") {
    val kinds = "MATERIALIZED or STREAMING"
    isWrong("VERIFY ^VIEW v", kinds, "VERIFY MATERIALIZED VIEW v")
    isWrong("VERIFY ^v", kinds, "VERIFY MATERIALIZED VIEW v")
    isWrong("VERIFY ^TABLE t", kinds, "VERIFY STREAMING TABLE v")
    isWrong("WHY ^v", "MATERIALIZED, STREAMING or a query", why)
    isWrong("WHY^", "MATERIALIZED, STREAMING or a query", why)
    isWrong("SHOW REFRESHES ^v", "OF", "SHOW REFRESHES OF [MATERIALIZED VIEW] v")
    isWrong("SHOW REFRESHES ^orders", "OF", "SHOW REFRESHES OF [MATERIALIZED VIEW] v")
    isWrong("REFRESH ^VIEW v", kinds, refresh)
    isWrong("START ^v", kinds, "START MATERIALIZED VIEW v")
    isWrong("STOP ^VIEW v", kinds, "STOP MATERIALIZED VIEW v")
    isWrong("COMPARE ^v WITH w", kinds, "COMPARE MATERIALIZED VIEW v WITH")
    isWrong("RESTORE ^VIEW v TO BATCH 1", kinds, "RESTORE MATERIALIZED VIEW v TO")
    isWrong("EVOLVE ^'a' AS SELECT 1", "CHECKPOINT", "EVOLVE CHECKPOINT 'path' INTO 'new'")
    isWrong("FORK ^'a' INTO 'b'", "CHECKPOINT", "FORK CHECKPOINT 'path'")
  }

  test("what is wrong in a query, or in a statement of Spark's, is said by Spark") {
    Seq(
      "CREATE MATERIALIZED VIEW v AS SELEC 1",
      "ALTER MATERIALIZED VIEW v AS SELEC 1",
      "EXPLAIN CREATE MATERIALIZED VIEW v AS SELEC 1",
      "EXPLAIN CHANGELOG SELEC 1",
      "EXPLAIN CHANGELOG FORMAT JSON SELEC 1",
      "EVOLVE CHECKPOINT 'a' INTO 'b' AS SELEC 1",
      "WHY SELECT 1 FRM t x y",
      "WHY MATERIALIZED VIEW v WHERE city IN",
      "SELEC 1",
      "SHOW TABELS",
      "CREATE TABEL t (id INT)",
      "CREATE OR REPLACE VEIW v AS SELECT 1",
      "DROP VEIW v",
      "REFRESH TABEL t u",
      "EXPLAIN COSTS SELECT 1",
      "ALTER TABEL t RENAME TO u",
      "DESCRIBE HISTORI t u v w",
      "").foreach { sql =>
      withClue(sql) {
        val error = intercept[ParseException](spark.sql(sql))
        assert(!error.getCondition.startsWith("CHANGELOG"))
      }
    }
  }

  test("what Spark's parser reads of a statement stays at its place") {
    Seq(
      "EXPLAIN CHANGELOG\n  SELECT 1 FROM t x y",
      "ALTER MATERIALIZED VIEW v AS SELECT 1 FROM t x y",
      "/* a\n b */ ALTER MATERIALIZED VIEW v -- c\n AS\n SELECT 1 FROM t x y",
      "EXPLAIN CREATE OR REPLACE MATERIALIZED VIEW v CLUSTER BY (a) AS SELECT 1 FROM t x y",
      "WHY MATERIALIZED VIEW `a b` WHERE 1 FROM t x y",
      "WHY SELECT 1 FROM t x y",
      "ALTER MATERIALIZED VIEW v SET TBLPROPERTIES (FROM t x y)").foreach { sql =>
      withClue(sql) {
        val error = intercept[ParseException](spark.sql(sql))
        val wrong =
          if (sql.contains("SELECT")) sql.indexOf("y", sql.indexOf("x y"))
          else sql.indexOf("FROM")
        val before = sql.substring(0, wrong)
        assert(error.start.line.contains(before.count(_ == '\n') + 1), error)
        if (sql.contains("SELECT"))
          assert(error.start.startPosition.contains(wrong - before.lastIndexOf('\n') - 1), error)
      }
    }
  }

  /** What Spark's parser is asked to read, and whether the statement is ours. */
  private def read(sql: String): (Seq[String], Boolean) = {
    var seen = Seq.empty[String]
    val plan = new StatementParser(sql, text => { seen :+= text; LocalRelation() })()
    (seen, plan.nonEmpty)
  }

  test("statements of Spark and of formats reach Spark as they are") {
    val blanks = "  -- one\n/* two /* three */ */\t"
    Seq(
      "REFRESH TABLE t",
      "REFRESH FUNCTION f",
      "REFRESH 's3://bucket'",
      "CREATE VIEW v AS SELECT 1",
      "CREATE OR REPLACE VIEW v AS SELECT 1",
      "CREATE OR REPLACE TEMPORARY VIEW materialized AS SELECT 1",
      "CREATE TABLE streaming (a INT)",
      "CREATE FLOW f AS INSERT INTO t BY NAME SELECT 1",
      "DROP TABLE t",
      "DROP VIEW IF EXISTS v",
      "DESCRIBE EXTENDED t",
      "DESC streaming",
      "DESCRIBE HISTORY t",
      "SHOW TABLES",
      "SHOW VIEWS",
      "SHOW CREATE TABLE t",
      "RESTORE TABLE t TO VERSION AS OF 1",
      "EXPLAIN SELECT 1",
      "EXPLAIN FORMATTED CREATE VIEW v AS SELECT 1",
      "ALTER VIEW v AS SELECT 1",
      "ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')",
      "WITH values AS (SELECT 1) SELECT * FROM values",
      "START 1",
      "SELECT /*+ BROADCAST(t) */ 1",
      "BEGIN SELECT 1; END",
      "").foreach { sql =>
      withClue(sql) {
        assert(read(sql) == (Nil -> false))
        assert(read(blanks + sql) == (Nil -> false))
      }
    }
    val create =
      s"${blanks}create  MATERIALIZED VIEW IDENTIFIER('v') (a COMMENT ')') -- AS\n AS SELECT ''';' ;"
    assert(read(create) == (Seq(create) -> true))
  }

  test("none of the statements by which Spark tests itself is taken for one of ours") {
    val statements = SqlTestFile.names.flatMap(SqlTestFile(_).statements)
    assert(statements.size > 1000)
    statements.foreach(sql => assert(read(sql) == (Nil -> false), sql))
  }

  test("statements of any width and length are read in little time with the default stack") {
    val columns = (1 to 10000).map(number => s"column_$number INT").mkString(", ")
    val text = "a 'word' AS `x` " * 32000
    val quoted = s"'${text.replace("'", "\\'")}'"
    val lines = "-- one of many lines\n" * 100000
    val nested = s"/* $text /* -- ' */ $text */"
    val create = "CREATE MATERIALIZED VIEW wide"
    val refresh = "REFRESH MATERIALIZED VIEW"
    val ours = Seq(
      s"$create ($columns) AS SELECT 1",
      s"$create ($columns) CLUSTER BY (column_1, `column_2`) AS SELECT 1",
      s"CREATE OR REPLACE MATERIALIZED VIEW wide COMMENT $quoted CLUSTER BY (a) AS SELECT 1 AS a",
      s"$create CLUSTER BY (${(1 to 10000).map("c" + _).mkString(",")}) AS SELECT 1",
      s"$create ${"COMMENT 'x' " * 10000} AS SELECT 1",
      s"ALTER MATERIALIZED VIEW wide AS SELECT $quoted AS text",
      s"WHY MATERIALIZED VIEW wide WHERE text = $quoted",
      s"${lines}REFRESH MATERIALIZED VIEW $nested wide",
      s"EXPLAIN CHANGELOG SELECT $quoted",
      s"$refresh `${"x``" * 10000}`",
      s"$refresh a${".a" * 250000}")
    val others = Seq(s"${lines}SELECT 1", s"$nested SELECT 1", s"SELECT $quoted", "(" * 500000)
    val wrong = Seq(
      "'" * 500001,
      "\\'" * 250000,
      "`" * 500001,
      "$a" * 250000,
      "/*" * 250000,
      "/**/" * 250000,
      "(" * 500000,
      ";" * 500000 + "x",
      "'x' " * 125000).map(garbage => s"$refresh v $garbage")
    def millisOf(sql: String): Long = {
      // other processes may take the time of the clock
      val threads = ManagementFactory.getThreadMXBean
      val began = threads.getCurrentThreadCpuTime
      scala.util.Try(read(sql))
      (threads.getCurrentThreadCpuTime - began) / 1000000
    }
    ours.foreach(sql => assert(read(sql)._2, sql.take(80)))
    others.foreach(sql => assert(read(sql) == (Nil -> false), sql.take(80)))
    wrong.filterNot(_.endsWith("/**/")).foreach { sql =>
      val condition = changelogError(read(sql)).getCondition
      assert(condition == "CHANGELOG_SYNTAX_ERROR", sql.take(80))
    }
    (ours ++ others ++ wrong).foreach { sql =>
      val millis = millisOf(sql)
      info(s"$millis ms: ${sql.take(40).replace('\n', ' ')}")
      assert(millis < 2000, sql.take(80))
    }
  }

  private def files: Seq[Path] =
    Files.list(home.resolve("docs/statements")).iterator.asScala.toSeq

  test("docs/statements.md lists every statement") {
    val stock = new SparkSqlParser()
    val pages = files.map { file =>
      Files.readAllLines(file).get(0).stripPrefix("# ") -> file.getFileName.toString
    }.sorted
    val page = Seq(
      "<!-- Generated by StatementParserSuite with SPARK_GENERATE_GOLDEN_FILES=1; do not edit. -->",
      "# Statements",
      "",
      "The SQL statements that spark-changelog adds to Spark. Each statement has a [page](#pages) with clauses, an example and",
      "errors. The [glossary](glossary.md) defines the terms.",
      "",
      "| notation | meaning |",
      "|---|---|",
      "| `[a \\| b]` | one of several, or none |",
      "| `{a \\| b}` | one of several |",
      "| `[a \\| b]…` | any number of them |",
      "| `KIND`, `KINDS` | `MATERIALIZED VIEW` or `STREAMING TABLE`, and the plural |",
      "| `v`, `w`, `table`, `database` | a name, such as `catalog.schema.v` |",
      "| `s` | a name of letters, digits and underscores |",
      "| `n` | a number |",
      "| `'text'` | a text in single or double quotes |",
      "| `deletion`, `truncation`, `sequence` | an expression |",
      "",
      "```text") ++ Statement.all.map(_.syntax).filterNot(_.endsWith("clause")) ++
      Seq("```", "", "## Pages", "") ++ pages.map { case (title, file) =>
        s"- [$title](statements/$file)"
      }
    Statement.all.foreach { statement =>
      // none is one that Spark can run
      val sql = statement.heads.head.mkString(" ") + " x"
      if (!sql.startsWith("CREATE")) intercept[ParseException](stock.parsePlan(sql): LogicalPlan)
    }
    checkGolden("docs/statements.md", page.mkString("", "\n", "\n"))
  }

  test("each statement is on one page of docs/statements") {
    val syntaxes = files.flatMap { file =>
      val blocks =
        "(?s)```text\n(.*?)```".r.findAllMatchIn(Files.readString(file)).map(_.group(1))
      blocks.next().split("\n\n").map(_.trim.replaceAll("\\s+", " "))
    }
    val known = Statement.all.map(_.syntax).filterNot(_.endsWith("clause"))
    assert(syntaxes.sorted == known.sorted)
  }
}
