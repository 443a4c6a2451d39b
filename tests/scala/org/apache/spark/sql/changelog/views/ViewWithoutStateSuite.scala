// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.File

import org.scalatest.BeforeAndAfterEach
import org.scalatest.concurrent.Eventually.{eventually, timeout}
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Seconds, Span}

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.Row

import org.apache.spark.sql.changelog.config.ChangelogConf.VIEW_STATE
import org.apache.spark.sql.changelog.testing._

/** Views whose rows are computed without state, which the first refresh computes that needs it. */
class ViewWithoutStateSuite extends AnyFunSuite with ViewSession with BeforeAndAfterEach {
  private val query =
    "SELECT c.name, count(*) AS n, sum(f.amount) AS total FROM facts f JOIN customers c " +
      "ON f.customer = c.id GROUP BY c.name"
  private val formats = Seq("delta", "parquet")

  override def beforeEach(): Unit = {
    run("CREATE TABLE facts (id INT, customer INT, amount INT) USING delta")
    run("CREATE TABLE customers (id INT, name STRING) USING delta")
    run("INSERT INTO facts SELECT id, id % 7, id FROM range(100)")
    run("INSERT INTO customers SELECT id, concat('c', id) FROM range(7)")
  }

  override def afterEach(): Unit = {
    RunningViews.stopAll()
    Seq("x", "w", "v").foreach(name => run(s"DROP MATERIALIZED VIEW IF EXISTS $name"))
    Seq("facts", "customers").foreach(name => run(s"DROP TABLE IF EXISTS $name"))
    run(s"RESET ${VIEW_STATE.key}")
  }

  private def create(format: String, text: String = query, name: String = "v"): Unit =
    run(s"CREATE MATERIALIZED VIEW $name USING $format AS $text")

  private def change(): Unit = {
    run("UPDATE facts SET amount = amount + 1000 WHERE id = 3")
    run("DELETE FROM facts WHERE id = 4")
    run("UPDATE customers SET name = 'c6' WHERE id = 5")
  }

  private def check(text: String = query, name: String = "v"): Unit = {
    assert(RowMultiset.of(run(s"SELECT * FROM $name")) == RowMultiset.of(run(text)))
    assert(run(s"VERIFY MATERIALIZED VIEW $name").isEmpty)
  }

  private def last(columns: String*): Row =
    spark.sql("SHOW REFRESHES OF v").select(columns.head, columns.tail: _*).head()

  private def hasState: Boolean =
    new File(new ViewCatalog(spark).get(Seq("v")).definition.checkpoint.toUri.getPath, "state")
      .exists()

  formats.foreach { format =>
    test(s"the first refresh computes the state, and writes what has changed: $format") {
      create(format)
      assert(!hasState && last("mode", "rows_written") == Row("full", 7))
      check()
      change()
      // rows are compared with the versions that they were computed of
      assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
      val shown = facts("DESCRIBE MATERIALIZED VIEW v").keys.filter(_.startsWith("Read of"))
      assert(shown.size == 2)
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL")
      assert(hasState)
      check()
      assert(last("mode", "reason") == Row("incremental", "the state was computed first"))
      // c3, c4 and c6 have other rows, and c5 has none
      assert(last("rows_written", "rows_retracted") == Row(3, 1))
      change()
      run("REFRESH MATERIALIZED VIEW v")
      check()
    }

    test(s"nothing has changed when the state is computed: $format") {
      create(format)
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
      assert(hasState && last("rows_written") == Row(0))
      check()
    }

    test(s"a full refresh leaves the state out once more: $format") {
      create(format)
      change()
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL")
      change()
      run("REFRESH MATERIALIZED VIEW v FULL")
      assert(!hasState)
      check()
      change()
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
      check()
    }

    Seq("ALTER MATERIALIZED VIEW v AS", s"CREATE OR REPLACE MATERIALIZED VIEW v USING $format AS")
      .foreach { statement =>
        test(
          s"a query without a key that gets other columns writes no row twice: $format, $statement") {
          def keyless(column: String) =
            s"""SELECT f.customer, $column s.total FROM facts f JOIN (
               |  SELECT customer, sum(amount) AS total FROM facts GROUP BY customer) s
               |ON f.customer = s.customer""".stripMargin
          create(format, keyless(""))
          change()
          run("REFRESH MATERIALIZED VIEW v INCREMENTAL")
          change()
          val wider = keyless("f.amount + 1 AS more,")
          run(s"$statement $wider")
          check(wider)
          change()
          run("REFRESH MATERIALIZED VIEW v INCREMENTAL")
          check(wider)
        }
      }

    test(s"a view is kept up to date by a query, with state from its start: $format") {
      create(format)
      change()
      run("START MATERIALIZED VIEW v")
      eventually(timeout(Span(60, Seconds)))(check())
    }

    test(s"savepoints, copies and other partitions get the state: $format") {
      create(format)
      run("CREATE SAVEPOINT s OF MATERIALIZED VIEW v")
      create(format, name = "w")
      run("ALTER MATERIALIZED VIEW w SET PARTITIONS 3")
      run("CREATE MATERIALIZED VIEW x FROM v")
      change()
      Seq("v", "w", "x").foreach { name =>
        run(s"REFRESH MATERIALIZED VIEW $name INCREMENTAL STRICT")
        check(name = name)
      }
      run("RESTORE MATERIALIZED VIEW v TO SAVEPOINT s")
      assert(run("SELECT sum(n) FROM v") == Seq(Row(100)))
    }

    test(s"state that can't be computed any more is refused by name: $format") {
      run("CREATE TABLE orders (id INT, customer INT) USING parquet")
      try {
        run("INSERT INTO orders VALUES (1, 1), (2, 1)")
        create(format, "SELECT customer, count(*) AS n FROM orders GROUP BY customer")
        run("INSERT OVERWRITE orders VALUES (3, 2)")
        Seq(
          "CREATE SAVEPOINT s OF MATERIALIZED VIEW v",
          "ALTER MATERIALIZED VIEW v SET PARTITIONS 3",
          "CREATE MATERIALIZED VIEW x FROM v").foreach { statement =>
          val refused = intercept[SparkThrowable](run(statement))
          assert(refused.getCondition == "CHANGELOG_TABLE_FILES_REPLACED", statement)
          assert(run("SELECT * FROM v") == Seq(Row(1, 2)))
        }
        run("REFRESH MATERIALIZED VIEW v")
        assert(run("SELECT * FROM v") == Seq(Row(2, 1)))
        run("CREATE SAVEPOINT s OF MATERIALIZED VIEW v")
      } finally run("DROP TABLE orders")
    }

    test(s"another query is computed, since there is no state to keep: $format") {
      val larger = query.replace("GROUP BY", "WHERE f.id > 3 GROUP BY")
      create(format)
      assert(run(s"EXPLAIN ALTER MATERIALIZED VIEW v AS $larger").isEmpty)
      run(s"ALTER MATERIALIZED VIEW v AS $larger")
      check(larger)
      change()
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
      check(larger)
    }

    test(s"views over views without state: $format") {
      val sums = "SELECT n % 2 AS odd, sum(total) AS total FROM v GROUP BY n % 2"
      create(format)
      create(format, sums, "w")
      check(sums, "w")
      change()
      run("REFRESH MATERIALIZED VIEW w WITH UPSTREAM")
      check()
      check(sums, "w")
      run("REFRESH MATERIALIZED VIEW v FULL")
      change()
      run("REFRESH MATERIALIZED VIEW w WITH UPSTREAM")
      check(sums, "w")
    }
  }

  test("what the sink can't keep is refused before there is a view") {
    val maps =
      "SELECT DISTINCT map(customer, n) AS m FROM (SELECT customer, count(*) AS n FROM facts GROUP BY customer)"
    intercept[SparkThrowable](create("delta", maps))
    assert(run("SHOW MATERIALIZED VIEWS").isEmpty)
  }

  test("versions that are gone before there is state") {
    create("delta")
    change()
    run("INSERT OVERWRITE facts SELECT * FROM facts")
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", value = false)
    run("VACUUM facts RETAIN 0 HOURS")
    val error =
      intercept[SparkThrowable](run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT"))
    assert(error.getSqlState.nonEmpty)
    run("REFRESH MATERIALIZED VIEW v")
    assert(last("mode") == Row("full"))
    check()
  }

  test("state is computed at once where somebody says so, and where rows can't be recomputed") {
    run(s"SET ${VIEW_STATE.key} = early")
    create("parquet")
    assert(hasState)
    run("DROP MATERIALIZED VIEW v")
    run(s"RESET ${VIEW_STATE.key}")
    run(
      "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('changelog.refreshPolicy' = 'incremental') " +
        s"AS $query")
    assert(hasState)
  }

  test("a failed first refresh leaves a view from which the next one goes on") {
    create(
      "delta",
      "SELECT customer, sum(10 / amount) AS n FROM facts WHERE id > 0 GROUP BY customer")
    run("INSERT INTO facts VALUES (1000, 1, 0)")
    intercept[Throwable](run("REFRESH MATERIALIZED VIEW v INCREMENTAL"))
    run("DELETE FROM facts WHERE id = 1000")
    run("REFRESH MATERIALIZED VIEW v")
    assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
  }

  private def facts(sql: String): Map[String, String] =
    run(sql).map(row => row.getString(0) -> row.getString(1)).toMap
}
