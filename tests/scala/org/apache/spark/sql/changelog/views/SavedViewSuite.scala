// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** Views are kept at a moment, made from others, put back, compared, and change places. */
class SavedViewSuite
    extends AnyFunSuite
    with ViewSession
    with ErrorChecks
    with BeforeAndAfterEach {
  private val totals =
    "SELECT customer, count(*) AS n, sum(amount) AS total FROM orders GROUP BY ALL"
  private val most =
    "SELECT customer, count(*) AS n, max(amount) AS most FROM orders GROUP BY ALL"
  private val counts = "SELECT n, count(*) AS c FROM v GROUP BY n"

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    ChangelogSession.DeltaConf ++ ChangelogSession.Quick ++ EndingFileSystem.conf ++ Map(
      "spark.sql.warehouse.dir" -> warehouse.getPath,
      // what has ended gives no turn back
      "spark.sql.changelog.views.lease" -> "300ms"))

  override def beforeEach(): Unit = {
    val feed = "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    run(s"CREATE TABLE orders (id INT, customer STRING, amount INT) $feed")
    run("INSERT INTO orders VALUES (1, 'a', 10), (2, 'a', 5), (3, 'b', 0), (4, NULL, 1)")
  }

  override def afterEach(): Unit = {
    RunningViews.stopAll()
    Seq("second", "w", "x", "v").foreach(name => run(s"DROP MATERIALIZED VIEW IF EXISTS $name"))
    run("DROP TABLE orders")
  }

  private def rows(sql: String): RowMultiset = RowMultiset.of(run(sql))

  private def held(view: String): RowMultiset = rows(s"SELECT * FROM $view")

  /** A view that equals its query, also in the eyes of VERIFY. */
  private def check(view: String, query: String): Unit = {
    assert(held(view) == rows(query), view)
    assert(run(s"VERIFY MATERIALIZED VIEW $view").isEmpty, view)
  }

  private def refresh(views: String*): Unit =
    views.foreach(view => run(s"REFRESH MATERIALIZED VIEW $view"))

  private def lastMode(view: String): String =
    spark.sql(s"SHOW REFRESHES OF $view").select("mode").head().getString(0)

  /** Makes a view and lets it have three batches; gives the rows after each. */
  private def threeBatches(format: String): Seq[RowMultiset] = {
    run(s"CREATE MATERIALIZED VIEW v USING $format AS $totals")
    val first = held("v")
    run("INSERT INTO orders VALUES (5, 'c', 7), (6, 'b', 2)")
    refresh("v")
    val second = held("v")
    run("DELETE FROM orders WHERE id = 1")
    run("UPDATE orders SET customer = 'c' WHERE id = 4")
    refresh("v")
    Seq(first, second, held("v"))
  }

  /** Runs with a state store provider for each format, by turns, or with one format if not all is tested. */
  private def testEach(name: String, providers: (String, String)*)(body: String => Unit): Unit =
    for {
      format <- Share.ofWays(Seq("delta", "parquet"), name)
      (provider, conf) <- Variant.Providers if providers.contains(format -> provider)
    } test(s"$name, in $format, state $provider") {
      conf.foreach { case (key, value) => spark.conf.set(key, value) }
      try body(format)
      finally conf.keys.foreach(spark.conf.unset)
    }

  testEach("another view goes on beside", "delta" -> "RocksDB", "parquet" -> "in pages") {
    format =>
      val after = threeBatches(format)
      run("CREATE SAVEPOINT early OF MATERIALIZED VIEW v AT BATCH 1")
      val moments = Seq("" -> 2, "AT BATCH 0" -> 0, "AT SAVEPOINT early" -> 1)
      for ((at, batch) <- Share.ofWays(moments, format)) {
        run(s"CREATE MATERIALIZED VIEW w FROM v $at")
        assert(held("w") == after(batch), at)
        assert(lastMode("w") == "forked")
        refresh("w")
        assert(lastMode("w") == "incremental")
        check("w", totals)
        run(s"INSERT INTO orders VALUES (${10 + batch}, 'd', 3), (${20 + batch}, 'a', 1)")
        refresh("w")
        check("w", totals)
        refresh("v")
        check("v", totals)
        assert(run("COMPARE MATERIALIZED VIEW v WITH w").isEmpty)
        run("DROP MATERIALIZED VIEW w")
        check("v", totals)
      }
      checkError("CHANGELOG_VIEW_EXISTS")(run("CREATE MATERIALIZED VIEW v FROM v"))
      run("CREATE MATERIALIZED VIEW IF NOT EXISTS v FROM v")
  }

  testEach("a view is put back, and goes on", "delta" -> "in memory", "parquet" -> "RocksDB") {
    format =>
      val after = threeBatches(format)
      run(s"CREATE MATERIALIZED VIEW second USING $format AS $counts")
      run("CREATE SAVEPOINT early OF MATERIALIZED VIEW v AT BATCH 1")
      run("RESTORE MATERIALIZED VIEW v TO BATCH 1")
      assert(held("v") == after(1))
      assert(lastMode("v") == "restored")
      // who reads it gets what differs
      refresh("second")
      check("second", counts)
      refresh("v", "second")
      assert(Seq("v", "second").map(lastMode) == Seq("incremental", "incremental"))
      check("v", totals)
      check("second", counts)
      run("UPDATE orders SET amount = amount + 1")
      refresh("v", "second")
      check("v", totals)
      check("second", counts)

      run("REFRESH MATERIALIZED VIEW v FULL")
      check("v", totals)
      run("RESTORE MATERIALIZED VIEW v TO SAVEPOINT early")
      assert(held("v") == after(1))
      refresh("v", "second")
      check("v", totals)
      check("second", counts)
  }

  testEach("another query goes with a savepoint", "delta" -> "RocksDB", "parquet" -> "in pages") {
    format =>
      val after = threeBatches(format)
      run("CREATE SAVEPOINT before OF MATERIALIZED VIEW v")
      run(s"CREATE MATERIALIZED VIEW second USING $format AS $counts")
      run(s"ALTER MATERIALIZED VIEW v AS $most")
      check("v", most)
      run("INSERT INTO orders VALUES (7, 'e', 1)")
      refresh("v")
      run("RESTORE MATERIALIZED VIEW v TO SAVEPOINT before")
      assert(held("v") == after(2))
      refresh("v")
      check("v", totals)
      // a table with other columns is another one to those who read its changes
      if (format == "delta")
        checkError("CHANGELOG_READ_TABLE_REPLACED") {
          run("REFRESH MATERIALIZED VIEW second INCREMENTAL")
        }
      refresh("second")
      check("second", counts)
      val listed =
        spark.sql("SHOW SAVEPOINTS OF MATERIALIZED VIEW v").select("savepoint").collect()
      assert(listed.toSeq == Seq(Row("before")))
      run("DROP SAVEPOINT before OF MATERIALIZED VIEW v")
      checkError("CHANGELOG_SAVEPOINT_NOT_FOUND", "known" -> "none") {
        run("RESTORE MATERIALIZED VIEW v TO SAVEPOINT before")
      }
  }

  // each change of files on the way is looked at below
  if (Share.isAll)
    testEach("views change places", "delta" -> "in pages", "parquet" -> "RocksDB") { format =>
      threeBatches(format)
      run(s"CREATE MATERIALIZED VIEW second USING $format AS $counts")
      run(s"CREATE MATERIALIZED VIEW w USING $format AS $totals HAVING count(*) > 1")
      run("ALTER MATERIALIZED VIEW v SWAP WITH w")
      check("v", s"$totals HAVING count(*) > 1")
      check("w", totals)
      refresh("second")
      check("second", counts)
      run("INSERT INTO orders VALUES (8, 'e', 1), (9, 'e', 2)")
      refresh("v", "w", "second")
      assert(Seq("v", "w", "second").map(lastMode).distinct == Seq("incremental"))
      check("v", s"$totals HAVING count(*) > 1")
      check("w", totals)
      check("second", counts)
      // with other columns
      run(s"CREATE MATERIALIZED VIEW x USING $format AS $most")
      run("ALTER MATERIALIZED VIEW x SWAP WITH w")
      check("x", totals)
      check("w", most)
      run("DELETE FROM orders WHERE id = 9")
      refresh("x", "w")
      check("x", totals)
      check("w", most)
    }

  test("the commit that puts a Delta view back says which state belongs to its rows") {
    threeBatches("delta")
    def noted = spark.sql("DESCRIBE HISTORY v").where("userMetadata IS NOT NULL").count()
    val before = noted
    run("RESTORE MATERIALIZED VIEW v TO BATCH 0")
    assert(noted == before + 1)
  }

  test("two views are compared row by row") {
    threeBatches("delta")
    run(
      "CREATE MATERIALIZED VIEW w USING parquet AS SELECT customer, n, total FROM v WHERE n > 1 " +
        "UNION ALL SELECT customer, n, total FROM v WHERE n > 1")
    val found = run("COMPARE MATERIALIZED VIEW v WITH w")
    val expected = run("SELECT if(n > 1, 'w', 'v'), 1L, customer, n, total FROM v")
    assert(RowMultiset.of(found) == RowMultiset.of(expected))
    assert(
      spark.sql("COMPARE MATERIALIZED VIEW v WITH w").columns.take(2).toSeq ==
        Seq("_more_in", "_times"))
    assert(run("COMPARE MATERIALIZED VIEW v WITH v").isEmpty)
    checkError(
      "CHANGELOG_COMPARED_COLUMNS_DIFFER",
      "left" -> "v",
      "others" -> "id INT, customer STRING, amount INT") {
      run("COMPARE MATERIALIZED VIEW v WITH orders")
    }
  }

  test("what is not possible is told") {
    threeBatches("delta")
    checkError("CHANGELOG_BATCH_GONE", "batch" -> "9", "possible" -> "batch 0 to batch 2") {
      run("RESTORE MATERIALIZED VIEW v TO BATCH 9")
    }
    run("SET spark.databricks.delta.retentionDurationCheck.enabled = false")
    try run("VACUUM v RETAIN 0 HOURS")
    finally run("RESET spark.databricks.delta.retentionDurationCheck.enabled")
    checkError(
      "CHANGELOG_BATCH_GONE",
      "reason" -> "The view's rows after the batch are no longer stored.",
      "possible" -> "batch 2") {
      run("RESTORE MATERIALIZED VIEW v TO BATCH 0")
    }
    run("REFRESH MATERIALIZED VIEW v FULL")
    checkError("CHANGELOG_BATCH_GONE", "possible" -> "batch 0")(
      run("CREATE MATERIALIZED VIEW w FROM v AT BATCH 1"))
    run("CREATE MATERIALIZED VIEW w FROM v")
    check("w", totals)

    run("START MATERIALIZED VIEW v")
    checkError("CHANGELOG_VIEW_IS_RUNNING")(run("RESTORE MATERIALIZED VIEW v TO BATCH 0"))
    checkError("CHANGELOG_VIEW_IS_RUNNING")(run("ALTER MATERIALIZED VIEW w SWAP WITH v"))
    run("CREATE SAVEPOINT running OF MATERIALIZED VIEW v")
    run("STOP MATERIALIZED VIEW v")
    run(
      s"CREATE MATERIALIZED VIEW x USING parquet TBLPROPERTIES ('changelog.refreshPolicy' = 'full') AS $totals")
    checkError("CHANGELOG_VIEW_HAS_NO_BATCHES")(run("CREATE SAVEPOINT s OF MATERIALIZED VIEW x"))
    checkError("CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED")(
      run("ALTER MATERIALIZED VIEW v SWAP WITH x"))
    run(s"CREATE MATERIALIZED VIEW second USING delta AS $counts")
    checkError("CHANGELOG_VIEW_CYCLE")(run("ALTER MATERIALIZED VIEW v SWAP WITH second"))
  }

  /**
   * Ends a statement at some points, and lets `judge` look each time at what there is afterwards.
   *
   * @param last
   *   how many changes of files are of interest, those at its end
   * @param points
   *   after how many of these it ends at most
   */
  private def endingEverywhere(
      statement: String,
      last: Int = Int.MaxValue,
      points: Int = Int.MaxValue)(prepare: => Unit)(judge: => Unit): Unit = {
    prepare
    val (_, all) = EndingFileSystem.within(Int.MaxValue)(run(statement))
    assert(all > 10)
    judge
    val from = math.max(0, all - last)
    val some =
      if (Share.isAll) (from until all by math.max(1, (all - from) / points)) :+ all - 2
      else Share.ofWays(Seq((from + all) / 2, all - 2), statement)
    for (most <- some)
      withClue(s"$statement, ended after $most of $all changes: ") {
        prepare
        EndingFileSystem.ending(most)(run(statement))
        judge
      }
  }

  for (format <- Share.ofWays(Seq("delta", "parquet"), "RESTORE"))
    test(s"a view is put back whole or not at all, whenever the process ends, in $format") {
      val after = threeBatches(format)
      run("CREATE SAVEPOINT early OF MATERIALIZED VIEW v AT BATCH 0")
      run(s"CREATE MATERIALIZED VIEW second USING $format AS $counts")
      endingEverywhere("RESTORE MATERIALIZED VIEW v TO SAVEPOINT early")(refresh("v")) {
        assert(Seq(after(0), after(2)).contains(held("v")))
        refresh("second")
        assert(held("second") == rows(counts))
        refresh("v", "second")
        check("v", totals)
        check("second", counts)
      }
    }

  private val withMost = totals.replace("AS total", "AS total, max(amount) AS most")

  /** Changed queries of views, and how these are stored: files are shown in one way. */
  private val alterations = Seq(
    ("delta", "rows", s"$totals HAVING count(*) > 1"),
    ("delta", "columns", withMost),
    (
      "delta",
      "columns without values",
      totals.replace("AS total", "AS total, INT(NULL) AS none")),
    ("delta", "words", s"SELECT * FROM ($totals) WHERE n > 0"),
    ("parquet", "columns", withMost))

  for ((format, what, altered) <- Share.ofWays(alterations, "ALTER"))
    test(
      s"a view gets the $what of another query or doesn't, whenever the process ends, in $format") {
      threeBatches(format)
      run(s"CREATE MATERIALIZED VIEW second USING $format AS $counts")
      def both = Seq(totals, altered).map(rows)
      // before, a generation is made that nobody sees
      endingEverywhere(s"ALTER MATERIALIZED VIEW v AS $altered", last = 150, points = 15) {
        run(s"CREATE OR REPLACE MATERIALIZED VIEW v USING $format AS $totals")
        refresh("second")
      } {
        assert(both.contains(held("v")))
        run("UPDATE orders SET amount = amount + 1 WHERE id > 2")
        refresh("v", "second")
        assert(lastMode("v") == "incremental")
        assert(both.contains(held("v")))
        assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
        check("second", counts)
      }
    }

  for (format <- Share.ofWays(Seq("delta", "parquet"), "SWAP"))
    test(s"views change places or don't, whenever the process ends, in $format") {
      val other = s"$totals HAVING count(*) > 1"
      threeBatches(format)
      run(s"CREATE MATERIALIZED VIEW w USING $format AS $other")
      run(s"CREATE MATERIALIZED VIEW second USING $format AS $counts")
      val both = Set(held("v"), held("w"))
      endingEverywhere("ALTER MATERIALIZED VIEW v SWAP WITH w")(()) {
        Seq("v", "w").foreach(view => assert(both.contains(held(view)), view))
        // one may get other state before the other is looked at
        run("REFRESH MATERIALIZED VIEW v FULL")
        refresh("w", "v", "second")
        assert(Set(held("v"), held("w")) == both)
        check("second", counts)
        Seq("v", "w").foreach(view => assert(run(s"VERIFY MATERIALIZED VIEW $view").isEmpty))
      }
    }
}
