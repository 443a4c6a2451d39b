// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.nio.file.{Files, Path}

import scala.concurrent.ExecutionContext.Implicits.global
import scala.concurrent.duration._
import scala.concurrent.{Await, Future}

import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/** Two processes that write one view at the same time. */
class ViewLeaseSuite
    extends AnyFunSuite
    with ViewSession
    with ErrorChecks
    with BeforeAndAfterEach {
  private val Lease = 3000
  private val home = QuickFileSystem.temporaryDirectory().toPath
  private val holders = new ChildProcess(ViewHolder, home)
  private val query = "SELECT customer, sum(amount) AS total FROM plain GROUP BY customer"
  private var process: Process = _

  override def beforeAll(): Unit = {
    super.beforeAll()
    run("CREATE TABLE plain (customer STRING, amount INT) USING delta")
    run("INSERT INTO plain VALUES ('Ada', 1), ('Ben', 2)")
    val plain = s"delta.`${warehouse.toPath.resolve("plain")}`"
    run(s"CREATE MATERIALIZED VIEW v USING delta AS ${query.replace("plain", plain)}")
  }

  override def beforeEach(): Unit = {
    spark.conf.set("spark.sql.changelog.views.lease", Lease)
    run("UPDATE plain SET amount = amount + 4 WHERE customer = 'Ada'")
  }

  override def afterEach(): Unit = {
    process.destroyForcibly().waitFor()
    RunningViews.stopAll()
    Files.deleteIfExists(file)
    ()
  }

  private def file: Path = home.resolve("end")

  /** Another process that writes the view. */
  private def hold(how: String): Unit = {
    val settings = ChildProcess.session(home) ++ ChangelogSession.DeltaConf ++ Map(
      "spark.sql.warehouse.dir" -> home.resolve("warehouse").toString,
      "spark.sql.changelog.views.lease" -> Lease.toString)
    process = holders.start(
      ChildProcess.line(settings),
      s"CREATE TABLE v USING delta LOCATION '${warehouse.toPath.resolve("v")}'",
      how,
      file.toString)
    assert(told() == "held", holders.said)
  }

  private def told(): String = process.inputReader().readLine()

  private def refresh(): Future[Unit] = Future {
    spark.cloneSession().sql("REFRESH MATERIALIZED VIEW v")
    ()
  }

  private def checkRefreshed(): Unit = {
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(query)))
    assert(run("SHOW REFRESHES OF v").head.getAs[String]("state") == "SUCCEEDED")
  }

  test("a statement waits for that of another process, for longer than a lease") {
    hold("statement")
    val refreshed = refresh()
    Thread.sleep(2L * Lease)
    assert(!refreshed.isCompleted)
    Files.createFile(file)
    Await.result(refreshed, 60.seconds)
    assert(told() == "done", holders.said)
    checkRefreshed()
  }

  test("it goes on when the other process is killed, as soon as its lease is over") {
    hold("statement")
    process.destroyForcibly().waitFor()
    Await.result(refresh(), 60.seconds)
    checkRefreshed()
  }

  test("a process that was held up for too long has lost its lease") {
    hold("statement")
    signal("STOP")
    Await.result(refresh(), 60.seconds)
    checkRefreshed()
    signal("CONT")
    assert(told() == "CHANGELOG_VIEW_LEASE_LOST", holders.said)
  }

  private def signal(name: String): Unit = {
    new ProcessBuilder("kill", s"-$name", process.pid.toString).start().waitFor()
    ()
  }

  test("a view that a query of another process keeps is not refreshed") {
    hold("query")
    val error =
      checkError("CHANGELOG_VIEW_IS_RUNNING_ELSEWHERE")(run("REFRESH MATERIALIZED VIEW v"))
    assert(error.getMessage.contains(s"${process.pid}@"), error.getMessage)
    assert(run("REFRESH MATERIALIZED VIEWS").map(_.getString(2)) == Seq("RUNNING"))
    run("ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('changelog.lag' = '5 minutes')")
    assert(run("SHOW MATERIALIZED VIEWS").head.getAs[Double]("lag_seconds") == 300)
    checkError("CHANGELOG_VIEW_IS_RUNNING_ELSEWHERE")(
      run("ALTER MATERIALIZED VIEW v RENAME TO w"))
    Files.createFile(file)
    assert(told() == "done", holders.said)
    run("REFRESH MATERIALIZED VIEW v")
    checkRefreshed()
  }

  test("a query that ends by itself ends its lease") {
    val view = new ViewCatalog(spark).get(Seq("v"))
    run("START MATERIALIZED VIEW v")
    RunningViews.active(view).get.stop()
    hold("statement")
    Files.createFile(file)
    assert(told() == "done", holders.said)
    assert(run("SHOW MATERIALIZED VIEWS").head.getString(3) == "IDLE")
  }
}
