// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.nio.file.Files

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.TableIdentifier

import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.sinks.KilledWriter
import org.apache.spark.sql.changelog.testing._

/**
 * A process that is held up in the middle of a refresh, for longer than its lease, while another process takes
 * over. Nothing that it does afterwards is visible.
 */
class HeldUpViewKillSuite extends AnyFunSuite with ViewSession {
  private val Lease = 3000L
  private val DefaultLease = ChangelogConf.VIEW_LEASE.defaultValue.get
  private val LatestMillis = 8000
  private val home = QuickFileSystem.temporaryDirectory().toPath
  private val holders = new ChildProcess(ViewHolder, home)
  private val query = "SELECT customer, sum(amount) AS total FROM plain GROUP BY customer"
  private val random = new Random(KilledWriter.seed)

  /** A refresh changes more files than these. */
  private val FewestChanges = 40

  /** Where the process is held up in each storage; `file` is a change of any file, nowhere is a random time. */
  private val places = Seq("batch", "commit", "file", "").map("delta" -> _) ++
    Seq("batch", "record", "publish", "file", "").map("parquet" -> _)
  private val placesInIceberg = Seq("batch", "commit", "file", "").map("iceberg" -> _)

  private lazy val iceberg = Map(
    "spark.sql.catalog.ice" -> classOf[IcebergCatalog].getName,
    "spark.sql.catalog.ice.cache-enabled" -> "false",
    "spark.sql.catalog.ice.home" -> warehouse.toPath.resolve("ice").toString)

  override def beforeAll(): Unit = {
    super.beforeAll()
    run("CREATE TABLE plain (customer STRING, amount INT) USING delta")
    run("INSERT INTO plain VALUES ('Ada', 1), ('Ben', 2)")
  }

  test("a process that is held up while another takes over changes nothing") {
    // neighbours are of one storage
    holdUpInTurn(places, step = 4)
  }

  if (KilledWriter.isLong && ChangelogSession.isSpark41)
    test("a process that is held up, with a view in Iceberg, changes nothing") {
      iceberg.foreach { case (key, value) => spark.conf.set(key, value) }
      holdUpInTurn(placesInIceberg, step = 1)
    }

  private def holdUpInTurn(places: Seq[(String, String)], step: Int): Unit = {
    val rounds = KilledWriter.rounds(few = 2)
    val from = random.nextInt(places.size)
    for (round <- 1 to rounds) {
      val (format, place) = places((from + step * round) % places.size)
      val effect = if (place == "file") s"file ${random.nextInt(FewestChanges)}" else place
      withClue(
        s"round $round of $rounds, $format, held up at '$effect', " +
          s"CHANGELOG_KILL_SEED=${KilledWriter.seed}: ")(holdUp(format, effect))
    }
  }

  // long, since the other process waits for the end of the lease
  if (KilledWriter.isLong) {
    Seq("delta" -> "commit", "parquet" -> "publish").foreach { case (format, effect) =>
      test(s"a process that is held up for two minutes, with the default lease, in $format") {
        withClue(s"held up at '$effect': ")(holdUp(format, effect, DefaultLease, heldUp = 120000))
      }
    }
  }

  /** By which another catalog knows the view. */
  private def definition(format: String): String =
    if (format == "iceberg") "USE ice.db"
    else if (format == "delta") {
      s"CREATE TABLE v USING delta LOCATION '${warehouse.toPath.resolve("v")}'"
    } else {
      val view = spark.sessionState.catalog.getTableMetadata(TableIdentifier("v"))
      val properties = view.properties.filter(_._1.startsWith("changelog."))
      s"CREATE VIEW v TBLPROPERTIES (${ViewStorage.listed(properties)}) AS ${view.viewText.get}"
    }

  private def holdUp(
      format: String,
      effect: String,
      lease: Long = Lease,
      heldUp: Long = if (KilledWriter.isLong) 10000 else 0): Unit = {
    val v = if (format == "iceberg") "ice.db.v" else "v"
    spark.conf.set(ChangelogConf.VIEW_LEASE.key, lease)
    val begin = home.resolve("begin")
    val settings = ChildProcess.session(home) ++ ChangelogSession.DeltaConf ++
      EndingFileSystem.conf ++ iceberg ++ Map(
        "spark.sql.warehouse.dir" -> home.resolve("warehouse").toString,
        ChangelogConf.VIEW_LEASE.key -> lease.toString)
    val plain = s"delta.`${warehouse.toPath.resolve("plain")}`"
    run(s"CREATE MATERIALIZED VIEW $v USING $format AS ${query.replace("plain", plain)}")
    // with state, of which the next refresh is one of what has changed
    change()
    run(s"REFRESH MATERIALIZED VIEW $v")
    change()
    val process = holders.start(
      ChildProcess.line(settings),
      definition(format),
      s"refresh $effect",
      begin.toString)
    def signal(name: String): Unit = {
      new ProcessBuilder("kill", s"-$name", process.pid.toString).start().waitFor()
      ()
    }
    val told = process.inputReader()
    try {
      assert(told.readLine() == "held", holders.said)
      if (effect.isEmpty) {
        Files.createFile(begin)
        Thread.sleep(random.nextInt(LatestMillis).toLong)
      }
      signal("STOP")
      val stopped = System.currentTimeMillis()
      run(s"REFRESH MATERIALIZED VIEW $v")
      check(v, "after another process took over")
      change()
      run(s"REFRESH MATERIALIZED VIEW $v")
      val kept = run(s"SELECT * FROM $v ORDER BY customer")
      if (effect.nonEmpty) Files.createFile(begin)
      Thread.sleep(math.max(0, stopped + heldUp - System.currentTimeMillis()))
      signal("CONT")
      val outcome = told.readLine()
      withClue(s"after the process went on, which tells '$outcome': ") {
        // the last changes of files only tidy up
        if (effect.nonEmpty && !(effect.startsWith("file") && outcome == "done"))
          assert(outcome == "CHANGELOG_VIEW_LEASE_LOST", holders.said)
        // before and after it has ended
        for (_ <- 1 to 2) {
          assert(run(s"SELECT * FROM $v ORDER BY customer") == kept)
          process.waitFor()
        }
        assert(run(s"VERIFY MATERIALIZED VIEW $v").isEmpty)
        change()
        run(s"REFRESH MATERIALIZED VIEW $v")
        check(v, "after one more refresh")
      }
    } finally {
      process.destroyForcibly().waitFor()
      Files.deleteIfExists(begin)
      run(s"DROP MATERIALIZED VIEW $v")
    }
  }

  private def change(): Unit = {
    run(s"UPDATE plain SET amount = amount + ${1 + random.nextInt(9)} WHERE customer = 'Ada'")
    run(s"INSERT INTO plain VALUES ('Eve ${random.nextInt(3)}', 1)")
    ()
  }

  private def check(v: String, when: String): Unit =
    assert(RowMultiset.of(run(s"SELECT * FROM $v")) == RowMultiset.of(run(query)), when)
}
