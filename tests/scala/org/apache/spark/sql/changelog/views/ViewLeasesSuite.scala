// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.File
import java.util.concurrent.atomic.AtomicBoolean
import java.util.concurrent.{CountDownLatch, TimeUnit}

import scala.concurrent.ExecutionContext.Implicits.global
import scala.concurrent.duration._
import scala.concurrent.{Await, Future, blocking}

import org.apache.commons.io.FileUtils
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.delta.DeltaLog

import org.apache.spark.sql.changelog.checkpoint.TextFile
import org.apache.spark.sql.changelog.testing.{RowMultiset, Share}

/** Statements that write one view, in one process at the same time. */
class ViewLeasesSuite extends ViewTest {
  import ViewLeasesSuite._

  override protected def provider: String = "delta"

  private val query = "SELECT customer, max(slowly(amount)) AS most FROM plain GROUP BY customer"

  override def afterEach(): Unit = {
    released.countDown()
    spark.sql("DROP MATERIALIZED VIEW IF EXISTS w")
    super.afterEach()
    spark.sql("DROP TABLE IF EXISTS plain")
  }

  private def make(): Unit = {
    spark.udf.register("slowly", slowly)
    run("CREATE TABLE plain (customer STRING, amount INT) USING delta")
    run("INSERT INTO plain VALUES ('Ada', 1), ('Ben', 2)")
  }

  /**
   * Begins the second statement while the first one runs, and waits for both.
   *
   * @param between
   *   what is done before the second begins
   * @param after
   *   what is done when it waits
   */
  private def atOnce(first: String, second: String)(between: => Any)(after: => Any): Unit = {
    hold()
    run("UPDATE plain SET amount = 5 WHERE customer = 'Ada'")
    val begun = Future(blocking(spark.sql(first)))
    assert(isHeld.await(180, TimeUnit.SECONDS), begun.value)
    between
    val session = spark.cloneSession()
    val next = Future(blocking(session.sql(second)))
    val view = new ViewCatalog(spark).get(Seq("v"))
    while (!ViewLeases.hasWaiters(view) && !next.isCompleted) Thread.sleep(20)
    assert(!next.isCompleted && !begun.isCompleted, next.value)
    after
    released.countDown()
    Seq(begun, next).foreach(Await.result(_, 180.seconds))
  }

  Seq("delta", "parquet").foreach { format =>
    test(s"$format: properties and another name are given when a FULL refresh has ended") {
      make()
      run(s"CREATE MATERIALIZED VIEW v USING $format AS $query")
      def holds(name: String) =
        assert(RowMultiset.of(run(s"SELECT * FROM $name")) == RowMultiset.of(run(query)))
      val lag = "SET TBLPROPERTIES ('changelog.lag' = '5 minutes')"
      atOnce("REFRESH MATERIALIZED VIEW v FULL", s"ALTER MATERIALIZED VIEW v $lag")(())(())
      holds("v")
      assert(new ViewCatalog(spark).get(Seq("v")).definition.lag.contains(300000L))
      run("UPDATE plain SET amount = 1")
      atOnce("REFRESH MATERIALIZED VIEW v FULL", "ALTER MATERIALIZED VIEW v RENAME TO w")(())(())
      holds("w")
      // nobody has to wait for a turn that has moved
      run("UPDATE plain SET amount = 8")
      run("REFRESH MATERIALIZED VIEW w")
      holds("w")
    }
  }

  test("a statement that has waited for a view that is dropped leaves nothing of it") {
    make()
    val ways = Seq("DROP MATERIALIZED VIEW v", "ALTER MATERIALIZED VIEW v RENAME TO w")
    Share.ofWays(ways, "dropped").foreach { goes =>
      run("UPDATE plain SET amount = 1")
      create(query)
      var last: Future[Any] = Future.unit
      atOnce("REFRESH MATERIALIZED VIEW v", goes)(()) {
        val other = spark.cloneSession()
        // on a thread of its own, beside those of the two that wait
        last = Future(blocking(other.sql("REFRESH MATERIALIZED VIEW v")))
        // it has found the view by then
        Thread.sleep(3000)
      }
      checkError("CHANGELOG_VIEW_NOT_FOUND")(Await.result(last, 180.seconds))
      assert(!new File(warehouse, "v").exists())
      create(query)
      run("DROP MATERIALIZED VIEW v")
      run("DROP MATERIALIZED VIEW IF EXISTS w")
    }
  }

  /** Creates the empty table of a view, as a process does that has found the name free. */
  private def createTable(session: SparkSession, made: MaterializedView): MaterializedView = {
    val definition = made.definition.copy(generation = None, otherCheckpoint = None)
    ViewStorage(session, made).create(made.copy(definition = definition))
  }

  test(
    "of two statements that create a view at once, the later one leaves the table of the first") {
    make()
    hold()
    val first = Future(blocking(run(s"CREATE MATERIALIZED VIEW v USING delta AS $query")))
    assert(isHeld.await(180, TimeUnit.SECONDS), first.value)
    val session = spark.cloneSession()
    checkError("CHANGELOG_VIEW_EXISTS")(
      createTable(session, new ViewCatalog(session).get(Seq("v"))))
    released.countDown()
    Await.result(first, 180.seconds)
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(query)))
  }

  test("a table that is not in the catalog yet is waited for, as long as a lease lasts") {
    make()
    create(query)
    val made = new ViewCatalog(spark).get(Seq("v"))
    run("DROP MATERIALIZED VIEW v")
    createTable(spark, made)
    val (folder, aside) = (new File(warehouse, "v"), new File(warehouse, "aside"))
    val catalog = spark.sessionState.catalog.externalCatalog
    val table = catalog.getTable("default", "v")
    // as of before the table is in the catalog
    def forget(): Unit = {
      FileUtils.moveDirectory(folder, aside)
      catalog.dropTable("default", "v", ignoreIfNotExists = false, purge = false)
      FileUtils.deleteQuietly(folder)
      FileUtils.moveDirectory(aside, folder)
      DeltaLog.clearCache()
    }
    forget()
    val session = spark.cloneSession()
    session.conf.set("spark.sql.changelog.views.lease", "60s")
    val second = Future(blocking(createTable(session, made)))
    Thread.sleep(1000)
    assert(!second.isCompleted, second.value)
    catalog.createTable(table, ignoreIfExists = false)
    checkError("CHANGELOG_VIEW_EXISTS")(Await.result(second, 60.seconds))
    run("REFRESH MATERIALIZED VIEW v")
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(query)))
    run("DROP MATERIALIZED VIEW v")
    createTable(spark, made)
    forget()
    session.conf.set("spark.sql.changelog.views.lease", "100ms")
    createTable(session, made)
    ()
  }

  test("nobody waits for who could not give a view another name") {
    make()
    create(query)
    val taken = new File(warehouse, "w")
    assert(taken.mkdirs() && new File(taken, "somebodys").createNewFile())
    try intercept[Exception](run("ALTER MATERIALIZED VIEW v RENAME TO w"))
    finally FileUtils.deleteDirectory(taken)
    val began = System.nanoTime
    run("REFRESH MATERIALIZED VIEW v")
    // as long as a lease
    assert((System.nanoTime - began) / 1000000000 < 50)
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(query)))
  }

  /** Two views. The first one is ahead in the order of leases. */
  private def makeTwo(): Seq[MaterializedView] = {
    make()
    Seq("v", "w").map { name =>
      create("SELECT customer, amount FROM plain WHERE amount > 0", name = name)
      new ViewCatalog(spark).get(Seq(name))
    }
  }

  test("statements that complete an interrupted swap wait for each other in one order") {
    val Seq(v, w) = makeTwo()
    // a swap of w with v ended before anything was exchanged
    new TextFile(new Path(w.definition.home, ViewSwap.Mark), spark.sessionState.newHadoopConf())
      .write(v.name.nameParts.mkString("\n"))
    val session = spark.cloneSession()
    val isTaken = new CountDownLatch(1)
    val both = Future(blocking(ViewLeases.of(spark, v) {
      isTaken.countDown()
      while (!ViewLeases.hasWaiters(v)) Thread.sleep(20)
      ViewLeases.of(spark, w)(())
    }))
    assert(isTaken.await(60, TimeUnit.SECONDS))
    val refreshed = Future(blocking(session.sql("REFRESH MATERIALIZED VIEW w")))
    Seq(both, refreshed).foreach(Await.result(_, 60.seconds))
    assert(!new File(w.definition.home.toUri.getPath, ViewSwap.Mark).exists())
  }

  test("swaps of the same views in opposite order wait for each other") {
    makeTwo()
    val swaps = Seq("v" -> "w", "w" -> "v").map { case (one, other) =>
      val session = spark.cloneSession()
      Future(blocking(session.sql(s"ALTER MATERIALIZED VIEW $one SWAP WITH $other")))
    }
    swaps.foreach(Await.result(_, 180.seconds))
  }

  Seq("", "FULL").foreach { how =>
    test(s"a second REFRESH $how begins when the first has ended") {
      make()
      create(query)
      atOnce("REFRESH MATERIALIZED VIEW v", s"REFRESH MATERIALIZED VIEW v $how") {
        run("UPDATE plain SET amount = 7 WHERE customer = 'Ada'")
      }(())
      assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(query)))
      val told = run("SHOW REFRESHES OF v").map(row => (row.getString(2), row.getString(4)))
      val mode = if (how == "FULL") "full" else "incremental"
      assert(told.take(2) == Seq((mode, "SUCCEEDED"), ("incremental", "SUCCEEDED")))
    }
  }
}

object ViewLeasesSuite {
  private val isFirst = new AtomicBoolean
  @volatile private var isHeld = new CountDownLatch(0)
  @volatile private var released = new CountDownLatch(0)

  /** From now on the first value is not given until `released`. */
  private def hold(): Unit = {
    released = new CountDownLatch(1)
    isHeld = new CountDownLatch(1)
    isFirst.set(true)
  }

  private val slowly: Int => Int = { amount =>
    // others pass while it is held, or all tasks that there can be would wait
    if (isFirst.compareAndSet(true, false)) {
      isHeld.countDown()
      released.await(180, TimeUnit.SECONDS)
    }
    amount
  }
}
