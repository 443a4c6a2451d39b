// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** Views over tables that get further columns. */
class AddedColumnsSuite
    extends AnyFunSuite
    with ViewSession
    with ErrorChecks
    with BeforeAndAfterEach {
  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    ChangelogSession.DeltaConf ++ ChangelogSession.Quick +
      ("spark.sql.warehouse.dir" -> warehouse.getPath))

  private val feed = "'delta.enableChangeDataFeed' = 'true'"
  private val noFeed = "'delta.enableDeletionVectors' = 'false'"
  private val mapped = s"$feed, 'delta.columnMapping.mode' = 'name'"
  private val sums =
    "SELECT customer, count(*) AS n, sum(amount) AS total FROM orders GROUP BY customer"

  override def afterEach(): Unit = {
    Seq("x", "w", "v").foreach(view => run(s"DROP MATERIALIZED VIEW IF EXISTS $view"))
    run("DROP TABLE IF EXISTS orders")
  }

  private def make(properties: String): Unit = {
    run(
      s"CREATE TABLE orders (id INT, customer INT, amount INT) USING delta TBLPROPERTIES ($properties)")
    run("INSERT INTO orders VALUES (1, 1, 10), (2, 2, 20), (3, 1, 5)")
  }

  private def create(
      query: String,
      change: Option[String] = None,
      provider: String = "delta",
      columns: String = ""): Unit = {
    val properties =
      change.fold("")(value => s"TBLPROPERTIES ('changelog.onSchemaChange' = '$value')")
    run(s"CREATE MATERIALIZED VIEW v $columns USING $provider $properties AS $query")
  }

  private def check(query: String, mode: String): Unit = {
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(query)))
    assert(spark.sql("SHOW REFRESHES OF v").select("mode").head().getString(0) == mode)
    assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
  }

  test("state goes on when a table gets columns that the query does not read") {
    Seq(feed, noFeed, mapped).foreach { properties =>
      make(properties)
      create(sums)
      run("INSERT INTO orders VALUES (4, 2, 1)")
      run("REFRESH MATERIALIZED VIEW v")
      check(sums, "incremental")
      run("INSERT INTO orders VALUES (5, 3, 2)")
      run("ALTER TABLE orders ADD COLUMNS (note STRING)")
      run("INSERT INTO orders VALUES (6, 3, 7, 'x')")
      run("ALTER TABLE orders ADD COLUMNS (more STRUCT<a: INT>)")
      run("UPDATE orders SET amount = 11, note = 'y' WHERE id = 1")
      run("DELETE FROM orders WHERE id = 2")
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
      check(sums, "incremental")
      run("DELETE FROM orders WHERE id = 6")
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
      check(sums, "incremental")
      afterEach()
    }
  }

  for (format <- Seq("parquet", "orc", "json");
    partitions <- Seq("", "PARTITIONED BY (customer)"))
    test(s"state goes on when files of a table get columns: $format $partitions".trim) {
      def insert(rows: String, more: String = ""): Unit =
        run(s"INSERT INTO orders (id, customer, amount$more) VALUES $rows")
      run(s"CREATE TABLE orders (id INT, customer INT, amount INT) USING $format $partitions")
      insert("(1, 1, 10), (2, 2, 20)")
      create(sums, provider = "parquet")
      run("CREATE MATERIALIZED VIEW w USING parquet AS SELECT * FROM v WHERE total > 5")
      insert("(3, 1, 5)")
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
      insert("(4, 3, 2)")
      run("ALTER TABLE orders ADD COLUMNS (note STRING)")
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
      check(sums, "incremental")
      insert("(5, 3, 7, 'x')", ", note")
      run("ALTER TABLE orders ADD COLUMNS (more STRUCT<a: INT>)")
      insert("(6, 3, 7, 'x', named_struct('a', 1))", ", note, more")
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
      check(sums, "incremental")
      run("REFRESH MATERIALIZED VIEW w INCREMENTAL STRICT")
      assert(run("VERIFY MATERIALIZED VIEW w").isEmpty)
      val noted = s"${sums.replace("count(*) AS n", "count(note) AS n")}"
      run(s"ALTER MATERIALIZED VIEW v AS $noted")
      insert("(7, 1, 7, 'y', NULL)", ", note, more")
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
      check(noted, "incremental")
    }

  test("newer files of a folder have one more column") {
    Seq("parquet", "orc").foreach { format =>
      val folder = QuickFileSystem.temporaryDirectory().getPath
      def deliver(query: String) =
        spark.sql(query).write.mode("append").format(format).save(folder)
      deliver("SELECT 1 AS id, 1 AS customer, 5 AS amount")
      run(
        s"CREATE TABLE orders (id INT, customer INT, amount INT) USING $format LOCATION '$folder'")
      create(sums)
      deliver("SELECT 2 AS id, 1 AS customer, 7 AS amount, 'x' AS note")
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
      run("ALTER TABLE orders ADD COLUMNS (note STRING)")
      deliver("SELECT 3 AS id, 2 AS customer, 1 AS amount, 'y' AS note")
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
      check(sums, "incremental")
      afterEach()
    }
  }

  test("a column among the others, or of another type, is another column of a table of files") {
    Seq(
      "id INT, note STRING, customer INT, amount INT",
      "id BIGINT, customer INT, amount INT, note INT")
      .foreach { columns =>
        val folder = QuickFileSystem.temporaryDirectory().getPath
        def make(columns: String) =
          run(s"CREATE TABLE orders ($columns) USING json LOCATION '$folder'")
        make("id INT, customer INT, amount INT")
        run("INSERT INTO orders VALUES (1, 1, 10)")
        create(sums)
        run("DROP TABLE orders")
        make(columns)
        checkError("CHANGELOG_TABLE_COLUMNS_CHANGED")(
          run("REFRESH MATERIALIZED VIEW v INCREMENTAL"))
        afterEach()
      }
  }

  test("fields of maps, arrays and structs may be NOT NULL") {
    Seq("delta", "parquet").foreach { format =>
      val nested =
        "m MAP<STRING, STRUCT<a: INT NOT NULL>>, l ARRAY<STRUCT<b: INT NOT NULL>>, s STRUCT<c: INT NOT NULL>"
      run(s"CREATE TABLE orders (id INT, $nested) USING parquet")
      def insert(id: Int) = run(
        s"INSERT INTO orders VALUES ($id, map('x', named_struct('a', $id)), array(named_struct('b', $id)), named_struct('c', $id))")
      insert(1)
      val query = "SELECT id, m, l, s, m['x'].a + l[0].b + s.c AS n FROM orders"
      create(query, provider = format)
      val counts = "SELECT l, s, count(*) AS n FROM orders GROUP BY l, s"
      run(s"CREATE MATERIALIZED VIEW w USING $format AS $counts")
      insert(2)
      Seq("v" -> query, "w" -> counts).foreach { case (view, query) =>
        run(s"REFRESH MATERIALIZED VIEW $view INCREMENTAL STRICT")
        assert(
          run(s"SELECT to_json(struct(*)) FROM $view ORDER BY 1") ==
            run(s"SELECT to_json(struct(*)) FROM ($query) ORDER BY 1"))
        assert(run(s"VERIFY MATERIALIZED VIEW $view").isEmpty)
      }
      run(s"CREATE MATERIALIZED VIEW x USING $format AS SELECT id, m['x'].a AS a, l, s FROM v")
      insert(3)
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
      run("REFRESH MATERIALIZED VIEW x INCREMENTAL STRICT")
      assert(run("VERIFY MATERIALIZED VIEW x").isEmpty)
      afterEach()
    }
  }

  test("fields of a compared struct may be NOT NULL") {
    Seq(feed, noFeed).foreach { properties =>
      run(
        "CREATE TABLE orders (id INT, s STRUCT<c: DOUBLE NOT NULL, d: STRUCT<e: STRING NOT NULL> NOT NULL>) " +
          s"USING delta TBLPROPERTIES ($properties)")
      def insert(id: Int) = run(
        s"INSERT INTO orders VALUES ($id, named_struct('c', ${id}D, 'd', named_struct('e', 'x$id')))")
      insert(1)
      insert(2)
      val query = "SELECT id, s, s.c + 1 AS n FROM orders"
      create(query)
      insert(3)
      run("UPDATE orders SET s = named_struct('c', 7D, 'd', named_struct('e', 'y')) WHERE id = 1")
      run("DELETE FROM orders WHERE id = 2")
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
      check(query, "incremental")
      afterEach()
    }
  }

  test("a view keeps its state when a view that it reads gets a column") {
    Seq("delta", "parquet").foreach { provider =>
      make(feed)
      create(sums, provider = provider)
      val counts = "SELECT n, count(*) AS customers FROM v GROUP BY n"
      run(s"CREATE MATERIALIZED VIEW w USING $provider AS $counts")
      run("INSERT INTO orders VALUES (4, 2, 1)")
      Seq("v", "w").foreach(view => run(s"REFRESH MATERIALIZED VIEW $view"))
      run(
        s"ALTER MATERIALIZED VIEW v AS ${sums.replace("AS total", "AS total, max(id) AS last")}")
      run("INSERT INTO orders VALUES (5, 3, 1)")
      Seq("v", "w").foreach(view => run(s"REFRESH MATERIALIZED VIEW $view INCREMENTAL STRICT"))
      assert(RowMultiset.of(run("SELECT * FROM w")) == RowMultiset.of(run(counts)))
      assert(run("VERIFY MATERIALIZED VIEW w").isEmpty)
      afterEach()
    }
  }

  test("evolve: columns of a table reach the view") {
    Seq("delta", "parquet").foreach { provider =>
      make(feed)
      create("SELECT * FROM orders", Some("evolve"), provider)
      run("ALTER TABLE orders ADD COLUMNS (note STRING)")
      run("INSERT INTO orders VALUES (4, 2, 1, 'x')")
      checkError("CHANGELOG_VIEW_SCHEMA_CHANGED")(
        run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT"))
      run("REFRESH MATERIALIZED VIEW v")
      assert(spark.table("v").columns.toSeq == Seq("id", "customer", "amount", "note"))
      check("SELECT * FROM orders", "full")
      run("UPDATE orders SET note = 'z' WHERE id = 1")
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL")
      check("SELECT * FROM orders", "incremental")
      afterEach()
    }
  }

  /** A view of a keyless query over a stateful one gets other columns, and goes on. */
  private def checkOtherColumns(change: Option[String], adds: Boolean)(
      evolve: String => Unit): Unit = {
    make(feed)
    val query = s"SELECT o.*, s.total FROM orders o JOIN ($sums) s ON o.customer = s.customer"
    create(query, change)
    run("INSERT INTO orders VALUES (4, 2, 1)")
    run("REFRESH MATERIALIZED VIEW v INCREMENTAL")
    if (adds) run("ALTER TABLE orders ADD COLUMNS (note STRING)")
    run(s"INSERT INTO orders VALUES (5, 2, 1${if (adds) ", 'x'" else ""})")
    val next = if (adds) query else query.replace("o.*", "o.*, o.id + 1 AS j")
    evolve(next)
    check(next, "evolved")
    run("DELETE FROM orders WHERE id = 4")
    run("REFRESH MATERIALIZED VIEW v INCREMENTAL")
    check(next, "incremental")
  }

  test("evolve: a stateful part goes on below a list of all columns") {
    checkOtherColumns(Some("evolve"), adds = true)(_ => run("REFRESH MATERIALIZED VIEW v"))
  }

  test("a query without a key that gets other columns writes no row twice") {
    checkOtherColumns(None, adds = false)(next => run(s"ALTER MATERIALIZED VIEW v AS $next"))
  }

  test("ignore: a view keeps its columns") {
    Seq("" -> Seq("id", "customer", "amount"), "(a INT, b INT, c INT)" -> Seq("a", "b", "c"))
      .foreach { case (columns, names) =>
        make(feed)
        create("SELECT * FROM orders -- all", Some("ignore"), columns = columns)
        run("ALTER TABLE orders ADD COLUMNS (note STRING)")
        run("INSERT INTO orders VALUES (4, 2, 1, 'x')")
        run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
        assert(spark.table("v").columns.toSeq == names)
        check("SELECT id, customer, amount FROM orders", "incremental")
        run("ALTER MATERIALIZED VIEW v AS SELECT * FROM orders WHERE id > 1")
        run("ALTER TABLE orders ADD COLUMNS (more STRING)")
        run("REFRESH MATERIALIZED VIEW v")
        assert(spark.table("v").columns.toSeq == Seq("id", "customer", "amount", "note"))
        afterEach()
      }
  }

  test("fail: the refresh says which columns came, and the property can change") {
    make(feed)
    create("SELECT * FROM orders", Some("fail"))
    run("ALTER TABLE orders ADD COLUMNS (note STRING)")
    checkError(
      "CHANGELOG_VIEW_SCHEMA_CHANGED",
      "stored" -> "id INT, customer INT, amount INT",
      "found" -> "id INT, customer INT, amount INT, note STRING")(
      run("REFRESH MATERIALIZED VIEW v"))
    checkError("CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED")(
      run("ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('changelog.onSchemaChange' = 'ignore')"))
    run("ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('changelog.onSchemaChange' = 'evolve')")
    run("REFRESH MATERIALIZED VIEW v")
    check("SELECT * FROM orders", "full")
    checkError("CHANGELOG_VIEW_PROPERTY_INVALID", "property" -> "changelog.onSchemaChange")(
      run("ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('changelog.onSchemaChange' = 'add')"))
    checkError("CHANGELOG_VIEW_PROPERTY_INVALID", "property" -> "changelog.onSchemaChange")(run(
      "CREATE STREAMING TABLE w TBLPROPERTIES ('changelog.onSchemaChange' = 'evolve') AS SELECT * FROM STREAM orders"))
  }
}
