// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/** A view gets another query, and goes on with what it has kept. */
class ChangedViewQuerySuite extends AnyFunSuite with RevenueView {
  private def lastRefresh: (String, String) = {
    val last = spark.sql("SHOW REFRESHES OF v").select("mode", "reason").head()
    last.getString(0) -> last.getString(1)
  }

  for (provider <- Share.ofWays(Seq("delta", "parquet"), "ChangedViewQuerySuite"))
    test(s"$provider: ALTER MATERIALIZED VIEW … AS") {
      run(s"CREATE MATERIALIZED VIEW v USING $provider AS $revenue")
      run("UPDATE orders SET amount = 7 WHERE id = 2")
      run("REFRESH MATERIALIZED VIEW v")
      check(revenue)
      val large = s"$revenue HAVING sum(o.amount) > 5"
      val fates = run(s"EXPLAIN ALTER MATERIALIZED VIEW v AS $large")
      assert(fates.map(_.getString(1)) == Seq("kept", "kept"), fates)
      assert(
        fates.map(_.getString(2)) ==
          Seq("continues unchanged", "the first batch reads the result from the state"),
        fates)
      val above =
        run(
          "EXPLAIN ALTER MATERIALIZED VIEW v AS SELECT max(amount) AS m FROM orders WHERE id < 5")
      assert(above.head.getString(1) == "rebuilt", above)
      run("DELETE FROM orders WHERE id = 4") // not read before the query is another one
      run(s"ALTER MATERIALIZED VIEW v AS $large")
      check(large)
      assert(lastRefresh == ("evolved", "the query was changed; 2 of 2 nodes keep their state"))
      run("INSERT INTO orders VALUES (6, 2, 8)")
      run("DELETE FROM customers WHERE customer = 1")
      run("REFRESH MATERIALIZED VIEW v")
      check(large)
      assert(lastRefresh._1 == "incremental")

      val more = revenue.replace("AS total", "AS total, max(o.amount) AS most")
      run(s"CREATE OR REPLACE MATERIALIZED VIEW v USING $provider AS $more")
      check(more)
      // rows of a left join whose key is NULL pass, and are not kept
      assert(lastRefresh == ("full", "the view was replaced"))
      run("UPDATE orders SET amount = 1 WHERE id = 6")
      run("REFRESH MATERIALIZED VIEW v")
      check(more)
    }

  for (provider <- Share.ofWays(Seq("delta", "parquet"), "ChangedViewQuerySuite"))
    test(s"$provider: who reads the view gets what differs") {
      run(s"CREATE MATERIALIZED VIEW v USING $provider AS $revenue")
      val above = "SELECT n, sum(total) AS total FROM v GROUP BY n"
      run(s"CREATE MATERIALIZED VIEW w AS $above")
      try {
        val large = s"$revenue HAVING sum(o.amount) > 5"
        run(s"ALTER MATERIALIZED VIEW v AS $large")
        run("REFRESH MATERIALIZED VIEW w")
        assert(RowMultiset.of(run("SELECT * FROM w")) == RowMultiset.of(run(above)))
        run("INSERT INTO orders VALUES (6, 2, 8)")
        run("REFRESH MATERIALIZED VIEW w WITH UPSTREAM")
        assert(RowMultiset.of(run("SELECT * FROM w")) == RowMultiset.of(run(above)))
        run(s"ALTER MATERIALIZED VIEW v AS SELECT *, n > 1 AS several FROM ($revenue)")
        run("REFRESH MATERIALIZED VIEW w")
        assert(RowMultiset.of(run("SELECT * FROM w")) == RowMultiset.of(run(above)))
      } finally run("DROP MATERIALIZED VIEW w")
    }

  test("a constant is another one, below a view of Spark's") {
    run(
      "CREATE VIEW placed AS SELECT id, customer, amount, date_add(DATE'2024-01-01', id) AS day FROM orders")
    try {
      def since(day: String) =
        s"SELECT customer, count(*) AS n FROM placed WHERE day >= DATE'$day' GROUP BY customer"
      run(s"CREATE MATERIALIZED VIEW v USING delta AS ${since("2024-01-02")}")
      check(since("2024-01-02"))
      run(s"ALTER MATERIALIZED VIEW v AS ${since("2024-01-04")}")
      check(since("2024-01-04"))
      run("INSERT INTO orders VALUES (6, 2, 8)")
      run("REFRESH MATERIALIZED VIEW v")
      check(since("2024-01-04"))
    } finally {
      run("DROP MATERIALIZED VIEW IF EXISTS v")
      run("DROP VIEW placed")
    }
  }

  test("a function of the user is registered anew") {
    val taxed = "SELECT customer, sum(tax(amount)) AS total FROM orders GROUP BY customer"
    try {
      spark.udf.register("tax", (amount: Int) => amount + 1)
      run(s"CREATE MATERIALIZED VIEW v USING delta AS $taxed")
      check(taxed)
      spark.udf.register("tax", (amount: Int) => amount * 2)
      run(s"ALTER MATERIALIZED VIEW v AS $taxed")
      check(taxed)
      run("INSERT INTO orders VALUES (6, 2, 8)")
      run("REFRESH MATERIALIZED VIEW v")
      check(taxed)
    } finally run("DROP TEMPORARY FUNCTION tax")
  }

  test("what can't go on is computed anew") {
    // the catalog of these tests wants to have columns of partitions last
    val byCountry = s"SELECT n, total, country FROM ($revenue)"
    run(s"CREATE MATERIALIZED VIEW v USING delta PARTITIONED BY (country) AS $byCountry")
    run("REFRESH MATERIALIZED VIEW v FULL")
    run("DELETE FROM orders WHERE id = 1")
    val large = s"$byCountry WHERE total > 5"
    run("SET spark.sql.session.timeZone = Asia/Tokyo")
    try
      run(s"CREATE OR REPLACE MATERIALIZED VIEW v USING delta PARTITIONED BY (country) AS $large")
    finally run("RESET spark.sql.session.timeZone")
    check(large)
    assert(lastRefresh == ("full", "the view was replaced"))
    run("REFRESH MATERIALIZED VIEW v") // computes the state
    run(s"ALTER MATERIALIZED VIEW v AS $byCountry")
    check(byCountry)
    assert(lastRefresh._1 == "evolved")
    val partitions = spark.sql("DESCRIBE DETAIL v").select("partitionColumns").head()
    assert(partitions.getSeq[String](0) == Seq("country"))
  }
}
