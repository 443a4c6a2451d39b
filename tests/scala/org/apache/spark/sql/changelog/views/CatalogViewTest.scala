// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.util.concurrent.atomic.AtomicInteger

import scala.util.Try

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.Row

import org.apache.spark.sql.changelog.checkpoint.{BatchLogs, Fence}

/** Tests views in a catalog other than the session catalog. */
trait CatalogViewTest extends ViewTest {

  /** The name of the catalog, which has a database `db`. */
  protected def catalog: String

  protected val view = s"$catalog.db.v"
  protected val second = s"$catalog.db.second"
  protected val large = s"SELECT customer, total FROM ($totals) WHERE total > 4"

  override def afterEach(): Unit = {
    RunningViews.stopAll()
    Seq(view, second).foreach(name => run(s"DROP MATERIALIZED VIEW IF EXISTS $name CASCADE"))
    super.afterEach()
  }

  protected def definition(name: String = view): ViewDefinition =
    new ViewCatalog(spark)
      .get(spark.sessionState.sqlParser.parseMultipartIdentifier(name))
      .definition

  private def thisView = new ViewCatalog(spark).get(Seq(catalog, "db", "v"))

  /** Lets the next refresh repeat the last batch, as after a process ended in its middle. */
  protected def forgetLastBatch(): Unit = {
    val checkpoint = definition().checkpoint
    val last = new BatchLogs(spark, checkpoint).lastDone.get
    val files = checkpoint.getFileSystem(spark.sessionState.newHadoopConf())
    assert(files.delete(new Path(checkpoint, s"commits/$last"), false))
  }

  protected def refresh(how: String = "", name: String = view): Seq[Row] =
    run(s"REFRESH MATERIALIZED VIEW $name $how")

  test("rows are inserted, updated and deleted, and a repeated batch is written once") {
    deliver("+I 1 Ada 5", "+I 2 Ben 3", "+I 3 Ada 1")
    for ((query, first) <- Seq(totals -> 10, s"SELECT customer, amount FROM $orders" -> 100)) {
      create(query, name = view)
      check(query, view)
      val hows = Seq("INCREMENTAL STRICT", "INCREMENTAL STRICT", "FULL", "INCREMENTAL STRICT")
      for ((how, index) <- hows.zipWithIndex) {
        val id = first + 2 * index
        deliver(s"+I $id Eve 4", s"+I ${id + 1} Eve 4", "-U 1 Ada 5", "+U 1 Ben 6")
        refresh(how)
        check(query, view)
        deliver(s"-D $id Eve 4", "-U 1 Ben 6", "+U 1 Ada 5")
        refresh("INCREMENTAL STRICT")
        check(query, view)
        forgetLastBatch()
        refresh("INCREMENTAL STRICT")
        check(query, view)
      }
      run(s"DROP MATERIALIZED VIEW $view")
    }
  }

  test("START keeps a view current, and a later refresh continues") {
    create(totals, "TBLPROPERTIES ('changelog.interval' = '0 seconds')", view)
    run(s"START MATERIALIZED VIEW $view")
    deliver("+I 1 Ada 5")
    RunningViews.active(thisView).get.processAllAvailable()
    // The catalog of this session may keep the table loaded before.
    run(s"REFRESH TABLE $view")
    check(totals, view)
    run(s"STOP MATERIALIZED VIEW $view")
    deliver("-D 1 Ada 5", "+I 2 Ben 3")
    refresh()
    check(totals, view)
  }

  test("ALTER and CREATE OR REPLACE give other columns, with the table's partitioning") {
    deliver("+I 1 Ada 5", "+I 2 Ben 3")
    create(totals, "PARTITIONED BY (customer) COMMENT 'sums' TBLPROPERTIES ('a' = '1')", view)
    val more = totals.replace("sum(amount) AS total", "max(amount) AS top, sum(amount) AS total")
    run(s"ALTER MATERIALIZED VIEW $view AS $more")
    check(more, view)
    deliver("+I 3 Ada 9")
    refresh()
    check(more, view)
    checkError("CHANGELOG_VIEW_NOT_ALTERED")(
      run(s"ALTER MATERIALIZED VIEW $view AS SELECT amount, customer FROM $orders"))
    check(more, view)
    run(s"ALTER MATERIALIZED VIEW $view SET TBLPROPERTIES ('b' = '2')")
    run(s"ALTER MATERIALIZED VIEW $view UNSET TBLPROPERTIES ('a')")
    assert(definition().properties == Map("b" -> "2") && definition().comment.contains("sums"))
    run(s"CREATE OR REPLACE MATERIALIZED VIEW $view AS $large")
    check(large, view)
    assert(definition().properties.isEmpty && definition().provider == provider)
  }

  test("views read views, and a statement sees its readers") {
    deliver("+I 1 Ada 5", "+I 2 Ben 3")
    create(totals, name = view)
    val counts = s"SELECT n, count(*) AS customers FROM $view GROUP BY n"
    create(counts, name = second)
    run(s"CREATE MATERIALIZED VIEW third AS SELECT customers FROM $second")
    deliver("+I 3 Ben 4", "-D 1 Ada 5")
    assert(run(s"REFRESH MATERIALIZED VIEW third WITH UPSTREAM").size == 3)
    check(totals, view)
    check(counts, second)
    check(s"SELECT customers FROM $second", "third")
    val reads = run(s"SHOW MATERIALIZED VIEWS IN $catalog.db").map(row =>
      row.getString(1) -> row.getSeq[String](7))
    assert(reads.toMap == Map("v" -> Nil, "second" -> Seq(view)))
    checkError("CHANGELOG_VIEW_IS_READ", "readers" -> s"`$catalog`.`db`.`second`")(
      run(s"DROP MATERIALIZED VIEW $view"))
    checkError("CHANGELOG_VIEW_CYCLE")(
      run(s"ALTER MATERIALIZED VIEW $view AS SELECT customers AS n FROM third"))
    assert(run(s"REFRESH MATERIALIZED VIEWS IN $catalog.db").size == 2)
    run(s"DROP MATERIALIZED VIEW $view CASCADE")
    assert(run("SHOW MATERIALIZED VIEWS").isEmpty)
  }

  test("changes, savepoints and forks work as for views of files") {
    deliver("+I 1 Ada 5")
    create(totals, name = view)
    run(s"CREATE SAVEPOINT s OF MATERIALIZED VIEW $view")
    val before = facts(s"DESCRIBE EXTENDED MATERIALIZED VIEW $view")("Version").toLong
    deliver("-U 1 Ada 5", "+U 1 Ada 7")
    refresh()
    val changes =
      run(s"SELECT _change_type, total FROM changes('$view', from_version => ${before + 1})")
    assert(changes.map(_.mkString(" ")).toSet == Set("delete 5", "insert 7"))
    run(s"CREATE MATERIALIZED VIEW $second FROM $view AT SAVEPOINT s")
    assert(run(s"SELECT total FROM $second") == Seq(Row(5)))
    run(s"REFRESH MATERIALIZED VIEW $second")
    check(totals, second)
    run(s"RESTORE MATERIALIZED VIEW $view TO SAVEPOINT s")
    assert(run(s"SELECT total FROM $view") == Seq(Row(5)))
  }

  test("statements that write rows are refused") {
    create(totals, name = view)
    for (statement <- Seq(
        s"INSERT INTO $view VALUES ('Ada', 1, 1)",
        s"DELETE FROM $view",
        s"UPDATE $view SET n = 1")) {
      checkError("CHANGELOG_VIEW_READ_ONLY")(run(statement))
    }
    checkError(
      "CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED",
      "clause" -> "SWAP outside the session catalog")(
      run(s"ALTER MATERIALIZED VIEW $view SWAP WITH $view"))
  }

  test("a statement that fails at any step leaves the view as before or as after") {
    deliver("+I 1 Ada 5", "+I 2 Ben 3")
    create(totals, name = view)
    val more = totals.replace("sum(amount) AS total", "max(amount) AS top, sum(amount) AS total")
    var isDone = false
    var step = 0
    while (!isDone) {
      deliver(s"+I ${10 + step} Eve $step")
      refresh("INCREMENTAL STRICT")
      val effects = new AtomicInteger(step)
      Fence.onEffect = (_, isChecked) =>
        if (isChecked && effects.getAndDecrement() == 0) throw new IllegalStateException("ended")
      val other = if (definition().query == totals) more else totals
      try isDone = Try(run(s"ALTER MATERIALIZED VIEW $view AS $other")).isSuccess
      finally Fence.onEffect = (_, _) => ()
      deliver(s"+I ${1000 + step} Ben $step")
      refresh("INCREMENTAL STRICT")
      check(definition().query, view)
      step += 1
    }
    assert(step > 5)
  }
}
