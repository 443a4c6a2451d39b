// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.util.concurrent.{ConcurrentHashMap, CountDownLatch, TimeUnit}

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.scheduler.{SparkListener, SparkListenerJobStart}

import org.apache.spark.sql.changelog.checkpoint.Fence

/** Views that do not read each other are refreshed side by side, with the session of the statement. */
class SideBySideViewsSuite extends ViewTest {
  private val Threads = "spark.sql.changelog.views.refreshThreads"
  private val Views = Seq("bottom", "other", "right", "left", "v")

  override def afterEach(): Unit = {
    Fence.onEffect = (_, _) => ()
    spark.conf.unset(Threads)
    Views.foreach(name => run(s"DROP MATERIALIZED VIEW IF EXISTS $name CASCADE"))
    super.afterEach()
  }

  /** Creates a diamond of views, and another view. The view `left` fails for an amount of 0. */
  private def make(): Unit = {
    deliver("+I 1 Ada 3")
    create(totals)
    create("SELECT customer, 6 / total AS part FROM v", name = "left")
    create("SELECT customer, total + 1 AS more FROM v", name = "right")
    create("SELECT customer, part, more FROM left JOIN right USING (customer)", name = "bottom")
    create(s"SELECT 1 / amount AS one FROM $orders", name = "other")
    run("REFRESH MATERIALIZED VIEWS")
    ()
  }

  private def checkAll(): Unit = {
    check(totals)
    check("SELECT customer, 6 / total AS part FROM v", "left")
    check("SELECT customer, total + 1 AS more FROM v", "right")
    check("SELECT customer, part, more FROM left JOIN right USING (customer)", "bottom")
    check(s"SELECT 1 / amount AS one FROM $orders", "other")
  }

  /** Calls `atEffect` with a view's name, before each effect of the query that writes the view. */
  private def onEffects(atEffect: String => Unit): Unit = Fence.onEffect = (_, isChecked) => {
    val view = "view spark_catalog\\.default\\.(\\w+)".r
      .findFirstMatchIn(Thread.currentThread().getName)
    if (!isChecked) view.foreach(found => atEffect(found.group(1)))
  }

  /** Lets the refreshes of each group of views wait for each other. Fails if a view waits in vain. */
  private def meeting(groups: Set[String]*)(body: => Unit): Unit = {
    val arrivals = groups.flatten.map(_ -> new CountDownLatch(1)).toMap
    val alone = ConcurrentHashMap.newKeySet[String]()
    onEffects { view =>
      arrivals.get(view).foreach(_.countDown())
      val met = groups.filter(_.contains(view)).flatten.map(arrivals)
      if (!met.forall(_.await(20, TimeUnit.SECONDS))) alone.add(view)
    }
    body
    assert(arrivals.forall(_._2.getCount == 0), "a view had no changes")
    assert(alone.isEmpty)
  }

  test("views of one level are refreshed at the same time, and their reader after both") {
    make()
    deliver("+I 2 Ben 2")
    meeting(Set("v", "other"), Set("left", "right")) {
      val views = run("REFRESH MATERIALIZED VIEWS").map(_.getString(1))
      assert(views.filterNot(_ == "other") == Seq("v", "left", "right", "bottom"))
    }
    checkAll()
  }

  test("a view waits for each of the views that it reads") {
    make()
    for (slow <- Seq("left", "right")) {
      deliver(s"+I ${slow.length} $slow 2")
      @volatile var numEffects = 0
      onEffects { view =>
        if (view == slow) {
          numEffects += 1
          Thread.sleep(500)
        }
      }
      run("REFRESH MATERIALIZED VIEW bottom WITH UPSTREAM")
      assert(numEffects > 0)
      run("REFRESH MATERIALIZED VIEW other")
      Fence.onEffect = (_, _) => ()
      checkAll()
    }
  }

  test("failures are told together, and stop only the views that read a failed view") {
    make()
    deliver("+I 2 Ben 0")
    val bottom = run("SELECT * FROM bottom")
    val error = checkError(
      "CHANGELOG_VIEWS_NOT_REFRESHED",
      "skipped" -> "`spark_catalog`.`default`.`bottom`")(run("REFRESH MATERIALIZED VIEWS"))
    val failed = error.getMessageParameters.get("failed")
    assert(
      "`(\\w+)` \\(\\[DIVIDE_BY_ZERO".r
        .findAllMatchIn(failed)
        .map(_.group(1))
        .toSet == Set("left", "other"),
      failed)
    check(totals)
    check("SELECT customer, total + 1 AS more FROM v", "right")
    assert(run("SELECT * FROM bottom") == bottom)
    deliver("-D 2 Ben 0")
    run("REFRESH MATERIALIZED VIEW bottom WITH UPSTREAM")
    check("SELECT customer, part, more FROM left JOIN right USING (customer)", "bottom")
  }

  /** Returns the scheduler pools of the jobs run by `body`. */
  private def poolsOf(body: => Any): Set[String] = {
    val pools = ConcurrentHashMap.newKeySet[String]()
    val listener = new SparkListener {
      override def onJobStart(job: SparkListenerJobStart): Unit =
        Option(job.properties.getProperty("spark.scheduler.pool")).foreach(pools.add)
    }
    val context = spark.sparkContext
    context.addSparkListener(listener)
    try {
      body
      context.listenerBus.waitUntilEmpty()
    } finally context.removeSparkListener(listener)
    pools.asScala.toSet
  }

  test("each refresh has a scheduler pool, unless the session has chosen one") {
    make()
    def refresh(): Unit = spark.sql("REFRESH MATERIALIZED VIEWS").collect()
    deliver("+I 2 Ben 2")
    val pools = poolsOf(meeting(Set("v", "other"))(refresh()))
    assert(Set("changelog-refresh-1", "changelog-refresh-2").subsetOf(pools))
    assert(pools.forall(_.matches("changelog-refresh-[1-4]")))
    deliver("+I 3 Eve 2")
    spark.conf.set(Threads, 1)
    assert(poolsOf(refresh()) == Set("changelog-refresh-1"))
    assert(spark.sparkContext.getLocalProperty("spark.scheduler.pool") == null)
    spark.conf.unset(Threads)
    deliver("+I 4 Flo 2")
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", "nightly")
    try assert(poolsOf(refresh()) == Set("nightly"))
    finally spark.sparkContext.setLocalProperty("spark.scheduler.pool", null)
    checkAll()
  }

  test("each refresh has the temporary views, the functions and the database of the session") {
    val session = spark.newSession()
    session.udf.register("twice", (number: Int) => 2 * number)
    session.sql("CREATE TEMPORARY VIEW recent AS SELECT * FROM orders WHERE id > 0")
    for (name <- Seq("left", "right")) {
      session.sql(
        s"CREATE MATERIALIZED VIEW $name USING parquet AS SELECT twice(amount) AS $name FROM recent")
    }
    deliver("+I 1 Ada 3", "+I 2 Ben 2")
    val error = checkError("CHANGELOG_VIEWS_NOT_REFRESHED")(run("REFRESH MATERIALIZED VIEWS"))
    assert(error.getMessageParameters.get("failed").split("`recent`").length == 3)
    session.sql("CREATE DATABASE elsewhere")
    try {
      session.sql("USE elsewhere")
      session.sql("REFRESH MATERIALIZED VIEWS").collect()
      for (name <- Seq("left", "right")) {
        assert(run(s"SELECT $name FROM $name ORDER BY 1").map(_.getInt(0)) == Seq(4, 6))
      }
    } finally session.sql("DROP DATABASE elsewhere")
  }

  test("a canceled statement ends its refreshes, and the next one goes on") {
    make()
    deliver("+I 2 Ben 2")
    val bothRun = new CountDownLatch(2)
    onEffects { _ =>
      bothRun.countDown()
      Thread.sleep(60000)
    }
    var ended = Option.empty[Try[Any]]
    val statement = new Thread(() =>
      ended = Some(
        Try(try run("REFRESH MATERIALIZED VIEWS")
        catch { case error: InterruptedException => throw new RuntimeException(error) })))
    statement.start()
    assert(bothRun.await(60, TimeUnit.SECONDS))
    statement.interrupt()
    statement.join(30000)
    assert(ended.exists(_.isFailure))
    assert(spark.sharedState.activeStreamingQueries.isEmpty)
    Fence.onEffect = (_, _) => ()
    run("REFRESH MATERIALIZED VIEWS")
    checkAll()
  }
}
