// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.File
import java.util.concurrent.atomic.AtomicReference

import scala.concurrent.ExecutionContext.Implicits.global
import scala.concurrent.duration._
import scala.concurrent.{Await, Future}

import org.scalatest.BeforeAndAfterEach
import org.scalatest.concurrent.Eventually.{eventually, timeout}
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Seconds, Span}

import org.apache.spark.sql.changelog.testing._

/** Views over plain tables, without `STREAM`, which are refreshed by what has changed in them. */
class FollowedTablesSuite
    extends AnyFunSuite
    with ViewSession
    with ErrorChecks
    with BeforeAndAfterEach {
  import FollowedTablesSuite._

  private val revenue =
    "SELECT c.country, count(*) AS n, sum(o.amount) AS total FROM orders o " +
      "JOIN customers c USING (customer) GROUP BY ALL"

  override def afterEach(): Unit = {
    run("DROP MATERIALIZED VIEW IF EXISTS v")
    Seq("orders", "customers").foreach(table => run(s"DROP TABLE IF EXISTS $table"))
  }

  private def facts: Map[String, String] =
    run("DESCRIBE MATERIALIZED VIEW v").map(row => row.getString(0) -> row.getString(1)).toMap

  private def make(orders: String, customers: String): Unit = {
    run(s"CREATE TABLE orders (id INT, customer INT, amount DOUBLE) $orders")
    run(s"CREATE TABLE customers (customer INT, country STRING) $customers")
    run("INSERT INTO customers VALUES (1, 'NO'), (2, 'IT'), (3, NULL)")
    run("INSERT INTO orders VALUES (1, 1, 10), (2, 1, 5.5), (3, 2, -0.0), (4, 3, 1)")
  }

  private def create(query: String, more: String = ""): Unit =
    run(s"CREATE MATERIALIZED VIEW v USING delta $more AS $query")

  /** After a refresh the view equals its query, and was not computed anew. */
  private def check(query: String, how: String = "incremental", more: String = ""): Unit = {
    run(s"REFRESH MATERIALIZED VIEW v $more")
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(query)))
    assert(facts("Last refresh").contains(s", $how,"), facts)
  }

  private val feed = "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
  private val noFeed = "USING delta TBLPROPERTIES (delta.enableDeletionVectors = false)"
  private val vectors = "USING delta TBLPROPERTIES (delta.enableDeletionVectors = true)"

  Seq("change feeds" -> feed, "files" -> noFeed, "deletion vectors" -> vectors).foreach {
    case (name, format) =>
      test(s"Delta tables are followed by $name") {
        make(format, format)
        create(revenue)
        check(revenue)
        val rounds = Seq(
          Seq(
            "UPDATE orders SET amount = amount + 1 WHERE id = 2",
            "DELETE FROM customers WHERE customer = 2"),
          Seq(
            """MERGE INTO orders t USING (SELECT * FROM VALUES (1, 3, 7.0), (9, 2, 2.5) AS s(id, customer, amount)) s
            |ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""".stripMargin,
            "INSERT INTO customers VALUES (2, 'NO'), (2, 'NO')",
            "OPTIMIZE orders"),
          Seq(
            "INSERT OVERWRITE customers VALUES (1, 'SE'), (2, 'SE')",
            "RESTORE TABLE orders TO VERSION AS OF 1"))
        Share.ofWays(rounds, s"$name of a table").foreach { statements =>
          statements.foreach(run)
          withClue(statements)(check(revenue))
        }
        assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
      }
  }

  test("files of a table are followed as long as they only come") {
    Share.ofWays(Seq("parquet", "json", "orc", "csv"), "files of a table").foreach { format =>
      make(s"USING $format PARTITIONED BY (customer)", s"USING $format")
      create(revenue)
      run("INSERT INTO orders (id, customer, amount) VALUES (7, 2, 8), (8, 1, 9)")
      check(revenue)
      run("INSERT INTO customers VALUES (2, 'NO'), (2, 'NO')")
      check(revenue)
      run("INSERT OVERWRITE customers VALUES (1, 'SE'), (2, 'SE')")
      checkError(
        "CHANGELOG_TABLE_FILES_REPLACED",
        "table" -> "`spark_catalog`.`default`.`customers`")(
        run("REFRESH MATERIALIZED VIEW v INCREMENTAL"))
      check(revenue, "full")
      assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
      run("INSERT INTO customers VALUES (3, 'DK')")
      check(revenue)
      afterEach()
    }
  }

  test("files are followed that the query names by their folder") {
    val folder = new File(QuickFileSystem.temporaryDirectory(), "orders").getPath
    def deliver(values: String) =
      spark.sql(s"SELECT * FROM VALUES $values AS t(id, amount)").write.mode("append").orc(folder)
    deliver("(1, 5), (2, 6)")
    val query = s"SELECT count(*) AS n, sum(amount) AS total FROM orc.`$folder`"
    create(query)
    deliver("(3, 7)")
    check(query)
  }

  test("a table that was made anew, or has other columns, is read as a whole") {
    Share.ofWays(Seq(feed, noFeed), "anew").foreach { format =>
      make(format, format)
      create(revenue)
      run("DROP TABLE customers")
      run(s"CREATE TABLE customers (customer INT, country STRING) $format")
      run("INSERT INTO customers VALUES (1, 'NO')")
      checkError("CHANGELOG_TABLE_REPLACED", "version" -> "1")(
        run("REFRESH MATERIALIZED VIEW v INCREMENTAL"))
      check(revenue, "full")
      run("ALTER TABLE customers ADD COLUMNS (city STRING FIRST)")
      run("INSERT INTO customers VALUES ('Rome', 2, 'IT')")
      checkError("CHANGELOG_TABLE_COLUMNS_CHANGED")(
        run("REFRESH MATERIALIZED VIEW v INCREMENTAL"))
      check(revenue, "full")
      run("UPDATE customers SET country = 'X' WHERE customer = 2")
      check(revenue)
      afterEach()
    }
  }

  test("a comment on a nested field is no other column") {
    run(s"CREATE TABLE orders (id INT, place STRUCT<city: STRING, street: STRING>) $feed")
    run("INSERT INTO orders VALUES (1, struct('Oslo', 'A')), (2, struct('Rome', 'B'))")
    create("SELECT id, place FROM orders")
    run("ALTER TABLE orders ALTER COLUMN place.city COMMENT 'where it is'")
    run("UPDATE orders SET id = 3 WHERE id = 1")
    check("SELECT id, place FROM orders")
  }

  test("a change feed may be switched on and off under a view") {
    make(noFeed, noFeed)
    create(revenue)
    for ((on, id) <- Seq(true -> 11, false -> 12, true -> 13)) {
      run(s"UPDATE orders SET amount = $id WHERE id = 2")
      run(s"ALTER TABLE orders SET TBLPROPERTIES (delta.enableChangeDataFeed = $on)")
      run(s"INSERT INTO orders VALUES ($id, 2, 1)")
      run("UPDATE orders SET customer = 3 - customer WHERE customer < 3")
      run("DELETE FROM orders WHERE id = 3")
      check(revenue)
      run(s"INSERT INTO orders VALUES (3, 1, $id)")
      if (!on) check(revenue)
    }
  }

  test("commits and files that are gone are told, and all is read again") {
    make("USING delta TBLPROPERTIES (delta.checkpointInterval = 2)", noFeed)
    create(revenue)
    (5 to 8).foreach(id => run(s"INSERT INTO orders VALUES ($id, 1, 2)"))
    val log = new File(warehouse, "orders/_delta_log")
    assert(log.list().exists(_.endsWith("4.checkpoint.parquet")), log.list().toSeq)
    log.listFiles().filter(_.getName.contains("00003.")).foreach(file => assert(file.delete()))
    checkError("CHANGELOG_TABLE_CHANGES_LOST", "version" -> "1")(
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL"))
    check(revenue, "full")
    run("UPDATE customers SET country = 'DK' WHERE customer = 1")
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try run("VACUUM customers RETAIN 0 HOURS")
    finally spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    checkError("CHANGELOG_TABLE_FILES_GONE")(run("REFRESH MATERIALIZED VIEW v INCREMENTAL"))
    check(revenue, "full")
  }

  test("INCREMENTAL STRICT tells by one condition why all would have to be computed anew") {
    make(feed, noFeed)
    create(revenue)
    run("DROP TABLE customers")
    run(s"CREATE TABLE customers (customer INT, country STRING) $feed")
    def refused(statement: String, reason: String) = {
      val error = checkError("CHANGELOG_VIEW_NOT_RECOMPUTABLE")(run(statement))
      assert(error.getMessage.contains(s"[$reason]"), error.getMessage)
    }
    refused("REFRESH MATERIALIZED VIEW v INCREMENTAL  strict", "CHANGELOG_TABLE_REPLACED")
    run(
      "ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('changelog.refreshPolicy' = 'incremental strict')")
    refused("REFRESH MATERIALIZED VIEW v", "CHANGELOG_TABLE_REPLACED")
    assert(facts("Failure").contains("CHANGELOG_VIEW_NOT_RECOMPUTABLE"), facts)
    run("REFRESH MATERIALIZED VIEW v FULL")
    run("INSERT INTO customers VALUES (1, 'NO')")
    check(revenue)
    run("ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('changelog.refreshPolicy' = 'full')")
    run("REFRESH MATERIALIZED VIEW v")
    run("ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('changelog.refreshPolicy' = 'auto')")
    refused("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT", "CHANGELOG_VIEW_NOT_BEGUN")
    run("DROP MATERIALIZED VIEW v")
    checkError("CHANGELOG_NONDETERMINISTIC_EXPRESSION")(
      create(
        "SELECT rand() AS r FROM orders",
        "TBLPROPERTIES ('changelog.refreshPolicy' = 'INCREMENTAL STRICT')"))
  }

  test("a view goes on by changes after it was computed at once") {
    make(feed, noFeed)
    create(revenue, "TBLPROPERTIES ('changelog.refreshPolicy' = 'full')")
    run("DELETE FROM orders WHERE id = 1")
    check(revenue, "full")
    run("ALTER TABLE v SET TBLPROPERTIES ('changelog.refreshPolicy' = 'incremental')")
    checkError("CHANGELOG_VIEW_NOT_BEGUN")(run("REFRESH MATERIALIZED VIEW v"))
    run("ALTER TABLE v SET TBLPROPERTIES ('changelog.refreshPolicy' = 'auto')")
    check(revenue, "full")
    run("DELETE FROM orders WHERE id = 2")
    check(revenue)
  }

  test("views, common tables, subqueries and temporary views are looked through") {
    make(feed, noFeed)
    run("CREATE VIEW rich AS SELECT * FROM orders WHERE amount > 1")
    run("CREATE OR REPLACE TEMP VIEW known AS SELECT * FROM customers WHERE country IS NOT NULL")
    try {
      val query =
        """WITH best AS (SELECT customer, max(amount) AS most FROM rich GROUP BY customer)
          |SELECT country, most, (SELECT count(*) FROM orders) AS n FROM best JOIN known USING (customer)
          |WHERE customer IN (SELECT customer FROM orders)""".stripMargin
      create(query)
      run("DELETE FROM orders WHERE id = 1")
      run("INSERT INTO customers VALUES (3, 'NO')")
      check(query)
    } finally {
      run("DROP VIEW rich")
      run("DROP VIEW known")
    }
  }

  test("what can't be kept by changes is computed anew, unless that is refused") {
    make(feed, noFeed)
    val query = "SELECT id, amount * rand(1) < 0 AS r FROM orders"
    checkError("CHANGELOG_NONDETERMINISTIC_EXPRESSION")(
      create(query, "TBLPROPERTIES ('changelog.refreshPolicy' = 'incremental')"))
    create(query)
    run("DELETE FROM orders WHERE id = 1")
    run("REFRESH MATERIALIZED VIEW v")
    assert(run("SELECT * FROM v").size == 3 && facts("Last refresh").contains(", full,"))
    assert(facts("Plan").startsWith("recomputed"), facts)
  }

  test("a policy by which nothing is computed anew is kept to, however it came to be") {
    run("CREATE TABLE orders (id INT, v VARIANT) USING parquet")
    run("INSERT INTO orders VALUES (1, parse_json('1'))")
    // as variants can't be compared with a copy
    val copies = "TBLPROPERTIES ('changelog.follow' = 'copies')"
    create("SELECT id FROM orders", copies)
    check("SELECT id FROM orders", "full")
    Seq("incremental", "incremental strict").foreach { policy =>
      run(s"ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('changelog.refreshPolicy' = '$policy')")
      checkError("CHANGELOG_VIEW_NOT_INCREMENTAL")(run("REFRESH MATERIALIZED VIEW v"))
    }
    check("SELECT id FROM orders", "full", "FULL")
  }

  test("whether tables are followed may be altered") {
    make(feed, feed)
    create(revenue)
    run("ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('changelog.follow' = 'streams')")
    run("INSERT INTO orders VALUES (7, 2, 8)")
    check(revenue, "full")
    assert(facts("Plan").startsWith("recomputed"))
    run("ALTER MATERIALIZED VIEW v UNSET TBLPROPERTIES ('changelog.follow')")
    check(revenue, "full")
    run("INSERT INTO orders VALUES (8, 2, 8)")
    check(revenue)
  }

  test("STREAM of a table whose rows change names the change feed") {
    make(feed, noFeed)
    Seq("DELETE FROM orders WHERE id = 1", "UPDATE orders SET amount = 0 WHERE id = 2").foreach {
      change =>
        create("SELECT * FROM STREAM orders")
        run(change)
        val error =
          checkError("CHANGELOG_STREAM_OF_CHANGED_TABLE")(run("REFRESH MATERIALIZED VIEW v"))
        // Delta's own advice loses changes
        assert(!error.getMessage.contains("skipChangeCommits"), error.getMessage)
        run("START MATERIALIZED VIEW v")
        eventually(timeout(Span(60, Seconds)))(assert(facts("Status") == "FAILED"))
        assert(facts("Failure").contains("CHANGELOG_STREAM_OF_CHANGED_TABLE"), facts)
        run("REFRESH MATERIALIZED VIEW v FULL")
        assert(facts("Status") == "IDLE" && !facts.contains("Failure"), facts)
        val states = spark.sql("SHOW REFRESHES OF v").selectExpr("concat(mode, ' ', state)")
        assert(
          states.take(2).map(_.getString(0)).toSeq == Seq("full SUCCEEDED", "started FAILED"))
        run("DROP MATERIALIZED VIEW v")
    }
  }

  test("tables beside a stream are followed, too, unless the view or the query says otherwise") {
    make(feed, noFeed)
    val query = revenue.replace("orders o", "STREAM orders o")
    create(query)
    run("DELETE FROM customers WHERE customer = 2")
    check(revenue)
    run("DROP MATERIALIZED VIEW v")
    Seq(
      query -> "TBLPROPERTIES ('changelog.follow' = 'streams')",
      query.replace(
        "JOIN customers c USING (customer)",
        "JOIN lookup(TABLE(customers)) c ON o.customer = c.customer") -> "").foreach {
      case (query, properties) =>
        create(query, properties)
        val before = run("SELECT * FROM v").toSet
        run("DELETE FROM customers WHERE customer = 3")
        run("REFRESH MATERIALIZED VIEW v")
        assert(run("SELECT * FROM v").toSet == before)
        run("DROP MATERIALIZED VIEW v")
    }
  }

  private val atOneMoment = Seq("Delta" -> feed, "Parquet" -> "USING parquet")

  Share.ofWays(atOneMoment, "moment").foreach { case (name, format) =>
    test(s"views that one statement refreshes see a table of $name at one moment") {
      make(format, format)
      spark.udf.register("arriving", arriving)
      create("SELECT sum(arriving(id)) AS ids FROM orders")
      run("CREATE MATERIALIZED VIEW w USING delta AS SELECT max(id) AS m, sum(id) AS ids FROM orders")
      def ids = Seq("v", "w").map(view => run(s"SELECT ids FROM $view").head.getLong(0))
      try {
        run("INSERT INTO orders VALUES (5, 1, 1)")
        // while the first view is refreshed
        arrival.set(Some(() => run("INSERT INTO orders VALUES (99, 1, 1)")))
        run("REFRESH MATERIALIZED VIEWS")
        assert(arrival.get.isEmpty && ids == Seq(15, 15))
        run("REFRESH MATERIALIZED VIEW w")
        arrival.set(Some(() => run("REFRESH MATERIALIZED VIEW w")))
        run("INSERT INTO orders VALUES (100, 1, 1)")
        // the second has come further than that moment by then
        run("REFRESH MATERIALIZED VIEWS")
        assert(arrival.get.isEmpty && ids == Seq(214, 214))
        // the oldest is that of CREATE
        val later = run("SHOW REFRESHES OF w").map(_.getString(2)).dropRight(1)
        assert(later.toSet == Set("incremental"))
      } finally run("DROP MATERIALIZED VIEW w")
    }
  }

  test("EXPLAIN and DESCRIBE say how each table is followed, and at which version it was read") {
    make(feed, noFeed)
    run("CREATE TABLE rates (country STRING, rate INT) USING parquet")
    try {
      val query = revenue.replace("GROUP BY", "JOIN rates USING (country) GROUP BY")
      val text = run(s"EXPLAIN CREATE MATERIALIZED VIEW v AS $query").head.getString(0)
      val orders = "`spark_catalog`.`default`.`orders`"
      assert(text.contains(s"$orders is followed by its change data feed"), text)
      assert(
        text.contains(
          "ALTER TABLE `spark_catalog`.`default`.`customers` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)"),
        text)
      assert(text.contains("by the list of its files"), text)
      create(query)
      assert(facts("Read of " + orders) == "version 1, followed by its change data feed", facts)
      run("DELETE FROM orders WHERE id = 1")
      check(query)
      assert(facts("Read of " + orders).startsWith("version 2, "), facts)
    } finally run("DROP TABLE rates")
  }
}

object FollowedTablesSuite {

  /** What happens when the next row is read. */
  private val arrival = new AtomicReference[Option[() => Any]](None)

  private val arriving: Int => Int = { id =>
    arrival.getAndSet(None).foreach { happens =>
      Await.result(Future(happens()), 60.seconds)
    }
    id
  }
}
