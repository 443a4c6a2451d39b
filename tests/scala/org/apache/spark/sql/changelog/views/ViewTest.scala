// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.checkpoint.Fence
import org.apache.spark.sql.changelog.testing._

/** Gives a suite views over a table of files, and what they are compared with. */
trait ViewTest extends AnyFunSuite with ViewSession with ErrorChecks with BeforeAndAfterEach {
  protected def provider: String = "parquet"

  /** The providers of the suites that share tests. */
  protected def providers: Seq[String] = Seq("delta", "parquet")

  /** The table that the queries read. */
  protected def ordersTable: String = "orders"

  protected val orders =
    s"from_changelog(TABLE(SELECT * FROM STREAM $ordersTable), 'op', key => array('id'))"
  protected val totals =
    s"SELECT customer, count(*) AS n, sum(amount) AS total FROM $orders GROUP BY customer"

  override def beforeEach(): Unit =
    spark.sql(
      s"CREATE TABLE $ordersTable (op STRING, id INT, customer STRING, amount INT) USING json")

  override def afterEach(): Unit = {
    RunningViews.stopAll()
    Seq("second", "v").foreach(name => spark.sql(s"DROP MATERIALIZED VIEW IF EXISTS $name"))
    spark.sql(s"DROP TABLE $ordersTable")
  }

  /** Tests something with each provider of views, or with one of them that depends on what it is. */
  protected def testEach(name: String)(body: => Any): Unit =
    if (Share.ofWays(providers, name).contains(provider))
      test(s"$provider: $name")(body)

  protected def deliver(changes: String*): Unit = {
    val rows = changes.map(_.split(' ').toSeq.map(v => s"'$v'")).map { change =>
      val customer = change(2).replace("'NULL'", "NULL")
      s"${change(0)}, INT(${change(1)}), $customer, INT(${change(3)})"
    }
    spark.sql(s"INSERT INTO $ordersTable VALUES ${rows.mkString("(", "), (", ")")}")
  }

  protected def create(query: String, more: String = "", name: String = "v"): Unit =
    // which gives the rows of the statement, and must not run it once more
    assert(run(s"CREATE MATERIALIZED VIEW $name USING $provider $more AS $query").isEmpty)

  /** The view equals its query in batch Spark, read by its name in a session of its own. */
  protected def check(query: String, name: String = "v"): Unit = {
    val expected = RowMultiset.of(run(query.replace("STREAM ", "")))
    for (session <- Seq(spark, spark.newSession())) {
      val kept = RowMultiset.of(session.sql(s"SELECT * FROM $name").collect())
      assert(kept == expected, s"\nkept:\n$kept\nexpected:\n$expected")
    }
    assert(run(s"VERIFY MATERIALIZED VIEW $name").isEmpty)
  }

  protected def facts(sql: String): Map[String, String] =
    run(sql).map(row => row.getString(0) -> row.getString(1)).toMap
}

/** Gives each test a Delta table `plain`, and ends what the test does at the effects of statements. */
trait EffectTest extends ViewTest {
  override def beforeEach(): Unit = {
    super.beforeEach()
    run("CREATE TABLE plain (customer STRING, amount INT) USING delta")
    run("INSERT INTO plain VALUES ('Ada', 1), ('Ben', 2)")
  }

  override def afterEach(): Unit = {
    Fence.onEffect = (_, _) => ()
    super.afterEach()
    run("DROP TABLE plain")
  }
}
