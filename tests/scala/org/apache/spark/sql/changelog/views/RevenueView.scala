// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.scalatest.{BeforeAndAfterEach, Suite}

import org.apache.spark.sql.changelog.testing.RowMultiset

/** Gives each test of a suite two Delta tables with a change feed, and a query over them for its view `v`. */
trait RevenueView extends ViewSession with BeforeAndAfterEach { this: Suite =>
  protected val revenue =
    "SELECT c.country, count(*) AS n, sum(o.amount) AS total FROM orders o " +
      "LEFT JOIN customers c USING (customer) GROUP BY ALL"

  override def beforeEach(): Unit = {
    val feed = "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    run(s"CREATE TABLE orders (id INT, customer INT, amount INT) $feed")
    run(s"CREATE TABLE customers (customer INT, country STRING) $feed")
    run("INSERT INTO customers VALUES (1, 'NO'), (2, 'IT'), (3, NULL)")
    run("INSERT INTO orders VALUES (1, 1, 10), (2, 1, 5), (3, 2, 0), (4, 3, 1), (5, NULL, 2)")
  }

  override def afterEach(): Unit = {
    run("DROP MATERIALIZED VIEW IF EXISTS v")
    Seq("orders", "customers").foreach(table => run(s"DROP TABLE IF EXISTS $table"))
  }

  /** Compares the view with batch Spark. */
  protected def check(query: String = revenue): Unit =
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(query)))
}
