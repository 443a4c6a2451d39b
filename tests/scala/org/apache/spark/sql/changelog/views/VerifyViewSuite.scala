// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.File

import org.apache.spark.scheduler.{SparkListener, SparkListenerTaskEnd}

import org.apache.spark.sql.changelog.views.verify.VerifyView

/** Views are compared with their queries, wholly or in part. */
class VerifyViewSuite extends ViewTest {

  test("VERIFY finds rows that are missing, wrong or too many") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20", "+I 3 Eve 5")
    create(totals)
    spoil(
      "SELECT * FROM VALUES ('Eve', 1L, 5L), ('Ben', 1L, 21L), ('Zoe', 1L, 1L) " +
        "AS t(customer, n, total)")
    val found = run("VERIFY MATERIALIZED VIEW v").map(_.toSeq.mkString(" ")).sorted
    assert(
      found == Seq(
        "missing Ada 1 30",
        "missing Ben 1 20",
        "unexpected Ben 1 21",
        "unexpected Zoe 1 1"))
    assert(lastVerification.endsWith("4 differing rows, 3 rows compared"))
    // what is delivered later is not what the view has
    run("REFRESH MATERIALIZED VIEW v FULL")
    deliver("+I 4 Ada 1")
    assert(run("VERIFY MATERIALIZED VIEW v SAMPLE 50 PERCENT").isEmpty)
    val verified = facts("DESCRIBE EXTENDED MATERIALIZED VIEW v")("Last verification")
    assert(verified.contains("equal") && verified.endsWith("a sample of 50.0 percent"))
  }

  test("few rows are compared in few tasks") {
    val settings =
      Map("spark.sql.shuffle.partitions" -> "200", "spark.sql.adaptive.enabled" -> "true")
    val before = settings.map { case (key, _) => key -> spark.conf.get(key) }
    settings.foreach { case (key, value) => spark.conf.set(key, value) }
    try {
      deliver("+I 1 Ada 30", "+I 2 Ben 20")
      create(totals)
      var tasks = 0
      val counter = new SparkListener {
        override def onTaskEnd(taskEnd: SparkListenerTaskEnd): Unit = tasks += 1
      }
      spark.sparkContext.listenerBus.waitUntilEmpty()
      spark.sparkContext.addSparkListener(counter)
      try assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
      finally {
        spark.sparkContext.listenerBus.waitUntilEmpty()
        spark.sparkContext.removeSparkListener(counter)
      }
      assert(tasks < 50)
    } finally before.foreach { case (key, value) => spark.conf.set(key, value) }
  }

  test(
    "a view over the current time is verified at the time of its last batch, and refreshed by it") {
    deliver("+I 3 Eve 5")
    create(
      s"SELECT id, customer FROM $orders " +
        "WHERE timestamp_seconds(amount) > now() AND current_date() > DATE '2020-01-01' " +
        // words are parsed anew by each refresh
        "AND timestamp_seconds(amount) > TIMESTAMP 'now' AND DATE 'today' > DATE '2020-01-01'")
    val until = System.currentTimeMillis() / 1000 + 10
    deliver(s"+I 1 Ada $until", s"+I 2 Ben ${until + 10000}")
    run("REFRESH MATERIALIZED VIEW v")
    def ids = run("SELECT id FROM v").map(_.getInt(0)).sorted
    assert(ids == Seq(1, 2))
    Thread.sleep(math.max(0, (until + 1) * 1000 - System.currentTimeMillis()))
    // the view is what it was then
    assert(run("VERIFY MATERIALIZED VIEW v").isEmpty && ids == Seq(1, 2))
    run("REFRESH MATERIALIZED VIEW v")
    assert(run("VERIFY MATERIALIZED VIEW v").isEmpty && ids == Seq(2))
    deliver(s"+I 4 Ada ${until + 10000}")
    run("REFRESH MATERIALIZED VIEW v")
    assert(run("VERIFY MATERIALIZED VIEW v").isEmpty && ids == Seq(2, 4))
  }

  test("a view whose rows leave by when they came is refreshed by the time, and not verified") {
    deliver("+I 1 Ada 30", "+I 2 Ada 20")
    create(
      s"SELECT /*+ ROW_TTL(o, '3 seconds') */ customer, count(*) AS n FROM $orders AS o GROUP BY customer")
    run("REFRESH MATERIALIZED VIEW v")
    checkError("CHANGELOG_VIEW_NOT_COMPARABLE", "view" -> "`spark_catalog`.`default`.`v`")(
      run("VERIFY MATERIALIZED VIEW v"))
    Thread.sleep(4000)
    // nothing has arrived
    run("REFRESH MATERIALIZED VIEW v")
    assert(run("SELECT * FROM v").isEmpty)
  }

  test("maps, variants and what holds them are compared") {
    val query =
      s"""SELECT id, map('a', amount, customer, id) AS m, array(map(amount, customer)) AS l,
         |parse_json('{"b": ' || amount || ', "a": ["' || customer || '"]}') AS j,
         |timestamp_micros(amount) AS at, amount / 3e0 AS x FROM $orders""".stripMargin
    deliver("+I 1 Ada 30", "+I 2 Ben 20", "+I 3 Eve 5")
    create(query)
    assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
    assert(run("VERIFY MATERIALIZED VIEW v SAMPLE 50 PERCENT").isEmpty)
    val rows = "id, map('Ada', id, 'a', 30) AS m, array(map(amount, 'Ada')) AS l, " +
      "parse_json('{\"a\": [\"' || name || '\"], \"b\": ' || amount || '}') AS j, " +
      "timestamp_micros(amount) AS at, x"
    // the first is equal, the others differ in a variant, and in a map
    spoil(
      s"SELECT $rows FROM VALUES (1, 30, 'Ada', 10e0) AS t(id, amount, name, x) UNION ALL " +
        s"SELECT $rows FROM VALUES (2, 20, 'Bob', 10e0) AS t(id, amount, name, x)")
    assert(
      run("VERIFY MATERIALIZED VIEW v").map(row => s"${row(0)} ${row(1)}").sorted ==
        Seq("missing 2", "missing 3", "unexpected 2"))
  }

  test("a sample finds what differs in it, and nothing else, and tells its size") {
    deliver((1 to 60).map(id => s"+I $id c$id $id"): _*)
    create(totals)
    // of every ten a row is missing, one is wrong, and one is too many
    spoil(
      "SELECT concat('c', id) AS customer, 1L AS n, if(id % 10 = 1, 0, id) AS total " +
        "FROM range(1, 61) WHERE id % 10 <> 0 UNION ALL " +
        "SELECT concat('x', id), 1L, id FROM range(6)")
    val all = differences()
    assert(all.groupMapReduce(_._1)(_ => 1)(_ + _) == Map("missing" -> 12, "unexpected" -> 12))
    assert(lastVerification.endsWith("24 differing rows, 60 rows compared"))
    assert(differences("SAMPLE 100 PERCENT") == all)
    var found = Set.empty[(String, String)]
    var rounds = 0
    while (found != all && rounds < 40) {
      val some = differences("SAMPLE 40 PERCENT")
      assert(some.subsetOf(all))
      // both sides of a key are in a sample, or none
      (1 to 60 by 10).foreach(id => assert(some.count(_._2.startsWith(s"c$id ")) % 2 == 0, some))
      val told =
        s".*: ${outcome(some.size)}, (\\d+) rows compared, a sample of 40.0 percent".r
      val compared = told.findFirstMatchIn(lastVerification).map(_.group(1).toInt)
      assert(compared.exists(rows => rows >= some.size / 2 && rows < 60), lastVerification)
      found ++= some
      rounds += 1
    }
    assert(found == all, s"after $rounds samples")
  }

  test("no more differences are shown, nor counted, than anybody reads") {
    deliver("+I 1 Ada 30")
    create(totals)
    val many = VerifyView.MostRows + 5
    spoil(s"SELECT concat('x', id) AS customer, 1L AS n, id AS total FROM range($many)")
    assert(run("VERIFY MATERIALIZED VIEW v").size == VerifyView.MostRows)
    assert(
      lastVerification.contains(
        s": more than ${VerifyView.MostRows} differing rows, $many rows compared"))
  }

  test("common tables, subqueries and streams that are read twice are verified too") {
    val query = s"""
      WITH o AS (SELECT * FROM $orders)
      SELECT a.id, b.id AS other FROM o a JOIN o b ON a.customer = b.customer
      WHERE a.amount > (SELECT avg(amount) FROM o) AND b.id IN (SELECT max(id) FROM o)"""
    deliver("+I 1 Ada 30", "+I 2 Ben 20", "+I 3 Ada 5")
    create(query)
    check(query)
    deliver("-D 3 Ada 5", "+I 4 Ben 50")
    run("REFRESH MATERIALIZED VIEW v")
    check(query)
  }

  test("a batch that was not finished is finished by the next refresh, once") {
    deliver("+I 1 Ada 30")
    create(totals)
    deliver("+I 2 Ada 20")
    run("REFRESH MATERIALIZED VIEW v")
    val checkpoint = new ViewCatalog(spark).get(Seq("v")).definition.checkpoint
    val commits = new File(new File(checkpoint.toUri.getPath), "commits")
    assert(new File(commits, "1").delete())
    checkError("CHANGELOG_VIEW_BATCH_UNFINISHED", "batch" -> "1")(
      run("VERIFY MATERIALIZED VIEW v"))
    run("REFRESH MATERIALIZED VIEW v")
    check(totals)
  }

  private def differences(sample: String = ""): Set[(String, String)] =
    run(s"VERIFY MATERIALIZED VIEW v $sample")
      .map(row => (row.getString(0), row.toSeq.tail.mkString(" ")))
      .toSet

  private def outcome(differences: Int): String =
    if (differences == 0) "equal" else s"$differences differing rows"

  private def lastVerification: String =
    facts("DESCRIBE MATERIALIZED VIEW v")("Last verification")

  /** Changes the stored rows behind the view's back. */
  private def spoil(rows: String): Unit = {
    val Seq(folder) = spark
      .table("v")
      .inputFiles
      .map(file => new File(new java.net.URI(file)).getParent)
      .distinct
      .toSeq
    spark.sql(rows).coalesce(1).write.mode("overwrite").parquet(folder)
  }
}
