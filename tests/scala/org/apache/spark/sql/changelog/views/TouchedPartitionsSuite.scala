// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import scala.util.Random

import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Row

import org.apache.spark.sql.changelog.checkpoint.BatchLogs
import org.apache.spark.sql.changelog.testing._

/** Views whose changed partitions are recomputed. */
class TouchedPartitionsSuite extends AnyFunSuite with ViewSession with BeforeAndAfterEach {

  override def beforeEach(): Unit = {
    run("""CREATE TABLE sales (id INT, store INT, amount DECIMAL(10,2), day DATE, region STRING)
      USING delta PARTITIONED BY (day, region)""")
    run(
      """INSERT INTO sales SELECT id, id % 5, id, date_add(DATE'2026-01-01', CAST(id % 30 AS INT)),
      CASE id % 3 WHEN 0 THEN 'north' WHEN 1 THEN 'south' END FROM range(200)""")
    run("CREATE TABLE stores (store INT, name STRING) USING delta")
    run("INSERT INTO stores SELECT id, concat('store ', id) FROM range(4)")
  }

  override def afterEach(): Unit = {
    run("DROP MATERIALIZED VIEW IF EXISTS v")
    Seq("sales", "stores").foreach(name => run(s"DROP TABLE IF EXISTS $name"))
  }

  private def create(query: String, format: String): Unit =
    run(s"CREATE MATERIALIZED VIEW v USING $format AS $query")

  /** Refreshes the view, compares its rows, and returns the mode and reason. */
  private def refresh(query: String): (String, String) = {
    run("REFRESH MATERIALIZED VIEW v")
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(query)))
    val Row(mode: String, reason: String) =
      spark.sql("SHOW REFRESHES OF v").select("mode", "reason").head()
    (mode, reason)
  }

  private val queries = Seq(
    "SELECT day, count(*) AS n, sum(amount) AS total FROM sales GROUP BY day",
    "SELECT month(day) AS m, region, max(amount) AS most FROM sales GROUP BY month(day), region",
    "SELECT trunc(day, 'WEEK') AS week, count(DISTINCT store) AS stores FROM sales GROUP BY 1",
    "SELECT region AS r, n FROM (SELECT region, day, count(*) AS n FROM sales GROUP BY ALL) WHERE n > 2",
    """SELECT s.day, st.name, s.amount FROM sales s LEFT JOIN stores st ON s.store = st.store
      WHERE s.amount > 50""",
    """SELECT day, id, rank() OVER (PARTITION BY day ORDER BY amount DESC, id) AS place
      FROM sales WHERE region IS NOT NULL""",
    "SELECT DISTINCT day, store FROM sales WHERE store IN (SELECT store FROM stores)",
    "SELECT day, region, id, amount FROM sales")

  for ((query, number) <- queries.zipWithIndex) {
    val format = if (number % 2 == 0) "delta" else "parquet"
    test(s"rows of changed partitions are replaced: $format, query $number") {
      create(query, format)
      val changes = Seq(
        "UPDATE sales SET amount = amount + 1 WHERE id IN (2, 32)",
        "DELETE FROM sales WHERE day = DATE'2026-01-04'",
        "INSERT INTO sales VALUES (5000, 1, 7, DATE'2026-01-08', NULL), (5001, 9, 7, NULL, 'west')",
        "UPDATE sales SET day = DATE'2026-01-05' WHERE id = 13",
        "OPTIMIZE sales")
      changes.foreach { change =>
        run(change)
        val (mode, reason) = refresh(query)
        assert(mode == "partitions", reason)
      }
      assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
      // another table, too: partitions no longer tell which rows have changed
      run("UPDATE stores SET name = upper(name) WHERE store = 1")
      run("UPDATE sales SET amount = amount + 1 WHERE id = 2")
      assert(
        (refresh(query)._1 == "partitions") != "(FROM|JOIN) stores".r
          .findFirstIn(query)
          .isDefined)
    }
  }

  test("the changes of a view are those of its rows") {
    val query = queries.head
    create(query, "delta")
    val first = run("DESCRIBE HISTORY v LIMIT 1").head.getLong(0)
    run("UPDATE sales SET amount = amount + 1 WHERE id = 2")
    run("INSERT INTO sales VALUES (5000, 1, 7, DATE'2026-05-01', 'west')")
    run("DELETE FROM sales WHERE day = DATE'2026-01-04'")
    assert(refresh(query)._1 == "partitions")
    val changes = run(s"SELECT _change_type FROM table_changes('v', ${first + 1})")
    assert(
      changes.map(_.getString(0)).sorted ==
        Seq("delete", "insert", "update_postimage", "update_preimage"))
  }

  Seq(
    "no column of the view comes from the partition" ->
      "SELECT store, sum(amount) AS total FROM sales GROUP BY store",
    "the table is read twice" ->
      "SELECT a.day, a.id FROM sales a WHERE a.id = (SELECT max(id) FROM sales)",
    "other partitions decide about the row" ->
      "SELECT day, id, rank() OVER (ORDER BY amount DESC, id) AS place FROM sales",
    "rows of a side come without a partner" ->
      "SELECT s.day, st.name FROM stores st LEFT JOIN sales s ON s.store = st.store",
    "a limit takes rows of all partitions" ->
      "SELECT day, id FROM sales ORDER BY amount DESC, id LIMIT 10",
    "an union has other rows" ->
      "SELECT day, id FROM sales UNION ALL SELECT DATE'2026-01-03', store FROM stores",
    "sets of columns leave the partition out" ->
      "SELECT day, region, count(*) AS n FROM sales GROUP BY CUBE (day, region)",
    "the time decides" ->
      "SELECT day, id FROM sales WHERE day > current_date() - INTERVAL 400 DAYS").foreach {
    case (why, query) =>
      test(s"changed partitions don't tell which rows change: $why") {
        create(query, "delta")
        run("UPDATE sales SET amount = amount + 1 WHERE id IN (2, 32)")
        assert(refresh(query)._1 == "incremental")
      }
  }

  test("if most partitions have changed, the whole view is recomputed or gets its state") {
    create(queries.head, "delta")
    run("UPDATE sales SET amount = amount + 1 WHERE id % 30 < 25")
    assert(refresh(queries.head)._1 != "partitions")
  }

  test("a subquery that may choose other rows in another run is computed for all partitions") {
    val query = "SELECT day, id FROM sales WHERE store IN (SELECT store FROM stores LIMIT 2)"
    create(query, "delta")
    run("UPDATE sales SET amount = amount + 1, store = 0 WHERE day = DATE'2026-01-03'")
    assert(refresh(query)._1 != TouchedPartitions.Mode)
  }

  test("EXPLAIN tells the partitions and the columns") {
    val Row(text: String) = run(s"EXPLAIN CREATE MATERIALIZED VIEW v AS ${queries(1)}").head
    assert(
      text.contains("few partitions of `spark_catalog`.`default`.`sales` have changed"),
      text)
    assert(text.contains("recomputes the rows with the changed values of m or region"), text)
  }

  test("names in the query that mean something else") {
    run("CREATE VIEW large AS SELECT * FROM sales WHERE amount > 5")
    run("CREATE FUNCTION week_of(d DATE) RETURNS DATE RETURN trunc(d, 'WEEK')")
    val query = "SELECT week_of(day) AS week, count(*) AS n FROM large GROUP BY week_of(day)"
    try {
      create(query, "delta")
      run("UPDATE sales SET amount = amount + 1 WHERE id = 2")
      assert(refresh(query)._1 == "partitions")
      run("CREATE OR REPLACE VIEW large AS SELECT * FROM sales WHERE amount > 50")
      run("UPDATE sales SET amount = amount + 1 WHERE id = 2")
      assert(refresh(query)._1 != "partitions")
    } finally {
      run("DROP VIEW large")
      run("DROP FUNCTION week_of")
    }
  }

  test("a partition for which the column of the view can't be computed") {
    val query = "SELECT CAST(region AS INT) AS r, count(*) AS n FROM numbered " +
      "WHERE region RLIKE '^[0-9]+$' GROUP BY CAST(region AS INT)"
    run(
      "CREATE TABLE numbered USING delta PARTITIONED BY (region) AS " +
        "SELECT id, CASE WHEN id < 9 THEN CAST(id AS STRING) ELSE 'north' END AS region FROM range(20)")
    try {
      create(query, "delta")
      run("DELETE FROM numbered WHERE id IN (1, 12)")
      refresh(query)
      run("DELETE FROM numbered WHERE id = 2")
      assert(refresh(query)._1 == "partitions")
    } finally run("DROP TABLE numbered")
  }

  test("a table that was dropped and made again") {
    create(queries.head, "delta")
    run("CREATE TABLE copied USING delta PARTITIONED BY (day, region) AS SELECT * FROM sales")
    run("DROP TABLE sales")
    run("ALTER TABLE copied RENAME TO sales")
    run("DELETE FROM sales WHERE id < 7")
    assert(refresh(queries.head)._1 == "full")
  }

  test("a process that ended before the rows were marked as without state") {
    create(queries.head, "delta")
    def logs = new BatchLogs(spark, new ViewCatalog(spark).get(Seq("v")).definition.checkpoint)
    assert(logs.isWithoutState)
    // as when Spark has noted the batch as done, and the process ended
    logs.markWithoutState()
    run("UPDATE sales SET amount = amount + 1 WHERE id % 30 < 25")
    run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
    refresh(queries.head)
    assert(!logs.isWithoutState && logs.done.contains(0L))
  }

  test("columns that a table gets, and a table of the same name") {
    create(queries.head, "delta")
    run("ALTER TABLE sales ADD COLUMNS (note STRING)")
    run("UPDATE sales SET amount = amount + 1 WHERE id = 2")
    assert(refresh(queries.head)._1 != "partitions")
    run(
      "CREATE OR REPLACE TABLE sales USING delta PARTITIONED BY (region) AS SELECT * FROM sales")
    assert(refresh(queries.head)._1 != "partitions")
  }

  test("incremental refreshes and full ones in between") {
    val query = queries.head
    val random = new Random(7)
    create(query, "delta")
    val modes = (1 to 12).map { _ =>
      run(s"UPDATE sales SET amount = amount + 1 WHERE id = ${random.nextInt(200)}")
      if (random.nextInt(3) == 0) run(s"REFRESH MATERIALIZED VIEW v FULL")
      else if (random.nextInt(4) == 0) run("ALTER MATERIALIZED VIEW v SET PARTITIONS 3")
      run(s"UPDATE sales SET amount = amount + 1 WHERE id = ${random.nextInt(200)}")
      refresh(query)._1
    }
    assert(modes.toSet == Set("partitions", "incremental"))
  }
}
