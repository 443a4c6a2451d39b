// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.nio.file.Files

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.sinks.KilledWriter
import org.apache.spark.sql.changelog.testing._

/**
 * A process that is held up in the middle of a refresh, for longer than its lease, while another process takes
 * over. Nothing that it does afterwards is visible.
 */
class HeldUpViewKillSuite extends AnyFunSuite with ViewSession {
  private val Lease = 3000
  private val HeldUpMillis = 10000L
  private val LatestMillis = 8000
  private val home = QuickFileSystem.temporaryDirectory().toPath
  private val holders = new ChildProcess(ViewHolder, home)
  private val query = "SELECT customer, sum(amount) AS total FROM plain GROUP BY customer"
  private val random = new Random(KilledWriter.seed)

  override def beforeAll(): Unit = {
    super.beforeAll()
    spark.conf.set("spark.sql.changelog.views.lease", Lease)
    run("CREATE TABLE plain (customer STRING, amount INT) USING delta")
    run("INSERT INTO plain VALUES ('Ada', 1), ('Ben', 2)")
    val plain = s"delta.`${warehouse.toPath.resolve("plain")}`"
    run(s"CREATE MATERIALIZED VIEW v USING delta AS ${query.replace("plain", plain)}")
  }

  test("a process that is held up while another takes over changes nothing") {
    val rounds = KilledWriter.rounds(few = 1)
    for (round <- 1 to rounds) {
      withClue(s"round $round of $rounds, CHANGELOG_KILL_SEED=${KilledWriter.seed}: ")(holdUp())
    }
  }

  private def holdUp(): Unit = {
    val begin = home.resolve("begin")
    val settings = ChildProcess.session(home) ++ ChangelogSession.DeltaConf ++ Map(
      "spark.sql.warehouse.dir" -> home.resolve("warehouse").toString,
      "spark.sql.changelog.views.lease" -> Lease.toString)
    val process = holders.start(
      ChildProcess.line(settings),
      warehouse.toPath.resolve("v").toString,
      "refresh",
      begin.toString)
    def signal(name: String): Unit = {
      new ProcessBuilder("kill", s"-$name", process.pid.toString).start().waitFor()
      ()
    }
    val told = process.inputReader()
    try {
      assert(told.readLine() == "held", holders.said)
      change()
      Files.createFile(begin)
      Thread.sleep(random.nextInt(LatestMillis).toLong)
      signal("STOP")
      val stopped = System.nanoTime()
      run("REFRESH MATERIALIZED VIEW v")
      check("after another process took over")
      change()
      run("REFRESH MATERIALIZED VIEW v")
      val kept = run("SELECT * FROM v ORDER BY customer")
      Thread.sleep(math.max(0, HeldUpMillis - (System.nanoTime() - stopped) / 1000000))
      signal("CONT")
      val outcome = told.readLine()
      withClue(s"after the process went on, which tells '$outcome': ") {
        // before and after it has ended
        for (_ <- 1 to 2) {
          assert(run("SELECT * FROM v ORDER BY customer") == kept)
          process.waitFor()
        }
        assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
        change()
        run("REFRESH MATERIALIZED VIEW v")
        check("after one more refresh")
      }
      info(s"it tells $outcome")
    } finally {
      process.destroyForcibly().waitFor()
      Files.deleteIfExists(begin)
    }
  }

  private def change(): Unit = {
    run(s"UPDATE plain SET amount = amount + ${1 + random.nextInt(9)} WHERE customer = 'Ada'")
    run(s"INSERT INTO plain VALUES ('Eve ${random.nextInt(3)}', 1)")
    ()
  }

  private def check(when: String): Unit =
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(query)), when)
}
