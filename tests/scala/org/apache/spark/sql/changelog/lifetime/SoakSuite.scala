// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.lifetime

import java.io.File
import java.lang.management.ManagementFactory
import java.nio.file.{Files, Paths}
import javax.management.ObjectName

import scala.jdk.CollectionConverters._

import com.sun.management.UnixOperatingSystemMXBean
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.FileStatusCache
import org.apache.spark.sql.execution.streaming.runtime.{MemoryStream, StreamingQueryListenerBus}
import org.apache.spark.sql.streaming.{StreamingQuery, StreamingQueryListener}

import org.apache.spark.sql.changelog.testing.QuickFileSystem
import org.apache.spark.sql.changelog.views.ViewSession

/**
 * A process that refreshes views and runs batches for long needs no more of anything than at first, and is no
 * slower. How long: `CHANGELOG_SOAK_REFRESHES` of `CHANGELOG_SOAK_VIEWS`, and `CHANGELOG_SOAK_BATCHES`
 * (see `dev/soak`).
 */
class SoakSuite extends AnyFunSuite with ViewSession {
  import SoakSuite._

  // Spark's own settings: with those of the tests, generated classes and stores of ended queries stay for longer
  override protected def sessionConf: Map[String, String] = super.sessionConf ++ Map(
    "spark.sql.codegen.cache.maxEntries" -> "100",
    "spark.sql.streaming.stateStore.maintenanceInterval" -> "60s")

  test(s"$NumRefreshes refreshes of $NumViews views") {
    val views = (1 to NumViews).map(number => s"v$number")
    val beside = QuickFileSystem.temporaryDirectory().getPath
    val heard = new Heard
    spark.streams.addListener(heard)
    try {
      fill(0)
      views.zipWithIndex.foreach { case (view, number) =>
        run(
          s"CREATE MATERIALIZED VIEW $view USING ${formatOf(number)} AS ${query(tableOf(number))}")
      }
      val flat = new Flat(spark, NumRefreshes)
      (1 to NumRefreshes).foreach { number =>
        if ((number - 1) % NumViews == 0) fill(number)
        val refreshed = number % NumViews
        flat.timed(run(s"REFRESH MATERIALIZED VIEW ${views(refreshed)}"))
        flat.timedBeside(spark.sql(query("replaced")).write.mode("overwrite").parquet(beside))
        if (number % LookEach == 0) look(views(refreshed), tableOf(refreshed))
        flat.step(number)
      }
      assert(run(s"VERIFY MATERIALIZED VIEW ${views(NumRefreshes % NumViews)}").isEmpty)
      views.zipWithIndex.foreach { case (view, number) =>
        val last = spark.sql(s"SHOW REFRESHES OF $view").select("mode").head().getString(0)
        assert(last == (if (tableOf(number) == "replaced") "full" else "incremental"), view)
      }
      // the listeners of the session hear of each query's beginning and end
      spark.sparkContext.listenerBus.waitUntilEmpty()
      assert(heard.started >= NumRefreshes && heard.started == heard.terminated)
    } finally {
      spark.streams.removeListener(heard)
      views.foreach(view => run(s"DROP MATERIALIZED VIEW IF EXISTS $view"))
      run("DROP TABLE IF EXISTS replaced")
      run("DROP TABLE IF EXISTS updated")
    }
  }

  test(s"$NumBatches batches") {
    // two at once take less time
    val running = (1 to 2).map { number =>
      val changes = MemoryStream[(String, Int, Int)](
        org.apache.spark.sql.Encoders.product[(String, Int, Int)],
        spark.sqlContext)
      changes.toDF().toDF("op", "id", "v").createOrReplaceTempView(s"feed$number")
      val query: StreamingQuery = spark
        .sql("SELECT * FROM to_changelog(TABLE(SELECT v % 7 AS k, sum(v) AS s " +
          s"FROM from_changelog(TABLE(feed$number), 'op', key => array('id')) GROUP BY v % 7))")
        .writeStream
        .format("noop")
        .start()
      changes -> query
    }
    try {
      val flat = new Flat(spark, NumBatches / 2)
      (1 to NumBatches / 2).foreach { number =>
        running.foreach { case (changes, _) => changes.addData(("+U", number % 100, number)) }
        flat.timed(running.foreach { case (_, query) => query.processAllAvailable() })
        flat.timedBeside(run("SELECT id % 7 AS k, sum(id) AS s FROM range(100) GROUP BY id % 7"))
        flat.step(number)
      }
    } finally running.foreach { case (_, query) => query.stop() }
  }

  private def query(table: String) = s"SELECT k, sum(v) AS s FROM $table GROUP BY k"

  /** Two of ten views are recomputed, the others follow changes. */
  private def tableOf(view: Int) = if (view % 10 < 2) "replaced" else "updated"

  /** Delta takes longer. Most views are of Parquet and follow changes, so that a median is the time of these. */
  private def formatOf(view: Int) = if (view % 10 == 2) "delta" else "parquet"

  /** Changes the tables before each view is refreshed once. The tables keep their numbers of rows and files. */
  private def fill(number: Int): Unit = {
    val rows = s"/*+ COALESCE(1) */ INT(id % 10) AS k, INT(id * $number % 17) AS v FROM range(50)"
    if (number == 0) {
      run(s"CREATE TABLE replaced USING parquet AS SELECT $rows")
      run(s"CREATE TABLE updated USING delta AS SELECT $rows")
    } else {
      run(s"INSERT OVERWRITE replaced SELECT $rows")
      run(s"UPDATE updated SET v = v + 1 WHERE k = ${number / NumViews % 10}")
    }
    ()
  }

  /** Statements that make sessions and plans, and run no refresh. */
  private def look(view: String, table: String): Unit = {
    val other = s"${query(table)} HAVING k > 0"
    run(s"DESCRIBE EXTENDED MATERIALIZED VIEW $view")
    run(s"VERIFY MATERIALIZED VIEW $view")
    run(s"EXPLAIN CHANGELOG CREATE MATERIALIZED VIEW other AS $other")
    run(s"EXPLAIN ALTER MATERIALIZED VIEW $view AS $other")
    run(s"WHY MATERIALIZED VIEW $view WHERE k = 1")
    ()
  }
}

private object SoakSuite {
  private def size(name: String, otherwise: Int): Int =
    sys.env.get(s"CHANGELOG_SOAK_$name").fold(otherwise)(_.toInt)

  val NumRefreshes: Int = size("REFRESHES", 24)
  val NumViews: Int = size("VIEWS", 4)
  val NumBatches: Int = size("BATCHES", 60)

  /** After how many refreshes other statements are run, too. */
  val LookEach: Int = math.max(8, NumRefreshes / 50)

  /** Threads of Spark's pools end after a minute without work. */
  private val IdleMillis = 61000L

  /** How many are compared, at least, at the beginning and at the end of a long run, and how many come before. */
  private val NumCompared = 100
  private val NumWarmUps = 200

  class Heard extends StreamingQueryListener {
    @volatile var started = 0
    @volatile var terminated = 0

    override def onQueryStarted(event: StreamingQueryListener.QueryStartedEvent): Unit =
      started += 1

    override def onQueryProgress(event: StreamingQueryListener.QueryProgressEvent): Unit = ()

    override def onQueryTerminated(event: StreamingQueryListener.QueryTerminatedEvent): Unit =
      terminated += 1
  }

  /** Compares what the process needs at the end of a run with what it needed when it was warm. */
  class Flat(spark: SparkSession, steps: Int) {
    private val isLong = steps >= NumWarmUps + 2 * NumCompared
    private val compared = math.max(NumCompared, steps / 20)
    private val warm = if (isLong) NumWarmUps else steps / 2
    private val millis = Array.newBuilder[Double]
    private val millisBeside = Array.newBuilder[Double]
    private var before: Map[String, Long] = Map.empty

    def timed(step: => Any): Unit = millis += time(step)

    /** Times a statement of plain Spark with the steps that are compared, because the machine may become slower. */
    def timedBeside(statement: => Any): Unit = {
      val number = millis.length
      if (number > warm && number <= warm + compared || number > steps - compared)
        millisBeside += time(statement)
    }

    private def time(body: => Any): Double = {
      val began = System.nanoTime()
      body
      (System.nanoTime() - began) / 1e6
    }

    def step(number: Int): Unit = {
      if (number == warm) before = settled()
      else if (number == steps) check()
      else if (isLong && number % (steps / 10) == 0)
        println(
          f"$number of $steps: ${median(millis.result().takeRight(compared))}%.0f ms, ${figures(spark)}")
    }

    /** In a long run, waits until Spark's cleaner is done, and its idle threads, which keep sessions, have ended. */
    private def settled(): Map[String, Long] = {
      if (isLong) {
        histogram()
        Thread.sleep(IdleMillis)
      }
      figures(spark)
    }

    private def check(): Unit = {
      val after = settled()
      val told = after.keys.toSeq.sorted.map(name => s"$name: ${before(name)}, ${after(name)}")
      println(told.mkString("\n"))
      val (ofSteps, ofMachine) =
        (growth("steps", millis.result().drop(warm)), growth("Spark", millisBeside.result()))
      def flat(slack: Map[String, Long]): Unit =
        slack.foreach { case (name, more) => assert(after(name) <= before(name) + more, name) }
      // Spark itself keeps the lists of each `INSERT`.
      flat(Slack + ("cached file lists" -> (steps - warm).toLong))
      if (isLong) {
        flat(SlackOfMany)
        // what a longer history takes, and no more
        MoreInPercent.foreach { case (name, percent) =>
          assert(after(name) <= before(name) * (100 + percent) / 100, name)
        }
        // more only where plain Spark has become slower, too
        assert(ofSteps <= 1.1 * math.max(1.0, ofMachine))
      }
    }

    /** Returns the median of the last times, relative to that of the first ones. */
    private def growth(name: String, times: Array[Double]): Double = {
      val (first, last) = (median(times.take(compared)), median(times.takeRight(compared)))
      println(f"median of $name: $first%.0f ms at first, $last%.0f ms at last")
      last / first
    }

    private def median(times: Array[Double]): Double = times.sorted.apply(times.length / 2)
  }

  /** By how many there may be more: pools of threads fill, and files are open for a while. */
  private val Slack = Map("listeners" -> 0L, "threads" -> 15L, "open files" -> 20L)

  /** The same where nothing else runs in the process, and what is kept for a while is gone. */
  private val SlackOfMany = Map("sessions" -> 5L, "temporary files" -> 20L)

  private val MoreInPercent = Map("heap, KB" -> 10, "native memory, KB" -> 10)

  private def figures(spark: SparkSession): Map[String, Long] = {
    spark.sparkContext.listenerBus.waitUntilEmpty()
    // the first collection lets Spark's cleaner remove what belongs to sessions that are gone
    histogram()
    Thread.sleep(1000)
    val live = histogram()
    val Array(_, bytes) = live.linesIterator.toSeq.last.trim.split(" +").drop(1)
    val session = classOf[SparkSession].getName
    val sessions = live.linesIterator
      .map(_.trim.split(" +"))
      .collectFirst { case Array(_, count, _, `session`, _*) => count.toLong }
    val system = ManagementFactory.getOperatingSystemMXBean
    val openFiles = system match {
      case unix: UnixOperatingSystemMXBean => unix.getOpenFileDescriptorCount
      case _ => 0L
    }
    Map(
      "listeners" -> spark.sparkContext.listenerBus
        .findListenersByClass[StreamingQueryListenerBus]()
        .size
        .toLong,
      "sessions" -> sessions.getOrElse(0L),
      "threads" -> ManagementFactory.getThreadMXBean.getThreadCount.toLong,
      "open files" -> openFiles,
      "temporary files" -> temporaryFiles(spark),
      "cached file lists" -> fileLists(),
      "heap, KB" -> bytes.toLong / 1024,
      "native memory, KB" -> (resident() - heapCommitted()))
  }

  /** Counts what lives, after a full collection. */
  private def histogram(): String = ManagementFactory.getPlatformMBeanServer
    .invoke(
      new ObjectName("com.sun.management:type=DiagnosticCommand"),
      "gcClassHistogram",
      Array[AnyRef](Array.empty[String]),
      Array(classOf[Array[String]].getName))
    .toString

  private def heapCommitted(): Long =
    ManagementFactory.getMemoryMXBean.getHeapMemoryUsage.getCommitted / 1024

  /** The memory of the process that is in use, in KB, where the system tells. */
  private def resident(): Long = {
    val status = Paths.get("/proc/self/status")
    if (!Files.exists(status)) heapCommitted()
    else
      Files
        .readAllLines(status)
        .asScala
        .collectFirst { case line if line.startsWith("VmRSS:") => line.split("\\s+")(1).toLong }
        .get
  }

  /** The number of folders in Spark's cache of files. Spark removes none, and looks at each to refresh a table. */
  private def fileLists(): Long = {
    def field(of: AnyRef, name: String): AnyRef = {
      val found = of.getClass.getDeclaredFields.find(_.getName.endsWith(name)).get
      found.setAccessible(true)
      found.get(of)
    }
    Option(field(FileStatusCache, "sharedCache")).map(field(_, "cache")).fold(0L) { cache =>
      // The class is private to Guava, which Spark renames.
      val size = cache.getClass.getMethod("size")
      size.setAccessible(true)
      size.invoke(cache).asInstanceOf[Long]
    }
  }

  private def temporaryFiles(spark: SparkSession): Long = {
    def count(folder: File): Long =
      Option(folder.listFiles()).fold(0L)(_.map(file =>
        if (file.isDirectory) count(file) else 1L).sum)
    // what tests have made for themselves grows, as a warehouse does
    val others = Option(new File(sys.props("java.io.tmpdir")).list()).fold(0L)(_.length.toLong)
    others + count(new File(spark.conf.get("spark.local.dir")))
  }
}
