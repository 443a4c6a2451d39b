// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicInteger

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.{FSDataInputStream, FileStatus, Path}
import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.scheduler.{
  SparkListener, SparkListenerJobStart, SparkListenerStageCompleted
}
import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.{Identifier, Table}
import org.apache.spark.sql.delta.catalog.DeltaCatalog

import org.apache.spark.sql.changelog.testing._

/** A statement about a view looks each table up a fixed number of times, and runs few jobs. */
class RefreshLookupsSuite extends AnyFunSuite with ViewSession with BeforeAndAfterEach {

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    ChangelogSession.DeltaConf ++ ChangelogSession.Quick ++ Map(
      "spark.sql.warehouse.dir" -> warehouse.getPath,
      "fs.file.impl" -> classOf[CountingFileSystem].getName,
      "fs.file.impl.disable.cache" -> "true",
      "spark.sql.catalog.spark_catalog" -> classOf[CountingCatalog].getName))

  private val query =
    "SELECT c.name, count(*) AS n FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.name"

  override def beforeEach(): Unit = {
    val made = "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    run(s"CREATE TABLE customers $made AS SELECT id, concat('c', id) AS name FROM range(9)")
    run(s"CREATE TABLE orders $made AS SELECT id, id % 9 AS customer FROM range(100)")
  }

  override def afterEach(): Unit = {
    run("DROP MATERIALIZED VIEW IF EXISTS v")
    Seq("orders", "customers").foreach(name => run(s"DROP TABLE $name"))
  }

  /** Returns how often the statement looks up each table. */
  private def lookups(statement: String): Map[String, Int] =
    counted(CountingCatalog.counts, statement)

  /** Returns what is counted while the statement runs. */
  private def counted(
      counts: ConcurrentHashMap[String, AtomicInteger],
      statement: String): Map[String, Int] = {
    counts.clear()
    run(statement)
    counts.asScala.toMap.map { case (name, count) => name -> count.get }
  }

  /** Returns the descriptions of the statement's jobs, and the number of shuffled rows. */
  private def jobs(statement: String): (Seq[String], Long) = {
    val context = spark.sparkContext
    val found = mutable.Buffer.empty[String]
    var shuffled = 0L
    val listener = new SparkListener {
      override def onJobStart(job: SparkListenerJobStart): Unit = {
        val description = Option(job.properties.getProperty("spark.job.description"))
        found += s"${description.getOrElse("")}: ${job.stageInfos.map(_.numTasks).mkString(", ")} tasks"
      }

      override def onStageCompleted(stage: SparkListenerStageCompleted): Unit =
        shuffled += stage.stageInfo.taskMetrics.shuffleWriteMetrics.recordsWritten
    }
    context.listenerBus.waitUntilEmpty()
    context.addSparkListener(listener)
    try {
      run(statement)
      context.listenerBus.waitUntilEmpty()
    } finally context.removeSparkListener(listener)
    (found.toSeq, shuffled)
  }

  private def change(turn: Int): Unit = {
    run(s"UPDATE orders SET customer = (customer + 1) % 9 WHERE id % 20 = $turn")
    run(s"UPDATE customers SET name = concat(name, '-') WHERE id = $turn")
  }

  private def check(): Unit = {
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(query)))
    assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
  }

  for (format <- Seq("delta", "parquet")) test(s"lookups of the tables of a view in $format") {
    def ofTables(found: Map[String, Int]) =
      Seq("orders", "customers").map(found.getOrElse(_, 0))
    val created = lookups(s"CREATE MATERIALIZED VIEW v USING $format AS $query")
    change(1)
    val first = lookups("REFRESH MATERIALIZED VIEW v INCREMENTAL")
    check()
    change(2)
    val later = lookups("REFRESH MATERIALIZED VIEW v INCREMENTAL")
    check()
    info(s"created $created, first $first, later $later")
    // The first analysis finds the table, and the second one finds the table by its name.
    assert(ofTables(later) == Seq(2, 2))
    // Delta looks up a former version of a table twice.
    assert(ofTables(first) == Seq(4, 4))
    assert(ofTables(created) == Seq(2, 2))
  }

  for (format <- Seq("delta", "parquet"))
    test(s"a refresh of a view in $format looks at as many files after many refreshes") {
      run(s"""CREATE MATERIALIZED VIEW v USING $format
        TBLPROPERTIES ('changelog.retention' = '1 hour') AS $query""")
      def refresh(turn: Int): Map[String, Int] = {
        change(turn)
        counted(CountingFileSystem.counts, "REFRESH MATERIALIZED VIEW v INCREMENTAL")
      }
      val Seq(early, late) = Seq(1 to 2, 3 to 4).map(_.map(refresh).last)
      check()
      info(early.toSeq.sorted.mkString(", "))
      assert(early.filter(_._1.startsWith("list ")) == late.filter(_._1.startsWith("list ")))
      // The records and the rows of earlier versions stay.
      val ofVersions = Seq("look at rows", "look at versions", "open versions")
      assert(ofVersions.map(early.get) == ofVersions.map(late.get))
      // Before and after the new record is written.
      assert(early("list refreshes") == 2)
    }

  test("the jobs of a refresh of a Delta view") {
    run(s"CREATE MATERIALIZED VIEW v USING delta AS $query")
    change(1)
    run("REFRESH MATERIALIZED VIEW v INCREMENTAL")
    change(2)
    val (found, _) = jobs("REFRESH MATERIALIZED VIEW v INCREMENTAL")
    check()
    info(found.mkString("\n"))
    assert(found.size <= 6)
  }

  test("the jobs of the creation of a Delta view") {
    val (found, _) = jobs(s"CREATE MATERIALIZED VIEW v USING delta AS $query")
    info(found.mkString("\n"))
    assert(found.size <= 10)
    val Row(written: Long) = spark.sql("SHOW REFRESHES OF v").select("rows_written").head()
    assert(written == spark.table("v").count())
  }

  test("a first refresh computes no rows of the batch whose rows are in the view") {
    val pairs = "SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.id"
    run(s"CREATE MATERIALIZED VIEW v USING delta AS $pairs")
    run("UPDATE customers SET name = concat(name, '-') WHERE id = 1")
    val (_, shuffled) = jobs("REFRESH MATERIALIZED VIEW v INCREMENTAL")
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(pairs)))
    assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
    info(s"$shuffled shuffled rows")
    // The rows of both tables are shuffled, but the 100 rows of the view are not.
    assert(shuffled < 190)
  }
}

/** CountingFileSystem: counts the calls for files of views and Delta tables, by folder. */
class CountingFileSystem extends QuickFileSystem {
  private def count(call: String, path: Path): Unit =
    Iterator
      .iterate(path)(_.getParent)
      .takeWhile(_ != null)
      .map(_.getName)
      .find(CountingFileSystem.Folders.contains)
      .foreach { folder =>
        CountingFileSystem.counts
          .computeIfAbsent(s"$call $folder", _ => new AtomicInteger)
          .incrementAndGet()
      }

  override def listStatus(path: Path): Array[FileStatus] = {
    count("list", path)
    super.listStatus(path)
  }

  override def getFileStatus(path: Path): FileStatus = {
    count("look at", path)
    super.getFileStatus(path)
  }

  override def open(path: Path, bufferSize: Int): FSDataInputStream = {
    count("open", path)
    super.open(path, bufferSize)
  }
}

object CountingFileSystem {
  val counts = new ConcurrentHashMap[String, AtomicInteger]()
  private val Folders =
    Set("refreshes", "versions", "rows", "lease", "offsets", "commits", "_delta_log")
}

/** CountingCatalog: counts the lookups of tables by name. */
class CountingCatalog extends DeltaCatalog {
  override def loadTable(table: Identifier): Table = {
    CountingCatalog.counts.computeIfAbsent(table.name, _ => new AtomicInteger).incrementAndGet()
    super.loadTable(table)
  }
}

object CountingCatalog {
  val counts = new ConcurrentHashMap[String, AtomicInteger]()
}
