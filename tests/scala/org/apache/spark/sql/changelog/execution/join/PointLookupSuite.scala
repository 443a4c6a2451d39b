// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import java.sql.DriverManager

import scala.util.{Random, Using}

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper

import org.apache.spark.sql.changelog.testing._

/** A lookup in a table of a database reads the rows with the keys of a batch, and no others. */
class PointLookupSuite extends AnyFunSuite with ChangelogSession with AdaptiveSparkPlanHelper {
  private val url = "jdbc:h2:mem:lookups;DB_CLOSE_DELAY=-1"
  private val numCustomers = 2000

  override def beforeAll(): Unit = {
    super.beforeAll()
    execute(
      "CREATE TABLE customers (id INT, region VARCHAR(20), name VARCHAR(20), rate DECIMAL(9, 2))",
      "CREATE INDEX of_id ON customers (id)",
      s"""INSERT INTO customers SELECT x, 'r' || mod(x, 3), 'n' || x, x / 4.0
         |FROM system_range(1, $numCustomers)""".stripMargin,
      // Two rows of a key, rows without a key, and texts that need care.
      "INSERT INTO customers VALUES (7, 'r1', 'again', NULL), (NULL, NULL, 'nobody', 1)",
      """INSERT INTO customers VALUES (5001, 'it''s', 'quote', 2), (5002, 'a\b";--', 'marks', 3)""")
    spark.read
      .format("jdbc")
      .options(Map("url" -> url, "dbtable" -> "customers"))
      .load()
      .createOrReplaceTempView("customers")
  }

  private def execute(statements: String*): Unit =
    Using.resource(DriverManager.getConnection(url)) { connection =>
      Using.resource(connection.createStatement()) { statement =>
        statements.foreach(statement.execute)
      }
    }

  private val batches: Seq[Seq[String]] = {
    val random = new Random(7)
    val first = Seq(
      "1 7 r1",
      "2 7 r2",
      "3 NULL r1",
      "4 9999 r0",
      "5 5001 it's",
      "6 12 NULL",
      "7 1 a\\b\";--")
    val second = (10 to 60).map { id =>
      val customer = 1 + random.nextInt(30)
      s"$id $customer r${customer % 3}"
    }
    Seq(first, second)
  }

  /** A finished query: its rows and the metrics of its lookup, summed over the batches. */
  private case class Finished(rows: RowMultiset, metrics: Map[String, Long])

  /** Runs a query over the batches. Without lookups, each batch reads the whole table. */
  private def run(sql: String, looksUp: Boolean, customers: String = "customers"): Finished = {
    val stream = new RawStream(spark, "orders", "id INT, customer INT, region STRING")
    val table = if (looksUp) s"lookup(TABLE($customers))" else customers
    val name = s"found_${java.util.UUID.randomUUID().toString.replace("-", "")}"
    val query = spark
      .sql(s"SELECT * FROM to_changelog(TABLE(${sql.replace("TABLE", table)}), mode => 'append')")
      .drop("_change_type")
      .writeStream
      .format("memory")
      .queryName(name)
      .option("checkpointLocation", QuickFileSystem.temporaryDirectory().getPath)
      .start()
    try {
      val found = batches.map { batch =>
        stream.add(batch: _*)
        query.processAllAvailable()
        val plan = query.asInstanceOf[StreamingQueryWrapper].streamingQuery.lastExecution
        collect(plan.executedPlan) { case lookup: ChangelogPointLookupExec => lookup }
          .flatMap(_.metrics.map { case (metric, value) => metric -> value.value })
      }.flatten
      assert(found.nonEmpty == looksUp, sql)
      Finished(
        RowMultiset.of(spark.table(name).collect()),
        found.groupMapReduce(_._1)(_._2)(_ + _))
    } finally query.stop()
  }

  private def withConf(settings: (String, String)*)(body: => Unit): Unit = {
    settings.foreach { case (key, value) => spark.conf.set(key, value) }
    try body
    finally settings.foreach { case (key, _) => spark.conf.unset(key) }
  }

  private val queries = Seq(
    "SELECT o.*, c.name, c.rate FROM orders o JOIN TABLE c ON o.customer = c.id",
    "SELECT o.id, c.name FROM orders o LEFT JOIN TABLE c ON o.customer = c.id AND c.rate < o.id",
    "SELECT o.* FROM orders o LEFT SEMI JOIN TABLE c ON o.customer = c.id AND o.region = c.region",
    "SELECT o.* FROM orders o LEFT ANTI JOIN TABLE c ON o.customer = c.id AND o.region = c.region",
    "SELECT o.id, c.* FROM orders o LEFT JOIN TABLE c ON c.region = o.region AND c.id = o.customer",
    """SELECT o.id, c.upper FROM orders o JOIN
      |  (SELECT id, upper(name) AS upper FROM TABLE WHERE rate > 1) c ON o.customer = c.id""".stripMargin)

  for (sql <- queries)
    test(s"a lookup finds the rows of a join: $sql") {
      val found = run(sql, looksUp = true)
      assert(found.rows == run(sql, looksUp = false).rows)
      // At most one row more per key than there are keys, and far fewer than the table has.
      val (keys, rows) = (found.metrics("numKeysLookedUp"), found.metrics("numRowsRead"))
      assert(keys > 5 && keys <= batches.flatten.size && rows > 5 && rows <= keys + 2)
    }

  test("a lookup finds the rows of a join in groups of any size") {
    val sql = queries(1)
    val expected = run(sql, looksUp = false).rows
    for (keys <- Seq(1, 2, 50); queries <- Seq(1, 3))
      withConf(
        "spark.sql.changelog.lookup.keysPerQuery" -> keys.toString,
        "spark.sql.changelog.lookup.queriesPerTask" -> queries.toString) {
        assert(run(sql, looksUp = true).rows == expected)
      }
  }

  test("a table of a JDBC catalog is looked up like one of the JDBC source") {
    val catalog = "spark.sql.catalog.shop"
    withConf(
      catalog -> "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
      s"$catalog.url" -> url,
      s"$catalog.driver" -> "org.h2.Driver") {
      for (sql <- Share.of(queries, oneIn = 3)) {
        val found = run(sql, looksUp = true, "shop.PUBLIC.CUSTOMERS")
        assert(found.rows == run(sql, looksUp = false).rows, sql)
        assert(found.metrics("numRowsRead") < numCustomers / 10, sql)
      }
    }
  }

  test("texts are searched as they are") {
    val sql =
      "SELECT o.id, c.name FROM orders o JOIN TABLE c ON o.region = c.region AND c.id > 1990"
    val found = run(sql, looksUp = true).rows
    assert(found == run(sql, looksUp = false).rows)
    assert(found.toString.contains("quote") && found.toString.contains("marks"))
  }

  test("cached keys are not read again, and other keys are") {
    val sql = queries.head
    val uncached = run(sql, looksUp = true)
    withConf("spark.sql.changelog.lookup.cachedKeys" -> "1000") {
      val first = run(sql, looksUp = true)
      assert(first.rows == uncached.rows)
      assert(first.metrics("numKeysCached") > 0)
      val second = run(sql, looksUp = true)
      assert(second.rows == uncached.rows)
      assert(second.metrics("numKeysLookedUp") == 0)
    }
  }

  test("a row that changes is found by the next batch") {
    val rows = Seq("UPDATE customers SET name = 'new' WHERE id = 12", "SELECT 1")
    val sql = "SELECT o.id, c.name FROM orders o JOIN TABLE c ON o.customer = c.id"
    assert(!run(sql, looksUp = true).rows.toString.contains("new"))
    execute(rows: _*)
    assert(run(sql, looksUp = true).rows.toString.contains("new"))
  }
}
