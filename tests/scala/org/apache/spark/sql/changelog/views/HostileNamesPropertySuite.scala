// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.File
import java.sql.SQLException

import scala.util.{Random, Try}

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.{DataFrame, Row}

import org.apache.spark.sql.changelog.sinks.jdbc.DatabaseSyntax
import org.apache.spark.sql.changelog.testing.HostileNames.{draw, quoted, word}
import org.apache.spark.sql.changelog.testing._

/**
 * Names with quotes, dots, comment marks and statements in them, of databases, tables, columns, keys, views,
 * savepoints and topics, in each statement, sink and source. They work, or are refused by a named condition before
 * anything is written.
 */
class HostileNamesPropertySuite extends SeedSuite(numSeeds = 24) with KafkaTopics {
  import HostileNamesPropertySuite._

  private var numTopics = 0
  private val warehouse = QuickFileSystem.temporaryDirectory()

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    ChangelogSession.DeltaConf ++ ChangelogSession.Quick ++ Map(
      "spark.sql.warehouse.dir" -> warehouse.getPath,
      // Spark would put a variable in place of ${x} in a query's text
      "spark.sql.variable.substitute" -> "false"))

  override protected def checkSeed(seed: Long): Unit = {
    val random = new Random(seed * Mixed)
    run("CREATE TABLE IF NOT EXISTS default.victim USING parquet AS SELECT 1 AS a")
    val told = new StringBuilder(s"seed $seed")
    try {
      if (random.nextBoolean()) checkViews(random, told) else checkSink(random, told)
      assert(run("SELECT * FROM default.victim") == Seq(Row(1)), "the victim")
    } catch {
      case error: Throwable =>
        val cause = Iterator.iterate(error)(_.getCause).takeWhile(_ != null).toSeq.last
        val ours = cause.getStackTrace.filter(_.getClassName.contains(".changelog.")).take(5)
        throw new AssertionError(s"$told\n$cause${ours.map("\n  at " + _).mkString}", error)
    } finally {
      run("USE default")
      spark.sessionState.catalog.listDatabases().filter(_ != "default").foreach { name =>
        run(s"DROP DATABASE ${quoted(name)} CASCADE")
      }
      spark.sessionState.catalog.listTables("default").filter(_.table != "victim").foreach {
        table => run(s"DROP TABLE ${table.quotedString}")
      }
    }
  }

  private def run(sql: String): Seq[Row] = spark.sql(sql).collect().toSeq

  /** Whether `body` is done; else it has been refused by a condition, as a reason says. */
  private def isDone(told: StringBuilder)(body: => Any): Boolean =
    try {
      body
      true
    } catch {
      case error: Throwable =>
        val conditions = Iterator.iterate(error)(_.getCause).takeWhile(_ != null).collect {
          case named: SparkThrowable => named.getCondition
        }
        told.append(s"\n  refused: ${error.getMessage.linesIterator.nextOption().orNull}")
        if (!conditions.exists(Refusals) && !isOfDatabase(error)) throw error
        false
    }

  /** Every statement about a view of hostile names. */
  private def checkViews(random: Random, told: StringBuilder): Unit = {
    def done(sql: String): Boolean = {
      told.append(s"\n$sql")
      isDone(told)(run(sql))
    }
    def must(sql: String): Seq[Row] = {
      told.append(s"\n$sql")
      run(sql)
    }
    def plainly = random.nextInt(5) > 0
    def named(others: String*) =
      if (!plainly) draw(random, others: _*)
      else Iterator.continually(word(random)).find(name => !others.contains(name)).get
    val database = named()
    if (done(s"CREATE DATABASE ${quoted(database)}")) must(s"USE ${quoted(database)}")
    val table = named()
    val (key, value, alias) = {
      val key = draw(random)
      val value = draw(random, key)
      (quoted(key), quoted(value), quoted(draw(random, key, value)))
    }
    val mapping = "TBLPROPERTIES (delta.columnMapping.mode = 'name')"
    val (tableForm, viewForm) = random.nextInt(3) match {
      case 0 => ("USING parquet", "USING parquet")
      case 1 => (s"USING delta $mapping", "USING delta")
      case _ => (s"USING delta $mapping", "USING parquet")
    }
    val made = s"CREATE TABLE ${quoted(table)} ($key INT, $value STRING) $tableForm"
    val source = if (done(made)) quoted(table) else "t"
    if (source == "t" && !done(s"CREATE TABLE t ($key INT, $value STRING) $tableForm")) return
    must(s"INSERT INTO $source VALUES (1, 'a'), (2, 'b')")
    val query = random.nextInt(4) match {
      case 0 => s"SELECT $key, $value FROM $source"
      case 1 => s"SELECT $value AS $alias, count(*) AS n FROM $source GROUP BY $value"
      case 2 => s"SELECT $alias.$key, $alias.$value FROM $source AS $alias WHERE $alias.$key > 0"
      case _ => s"WITH $alias AS (SELECT * FROM $source) SELECT DISTINCT $value FROM $alias"
    }
    val first = s"`${run(query).head.schema.fieldNames.head.replace("`", "``")}`"
    val view = named(table)
    val before = files()
    must(s"EXPLAIN CREATE MATERIALIZED VIEW ${quoted(view)} $viewForm AS $query")
    val clause = random.nextInt(3) match {
      case 0 if viewForm.contains("delta") => s"CLUSTER BY ($first)"
      case 1 => s"COMMENT '${draw(random).replace("\\", "\\\\").replace("'", "\\'")}'"
      case _ => ""
    }
    if (!done(s"CREATE MATERIALIZED VIEW ${quoted(view)} $viewForm $clause AS $query")) {
      assert(files() == before, "files after a statement that was refused")
      assert(run("SHOW MATERIALIZED VIEWS").isEmpty && Try(spark.table(quoted(view))).isFailure)
      return
    }
    def compare(query: String, name: String = quoted(view)): Unit = {
      assert(RowMultiset.of(run(s"SELECT * FROM $name")) == RowMultiset.of(run(query)))
      assert(must(s"VERIFY MATERIALIZED VIEW $name").isEmpty)
    }
    compare(query)
    val v = s"MATERIALIZED VIEW ${quoted(view)}"
    must(s"INSERT INTO $source VALUES (3, 'b'), (4, NULL)")
    must(s"REFRESH $v")
    compare(query)
    val saved = word(random)
    must(s"CREATE SAVEPOINT ${quoted(saved)} OF $v")
    must(s"WHY $v WHERE $first IS NOT NULL")
    must(s"DESCRIBE EXTENDED $v")
    must(s"SHOW MATERIALIZED VIEWS IN ${quoted(spark.sessionState.catalog.getCurrentDatabase)}")
    assert(must(s"SHOW MATERIALIZED VIEWS '${view.take(3)}*'").nonEmpty)
    assert(must(s"SHOW REFRESHES OF ${quoted(view)}").size == 2)
    val other = s"SELECT $value AS $alias, max($key) AS m FROM $source GROUP BY $value"
    must(s"EXPLAIN ALTER $v AS $other")
    if (done(s"ALTER $v AS $other")) {
      compare(other)
      must(s"INSERT INTO $source VALUES (5, 'c')")
      must(s"REFRESH $v FULL")
      compare(other)
    }
    must(s"RESTORE $v TO SAVEPOINT ${quoted(saved)}")
    val renamed = named(table, view)
    if (done(s"ALTER $v RENAME TO ${quoted(renamed)}"))
      must(s"ALTER MATERIALIZED VIEW ${quoted(renamed)} RENAME TO ${quoted(view)}")
    must(s"CREATE MATERIALIZED VIEW forked FROM ${quoted(view)} AT SAVEPOINT ${quoted(saved)}")
    must(s"COMPARE MATERIALIZED VIEW forked WITH ${quoted(view)}")
    must(s"ALTER $v SWAP WITH forked")
    must(s"REFRESH $v")
    compare(query)
    must(s"DROP SAVEPOINT ${quoted(saved)} OF $v")
    Seq("forked", quoted(view)).foreach(name => must(s"DROP MATERIALIZED VIEW $name"))
  }

  private def files(): Set[String] = {
    def below(folder: File): Seq[String] =
      Option(folder.listFiles()).toSeq.flatten.flatMap(file => file.getPath +: below(file))
    below(warehouse).toSet
  }

  /** A query with hostile columns and keys, kept by a sink with a hostile name. */
  private def checkSink(random: Random, told: StringBuilder): Unit = {
    val key = draw(random)
    val value = draw(random, key)
    val name = draw(random)
    val upsert = random.nextBoolean()
    // the table of the test knows an upsert feed's key by its very name only
    val keyed = Seq(if (upsert || random.nextBoolean()) key else quoted(key))
    val columns = s"${quoted(key)} INT, ${quoted(value)} STRING"
    val feed = Feed("rides", columns, keyed, upsert = upsert)
    told.append(s"\n$feed")
    val sql = s"SELECT ${quoted(key)}, ${quoted(value)} FROM rides"
    val sink = Sinks(random.nextInt(Sinks.size))
    val (format, options, read) =
      if (sink == "kafka") topicOf(feed, key) else sinkOf(sink, name)
    val named = if (random.nextBoolean()) Map("key" -> quoted(key)) else Map.empty
    told.append(s"\n$sink $name")
    // a restart, and a batch that comes again
    val query = new KeptQuery(spark, feed, sql, read().select(quoted(key), quoted(value)))
    val all = options ++ named
    def again(): Unit = {
      query.stop()
      query.start(format, all)
      ()
    }
    try
      if (isDone(told) {
          query.start(format, all)
          query.add("+I 1 a", "+I 2 b")
          query.processAll()
        }) {
        query.compare()
        query.check(if (feed.upsert) "+U 1 c" else "-D 2 b")
        // a table in memory is of one query
        if (!Seq("memory", "fanout").contains(sink)) {
          query.forgetLastBatch()
          again()
          query.processAll()
          query.compare()
        }
      } else assert(Try(read().collect()).isFailure, "something was written")
    finally query.stop()
  }

  /** A topic, whose records are read as a table by the columns of `feed`. */
  private def topicOf(feed: Feed, key: String): (String, Map[String, String], () => DataFrame) = {
    numTopics += 1
    val topic = s"hostile_$numTopics"
    createTopic(topic)
    val servers = Map("kafka.bootstrap.servers" -> Services.kafka()("bootstrap"))
    def read: DataFrame = {
      batch(topic).createOrReplaceTempView("records")
      val Seq(columns, named) = Seq(feed.columns, key).map(Literal(_).sql)
      spark.sql(s"SELECT * FROM from_upsert_kafka(TABLE(records), $columns, $named)")
    }
    ("changelog-kafka", servers + ("topic" -> topic), () => read)
  }

  private def sinkOf(sink: String, name: String): (String, Map[String, String], () => DataFrame) =
    sink match {
      case "memory" =>
        ("changelog-memory", Map("queryName" -> name), () => spark.table(quoted(name)))
      case "table" =>
        val path = new File(QuickFileSystem.temporaryDirectory(), name).getPath
        (
          "changelog-table",
          Map("path" -> path, "createTable" -> "true"),
          () => spark.read.format("delta").load(path))
      case "fanout" =>
        val parts = Seq("a" -> sinkOf("memory", name), "b" -> sinkOf("h2", name))
        val options = parts.flatMap { case (part, (format, options, _)) =>
          (options + ("format" -> format)).map { case (option, value) =>
            s"$part.$option" -> value
          }
        }
        val all = options.toMap ++ Map("sinks" -> "a,b", "queryName" -> name)
        ("changelog-fanout", all, parts.last._2._3)
      case database =>
        val address = database match {
          case "postgres" => Services.postgres()
          case "mariadb" => Services.mariadb()
          case "h2" =>
            Map("url" -> "jdbc:h2:mem:names;DB_CLOSE_DELAY=-1", "user" -> "t", "password" -> "p")
        }
        val options = Seq("url", "user", "password").map(key => key -> address(key)).toMap
        val table = DatabaseSyntax(options("url")).quote(name)
        Try(DatabaseTable.execute(options, s"DROP TABLE $table"))
        (
          "changelog-jdbc",
          options ++ Map("dbtable" -> table, "createTable" -> "true"),
          () => DatabaseTable.read(spark, options, table))
    }
}

private object HostileNamesPropertySuite {

  /** Seeds that follow one another draw the same at first. */
  private val Mixed = 0x9e3779b97f4a7c15L
  private val Sinks = Seq("memory", "table", "h2", "postgres", "mariadb", "kafka", "fanout")

  /** Whether a database has refused a name. */
  private def isOfDatabase(error: Throwable): Boolean =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).exists(_.isInstanceOf[SQLException])

  private val Refusals = Set(
    "CHANGELOG_SINK_NAME_TOO_LONG",
    "CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED",
    "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
    // as of a table called ../
    "DELTA_TABLE_NOT_FOUND",
    // of a database
    "INVALID_ATTRIBUTE_NAME_SYNTAX",
    "INVALID_SCHEMA_OR_RELATION_NAME")
}
