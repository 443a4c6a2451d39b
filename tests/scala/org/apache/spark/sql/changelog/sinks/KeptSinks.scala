// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import java.io.File

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.{Random, Using}

import org.apache.kafka.clients.admin.{Admin, NewTopic}
import org.scalatest.exceptions.TestCanceledException

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.functions._
import org.apache.spark.sql.types._
import org.apache.spark.sql.{DataFrame, Row}

import org.apache.spark.sql.changelog.sinks.function.{BatchFunction, FunctionSink}
import org.apache.spark.sql.changelog.testing._
import org.apache.spark.sql.changelog.views.ViewCatalog
import org.apache.spark.sql.changelog.views.files.FilesSinkProvider

/** Every sink, and every format of views, by name, ready to keep a program's query. */
class KeptSinks(spark: SparkSession) {
  import KeptSinks._

  private var count = 0

  /** The servers that were asked for and can't be had here, with the reason. H2 stands for them. */
  val missing: mutable.Map[String, String] = mutable.Map.empty

  /** What keeps a query, told a key or not, in one mode or the other, as `random` says. */
  def apply(name: String, kept: KeptProgram, random: Random): KeptTarget = {
    count += 1
    val table = s"shape_$count"
    // views find their keys themselves, and of tables that tell no changes there is no stream to ask
    val (arguments, key) = if (kept.tellsChanges) keys(kept, random) else ("", None)
    if (name.contains("view")) {
      def checkpoint(view: String) =
        new File(new ViewCatalog(spark).get(Seq(view)).definition.checkpoint.toUri.getPath)
      new ViewTarget(kept, table, name.takeWhile(_ != ' '), checkpoint)
    } else {
      val rows = StructType(kept.changes(kept.session(), arguments).schema.dropRight(1))
      val fit = there(fitting(name, arguments, rows, kept))
      val sink = sinkOf(fit, table, rows)
      val told = key.map(key => sink.keyed(key.mkString(","))).getOrElse(Map.empty)
      val isInMemory = Seq("memory", "fanout").contains(fit)
      new SinkTarget(kept, arguments, sink.format, sink.options ++ told, isInMemory, sink.read)
    }
  }

  /** The same sink, or another one where it can't keep such rows. */
  private def fitting(
      name: String,
      arguments: String,
      rows: StructType,
      kept: KeptProgram): String = {
    def has(isSo: DataType => Boolean) = rows.exists(field => isSo(field.dataType))
    val isDatabase = Databases.contains(name) || name == "fanout"
    val isTopic = name.startsWith("kafka")
    // they refuse rows that change and have no key
    if ((isDatabase || isTopic) && kept.keys.isEmpty && !kept.isInsertOnly) "delta"
    else if (isDatabase && has(_.isInstanceOf[ArrayType])) "memory"
    // it knows no NaN
    else if (name == "mariadb" && has(_ == DoubleType)) "h2"
    // records without a key are there twice when a batch comes again
    else if (isTopic && kept.isInsertOnly && kept.keys.isEmpty) "files"
    else if (name == "function" && kept.keys.isEmpty && !arguments.contains("upsert"))
      "function of counts"
    // events show old rows, which mode 'upsert' does not send
    else if (name == "kafka events" && arguments.contains("upsert")) "kafka"
    else name
  }

  /** The same sink, or another one where its server can't be had. */
  private def there(name: String): String = {
    val server = name.takeWhile(_ != ' ')
    try {
      Servers.get(server).foreach(address => address())
      name
    } catch {
      case error: TestCanceledException =>
        missing(server) = error.getMessage
        "h2"
    }
  }

  private def sinkOf(name: String, table: String, rows: StructType): Sink =
    name match {
      case "memory" =>
        Sink("changelog-memory", Map("queryName" -> table), session => Seq(session.table(table)))
      case "files" =>
        val path = QuickFileSystem.temporaryDirectory()
        def newest = path
          .listFiles()
          .filter(_.getName.startsWith("batch-"))
          .maxBy(_.getName.split('-')(1).toLong)
        Sink(
          classOf[FilesSinkProvider].getName,
          Map("path" -> path.getPath, "provider" -> "parquet"),
          _ => Seq(spark.read.schema(rows).parquet(newest.getPath)))
      case "delta" =>
        val path = new File(QuickFileSystem.temporaryDirectory(), table).getPath
        Sink(
          "changelog-table",
          Map("path" -> path, "createTable" -> "true", "countRows" -> "true"),
          _ => Seq(spark.read.format("delta").load(path)))
      case "function" | "function of counts" =>
        val kept = new KeptFunction(spark, rows, if (name == "function") "upsert" else "retract")
        FunctionSink.register(table, kept)
        Sink("changelog-function", Map("function" -> table), _ => Seq(kept.read))
      case "kafka" => topic(table, rows, asEvents = false)
      case "kafka events" => topic(table, rows, asEvents = true)
      case "fanout" =>
        val parts = Seq("a" -> database("h2", table, rows), "b" -> sinkOf("memory", table, rows))
        val options = parts.flatMap { case (part, sink) =>
          (sink.options + ("format" -> sink.format)).map { case (option, value) =>
            s"$part.$option" -> value
          }
        }
        Sink(
          "changelog-fanout",
          options.toMap ++ Map("sinks" -> "a,b", "queryName" -> table),
          session => parts.flatMap(_._2.read(session)),
          key => Map("a.key" -> key, "b.key" -> key))
      case _ => database(name, table, rows)
    }

  private def database(name: String, table: String, rows: StructType): Sink = {
    val address = Databases(name)()
    val options = Seq("url", "user", "password").map(key => key -> address(key)).toMap
    Sink(
      "changelog-jdbc",
      options ++ Map("dbtable" -> table, "createTable" -> "true"),
      _ => Seq(DatabaseTable.read(spark, options ++ daysAsText(name, rows), table)))
  }

  /** H2 gives days before 1582 in another calendar than the one in which Spark reads them, but not as text. */
  private def daysAsText(database: String, rows: StructType): Map[String, String] = {
    val days = rows.filter(_.dataType == DateType).map(day => s"`${day.name}` STRING")
    if (database != "h2" || days.isEmpty) Map.empty
    else Map("customSchema" -> days.mkString(", "))
  }

  /**
   * A topic read as a table: its newest record of each key, and those without one. A record is the row,
   * or an event of Debezium's format, which holds it, until the row goes.
   */
  private def topic(table: String, rows: StructType, asEvents: Boolean): Sink = {
    val servers = Services.kafka()("bootstrap")
    val kafka = Map("kafka.bootstrap.servers" -> servers)
    Using.resource(Admin.create(java.util.Map.of[String, AnyRef]("bootstrap.servers", servers))) {
      admin =>
        val topic = new NewTopic(table, 1, 1.toShort)
        admin.createTopics(java.util.List.of(topic)).all().get()
    }
    def records = spark.read
      .format("kafka")
      .options(kafka)
      .option("subscribe", table)
      .load()
      .selectExpr("CAST(key AS STRING) AS k", "CAST(value AS STRING) AS v", "partition", "offset")
    val schema = if (asEvents) new StructType().add("after", rows) else rows
    def read: DataFrame = {
      val newest = records
        .where("k IS NOT NULL")
        .groupBy("k")
        .agg(max_by(struct("v"), struct("partition", "offset")).as("newest"))
        .selectExpr("newest.v AS v")
      val values = newest.union(records.where("k IS NULL").select("v")).where("v IS NOT NULL")
      val read = values.select(from_json(col("v"), schema).as("row"))
      if (asEvents) read.where("row.after IS NOT NULL").select("row.after.*")
      else read.select("row.*")
    }
    val format = if (asEvents) Map("value.format" -> "debezium-json") else Map.empty
    Sink("changelog-kafka", kafka ++ format + ("topic" -> table), _ => Seq(read))
  }

  /** Arguments of `to_changelog`, and the key that the sink is told, if any. */
  private def keys(kept: KeptProgram, random: Random): (String, Option[Seq[String]]) = {
    val known = kept.keys.filter(_.nonEmpty)
    def some =
      if (known.isEmpty || random.nextBoolean()) None else Some(known(random.nextInt(known.size)))
    if (known.isEmpty || random.nextBoolean()) ("", some)
    else {
      val told = some
      val argument = told.map(_.mkString(", key => array('", "', '", "')")).getOrElse("")
      (s", mode => 'upsert'$argument", if (random.nextInt(4) == 0) some else None)
    }
  }
}

/**
 * A sink of a user. Keeps the rows in memory, as rows by key or as counts of equal rows, and writes a
 * batch once.
 */
private class KeptFunction(spark: SparkSession, schema: StructType, override val accepts: String)
    extends BatchFunction {
  private var rows = Seq.empty[Row]
  private var written = Set.empty[(String, Long)]

  def read: DataFrame = spark.createDataFrame(rows.asJava, schema)

  override def write(
      queryId: String,
      batchId: Long,
      key: java.util.List[String],
      batch: DataFrame): Unit =
    if (!written((queryId, batchId))) {
      rows = if (accepts == "upsert") replaced(key.asScala.toSeq, batch) else counted(batch)
      written += ((queryId, batchId))
    }

  private def replaced(key: Seq[String], batch: DataFrame): Seq[Row] = {
    val before = read
    def quoted(name: String) = s"`${name.replace("`", "``")}`"
    val isSame = key.map(name => before(quoted(name)) <=> batch(quoted(name)))
    val others = before.join(batch, isSame.reduceOption(_ && _).getOrElse(lit(true)), "left_anti")
    val current = batch.where(!col(FunctionSink.Deleted)).drop(FunctionSink.Deleted)
    others.collect().toSeq ++ current.collect()
  }

  private def counted(batch: DataFrame): Seq[Row] = {
    val signed = rows.map(_ -> 1L) ++ batch.collect().map { row =>
      Row.fromSeq(row.toSeq.init) -> row.getLong(row.size - 1)
    }
    signed
      .groupMapReduce(_._1.toString)(identity)((a, b) => (a._1, a._2 + b._2))
      .values
      .toSeq
      .flatMap { case (row, count) => Seq.fill(count.toInt)(row) }
  }
}

object KeptSinks {
  val Names: Seq[String] = Seq(
    "memory",
    "files",
    "delta",
    "h2",
    "h2",
    "postgres",
    "mariadb",
    "kafka",
    "fanout",
    "parquet view",
    "delta view")

  private val Servers: Map[String, () => Map[String, String]] = Map(
    "postgres" -> (() => Services.postgres()),
    "mariadb" -> (() => Services.mariadb()),
    "kafka" -> (() => Services.kafka()))

  private val Databases: Map[String, () => Map[String, String]] = Servers - "kafka" +
    ("h2" -> (() =>
      Map("url" -> "jdbc:h2:mem:shapes;DB_CLOSE_DELAY=-1", "user" -> "t", "password" -> "p")))

  /**
   * @param keyed
   *   the options that tell a key
   */
  private case class Sink(
      format: String,
      options: Map[String, String],
      read: SparkSession => Seq[DataFrame],
      keyed: String => Map[String, String] = key => Map("key" -> key))
}
