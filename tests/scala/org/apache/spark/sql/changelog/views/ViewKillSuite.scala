// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.nio.file.{Files, Path}

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.functions._
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.lifetime.{
  ArrivingTable, OperatorQuery, ReadBatches, RunningQueries
}
import org.apache.spark.sql.changelog.sinks.KilledWriter
import org.apache.spark.sql.changelog.testing._

/**
 * Views show what batch Spark gives, whatever their query, and however often the process that keeps them
 * is killed.
 */
class ViewKillSuite extends AnyFunSuite with ChangelogSession {
  private val KillsOfOne = 2
  private lazy val FilesAndDelta = Seq("delta", "parquet")
  private val latestKillMillis = if (KilledWriter.isLong) 25000 else 8000
  private val random = new Random(KilledWriter.seed)
  private lazy val session = spark.newSession()

  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.DeltaConf)

  /**
   * Views never wait until a row is final, and keep none that leaves as time passes; nor are there tables for
   * them that are no SQL.
   */
  private val queries = OperatorQuery.all
    .filter(query => query.ttl.isEmpty && !query.sql.contains("now()"))
    .filter(query => !query.sql.contains("mapped_") && !query.sql.contains("(names)"))
    .map(_.copy(mode = "retract", passed = None))

  /** Those over tables, and not over changes. */
  private val ofTables =
    queries.filterNot(_.sql.matches("(?s).*(events|timed|newest|unique)_[tu].*"))

  if (KilledWriter.isLong) {
    test("views in Delta and in Parquet, and views over views")(runOverChanges())
    if (ChangelogSession.isSpark41)
      test("views in Iceberg, and views over views")(runOverChanges(Seq("iceberg")))
    FollowedRows.all.foreach { way =>
      test(s"views over tables followed by $way")(runOverRows(way))
    }
  } else
    test("views over changes, or over Delta tables") {
      if (random.nextBoolean()) runOverChanges()
      else runOverRows(FollowedRows.delta(random.nextInt(FollowedRows.delta.size)))
    }

  private def runOverChanges(formats: Seq[String] = FilesAndDelta): Unit =
    run(queries, "", formats)(new OverChanges(_, _))

  private def runOverRows(way: FollowedRows): Unit =
    run(ofTables, s" over $way", FilesAndDelta)(new OverRows(_, _, way))

  private def run(queries: Seq[OperatorQuery], what: String, formats: Seq[String])(
      killed: (OperatorQuery, String) => Killed): Unit = {
    ChangelogSession.Quick.foreach { case (key, value) => session.conf.set(key, value) }
    val drawnFormats = Iterator.continually(random.shuffle(formats)).flatten
    val drawn = Iterator.continually(random.shuffle(queries)).flatten
    val rounds = KilledWriter.rounds(few = 1)
    for (first <- 1 to rounds by KillsOfOne) {
      val (query, format) = (drawn.next(), drawnFormats.next())
      val kills = math.min(KillsOfOne, rounds - first + 1)
      val where = s"'${query.name}'$what in $format, kill $first and on of $rounds"
      withClue(s"$where, CHANGELOG_KILL_SEED=${KilledWriter.seed}: ") {
        killed(query, format).run(kills)
      }
      note(s"$kills kills of '${query.name}'$what in $format")
    }
  }

  /**
   * A view of a query, and one of the other format over it.
   *
   * @param read
   *   what a process reads of the tables
   * @param properties
   *   further clauses of the statement that makes the first view
   */
  private abstract class Killed(
      query: OperatorQuery,
      format: String,
      read: String,
      properties: String = "") {
    protected val home: Path = QuickFileSystem.temporaryDirectory().toPath
    protected val feeds: Path = Files.createDirectory(home.resolve("feeds"))
    protected val tables: Map[String, ArrivingTable] = ArrivingTable.Names
      .map(name => name -> new ArrivingTable(name, feeds, random))
      .toMap
    private val (other, folder) = format match {
      case "delta" => ("parquet", "")
      case "iceberg" => ("iceberg", "ice.views.")
      case _ => ("delta", "")
    }
    protected val schema: StructType = new ReadBatches(session, query, home, tables).schema
    private val counts =
      s"SELECT ${schema.head.name} AS k, count(*) AS n FROM rows GROUP BY ${schema.head.name}"
    protected val countsSchema: StructType =
      new StructType().add("k", schema.head.dataType).add("n", "BIGINT")
    // Iceberg's own stream of a table leaves out changes of rows
    private val changes = if (folder.isEmpty) "STREAM first" else s"${folder}first"
    private val views = Seq(
      statement("first", s"$format $properties", query.sql),
      statement("second", other, counts.replace("rows", changes)))

    // the catalog that Spark's installation brings, which the tests' own jars lack
    private val writers =
      new ChildProcess(ViewWriter, home, Seq(s"${RunningQueries.sparkHome}/jars/*"))

    private val settings = ChildProcess.session(home) ++ ChangelogSession.DeltaConf ++
      FollowedRows.catalog("ice", feeds) +
      ("spark.sql.warehouse.dir" -> home.resolve("warehouse").toString)

    private def statement(name: String, format: String, query: String): (String, String) =
      s"$folder$name" ->
        s"CREATE MATERIALIZED VIEW IF NOT EXISTS $folder$name USING $format AS $query"

    /** How a process may keep the views current. */
    protected def ways: Seq[String] = Seq("refresh", "full", "run")

    /** Lets processes read what the tables hold now. */
    protected def arrive(): Unit = ()

    /** Each view that is shown holds the rows of some batch, the first those of the last one written. */
    protected def check(shown: Map[String, Seq[String]]): Unit

    /** They hold the rows of all there is. */
    protected def checkLast(shown: Map[String, Seq[String]]): Unit

    def run(kills: Int): Unit = {
      for (_ <- 1 to kills) {
        tables.values.foreach(table => (0 to random.nextInt(2)).foreach(_ => table.add()))
        arrive()
        val process = start(ways(random.nextInt(ways.size)))
        check(told(process, "started"))
        Thread.sleep(random.nextInt(latestKillMillis).toLong)
        if (!process.isAlive) assert(process.exitValue() == 0, writers.said)
        process.destroyForcibly().waitFor()
      }
      tables.values.foreach(_.add())
      arrive()
      val last = start("refresh")
      check(told(last, "started"))
      checkLast(told(last, "finished"))
      last.waitFor()
    }

    private def start(how: String): Process = {
      val statements = views.flatMap { case (name, statement) => Seq(name, statement) }
      writers.start(Seq(ChildProcess.line(settings), how, feeds.toString, read) ++ statements: _*)
    }

    /** What a process tells until it says `word`: the rows of each view there is. */
    private def told(process: Process, word: String): Map[String, Seq[String]] = {
      val lines =
        Iterator.continually(process.inputReader().readLine()).takeWhile(_ != word).map { line =>
          assert(line != null, s"it did not get to '$word':\n${writers.said}")
          assert(line.contains(' '), s"'$line' is no row, before '$word':\n${writers.said}")
          val Array(name, row) = line.split(" ", 2)
          name -> row
        }
      lines.toSeq.groupMap(_._1)(_._2)
    }

    protected def counted(all: Seq[Row]): RowMultiset = {
      session.createDataFrame(all.asJava, schema).createOrReplaceTempView("rows")
      RowMultiset.of(session.sql(counts).collect())
    }

    protected def rows(
        shown: Map[String, Seq[String]],
        view: String,
        schema: StructType): RowMultiset = {
      import session.implicits._
      val json =
        shown.getOrElse(view, Nil).toDF("json").select(from_json(col("json"), schema).as("row"))
      RowMultiset.of(json.select("row.*").collect())
    }
  }

  /** The tables come as files of changes; the checkpoint tells which of them a batch has read. */
  private class OverChanges(query: OperatorQuery, format: String)
      extends Killed(query, format, "changes") {

    override protected def check(shown: Map[String, Seq[String]]): Unit = {
      val batches = batchesOf(shown)
      val results = (0L to batches.lastBegun.getOrElse(-1L)).map(batches.expected)
      val written = batches.lastCommitted.getOrElse(-1L).toInt
      val none = RowMultiset.of(Nil)
      if (results.forall(_.isDefined)) {
        val sets = none +: results.map(rows => RowMultiset.of(rows.get))
        val found = rows(shown, "first", schema)
        assert(sets.drop(written + 1).contains(found), s"of no batch since $written:\n$found")
        val counts = rows(shown, "second", countsSchema)
        val counted = none +: results.map(rows => this.counted(rows.get))
        assert(counted.contains(counts), s"of no batch:\n$counts")
      }
    }

    override protected def checkLast(shown: Map[String, Seq[String]]): Unit = {
      check(shown)
      val batches = batchesOf(shown)
      val all = batches.expected(batches.lastCommitted.get).get
      assert(rows(shown, "first", schema) == RowMultiset.of(all))
      assert(rows(shown, "second", countsSchema) == counted(all))
      tables.foreach { case (name, table) =>
        assert(
          Set(0, table.size).contains(batches.read(name)),
          s"not all files of $name were read")
      }
    }

    private def batchesOf(shown: Map[String, Seq[String]]): ReadBatches = {
      val checkpoint =
        shown
          .getOrElse("checkpoint", Nil)
          .find(_.startsWith("first "))
          .map(_.drop("first ".length))
      new ReadBatches(session, query, Path.of(checkpoint.getOrElse(home.toString)), tables)
    }
  }

  /** The tables hold all rows, and others while no process runs. */
  private class OverRows(query: OperatorQuery, format: String, way: FollowedRows)
      extends Killed(query, format, way.format, way.ofView) {

    override protected def ways: Seq[String] =
      if (way.tellsAll) super.ways else super.ways.filterNot(_ == "run")

    /** The query's rows each time that processes could read others, from when there were none. */
    private val results = mutable.ArrayBuffer(Seq.empty[Row])

    /** Views were last seen with rows of that time, or later ones. */
    private var seen = 0

    override protected def arrive(): Unit = {
      tables.foreach { case (name, table) =>
        table.read(session, table.size, Seq.fill(table.size + 1)(0L), since = None)
        way.write(session, name, feeds.resolve(s"rows/$name"))
      }
      results += session.sql(query.sql).collect().toSeq
    }

    override protected def check(shown: Map[String, Seq[String]]): Unit = {
      val found = rows(shown, "first", schema)
      val place = results.indexWhere(rows => RowMultiset.of(rows) == found, from = seen)
      assert(place >= 0, s"of no time since $seen:\n$found")
      seen = place
      val counts = rows(shown, "second", countsSchema)
      assert(
        counts == RowMultiset.of(Nil) || results.exists(counted(_) == counts),
        s"of no time:\n$counts")
    }

    override protected def checkLast(shown: Map[String, Seq[String]]): Unit = {
      assert(rows(shown, "first", schema) == RowMultiset.of(results.last))
      assert(rows(shown, "second", countsSchema) == counted(results.last))
    }
  }
}

/**
 * How tables that hold all rows are followed, and written so that they can be.
 *
 * @param ofView
 *   what the statement that makes a view says of it
 */
private sealed abstract class FollowedRows(val format: String, val ofView: String) {

  /** Lets the table at a place hold the rows that a session knows by a name. */
  def write(session: SparkSession, rows: String, place: Path): Unit

  /** Whether all that becomes of such a table is told, so that nothing needs to be computed anew. */
  def tellsAll: Boolean = true
}

private object FollowedRows {

  /** Tables of files, all of which are replaced each time. */
  private sealed abstract class Replaced(ofView: String) extends FollowedRows("parquet", ofView) {
    override def write(session: SparkSession, rows: String, place: Path): Unit =
      session.table(rows).coalesce(1).write.mode("overwrite").parquet(place.toString)
  }

  private case object Copies extends Replaced("TBLPROPERTIES ('changelog.follow' = 'copies')") {
    override def toString: String = "copies"
  }

  private case object Listed extends Replaced(ofView = "") {
    override def tellsAll: Boolean = false

    override def toString: String = "lists of files"
  }

  private final case class Delta(name: String, properties: Map[String, String])
      extends FollowedRows("delta", "") {
    override def write(session: SparkSession, rows: String, place: Path): Unit = {
      val table = s"delta.`$place`"
      val all = properties.map { case (key, value) => s"'$key' = '$value'" }.mkString(", ")
      session.sql(
        s"CREATE TABLE IF NOT EXISTS $table (${ArrivingTable.Columns}) USING delta TBLPROPERTIES ($all)")
      merge(session, table, rows)
    }

    override def toString: String = name
  }

  private final case class Iceberg(mode: String, version: Int)
      extends FollowedRows("iceberg", "") {
    override def write(session: SparkSession, rows: String, place: Path): Unit = {
      val feeds = place.getParent.getParent
      // a catalog for each folder, as a session keeps its catalogs
      val name = s"ice_${Integer.toHexString(feeds.hashCode)}"
      catalog(name, feeds).foreach { case (key, value) => session.conf.set(key, value) }
      val table = s"$name.rows.${place.getFileName}"
      session.sql(
        s"CREATE TABLE IF NOT EXISTS $table (${ArrivingTable.Columns}) USING iceberg TBLPROPERTIES " +
          s"('format-version' = '$version', 'write.merge.mode' = '$mode')")
      merge(session, table, rows)
    }

    override def toString: String = s"snapshots of Iceberg, $mode, version $version"
  }

  /** The settings of a catalog with the Iceberg tables in a folder. */
  def catalog(name: String, feeds: Path): Map[String, String] = Map(
    s"spark.sql.catalog.$name" -> classOf[IcebergCatalog].getName,
    s"spark.sql.catalog.$name.home" -> feeds.toString)

  private def merge(session: SparkSession, table: String, rows: String): Unit = {
    val differs = StructType
      .fromDDL(ArrivingTable.Columns)
      .names
      .map(column => s"NOT (held.$column <=> came.$column)")
      .mkString(" OR ")
    session.sql(s"""MERGE INTO $table held USING $rows came ON held.id = came.id
                   |WHEN MATCHED AND ($differs) THEN UPDATE SET *
                   |WHEN NOT MATCHED THEN INSERT *
                   |WHEN NOT MATCHED BY SOURCE THEN DELETE""".stripMargin)
    ()
  }

  val delta: Seq[FollowedRows] = Seq(
    Delta("a change feed", Map("delta.enableChangeDataFeed" -> "true")),
    Delta("files", Map("delta.enableDeletionVectors" -> "false")),
    Delta("deletion vectors", Map("delta.enableDeletionVectors" -> "true")))

  /** Iceberg has a release for Spark 4.1 only. */
  private val iceberg =
    if (ChangelogSession.isSpark41) Seq(Iceberg("copy-on-write", 2), Iceberg("merge-on-read", 3))
    else Nil

  val all: Seq[FollowedRows] = Seq(Copies, Listed) ++ delta ++ iceberg
}
