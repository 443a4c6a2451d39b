// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.File
import java.util.Properties

import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog

import org.apache.spark.sql.changelog.config.ChangelogConf.VIEW_STATE
import org.apache.spark.sql.changelog.testing._

/** Views over tables that tell nothing of their changes, of PostgreSQL and others. */
class ComparedTablesSuite
    extends AnyFunSuite
    with ViewSession
    with ErrorChecks
    with BeforeAndAfterEach {
  import ComparedTablesSuite._

  private lazy val options =
    Seq("url", "user", "password").map(name => name -> Services.postgres()(name)).toMap

  private lazy val settings = ChangelogSession.DeltaConf ++ ChangelogSession.Quick ++
    options.map { case (name, value) => s"spark.sql.catalog.pg.$name" -> value } ++ Map(
      "spark.sql.warehouse.dir" -> warehouse.getPath,
      "spark.sql.catalog.pg" -> classOf[JDBCTableCatalog].getName,
      "spark.sql.catalog.ice" -> classOf[IcebergCatalog].getName,
      "spark.sql.catalog.ice.home" -> new File(warehouse, "ice").getPath)

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf = settings)

  override def afterEach(): Unit = {
    run(s"RESET ${VIEW_STATE.key}")
    run("DROP MATERIALIZED VIEW IF EXISTS v")
    Seq("orders", "customers").foreach { table =>
      run(s"DROP TABLE IF EXISTS $table")
      spark.catalog.dropTempView(table)
      execute(s"DROP TABLE IF EXISTS $table")
    }
  }

  private def execute(statements: String*): Unit =
    DatabaseTable.execute(options, statements: _*)

  private def facts: Map[String, String] =
    run("DESCRIBE MATERIALIZED VIEW v").map(row => row.getString(0) -> row.getString(1)).toMap

  private def create(query: String, more: String = ""): Unit =
    run(s"CREATE MATERIALIZED VIEW v USING delta $more AS $query")

  /** After a refresh the view equals its query, and was not computed anew. */
  private def check(query: String, how: String = "incremental"): Unit = {
    run("REFRESH MATERIALIZED VIEW v")
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(query)))
    assert(facts("Last refresh").contains(s", $how,"), facts)
  }

  private def explained(query: String): String =
    run(s"EXPLAIN CREATE MATERIALIZED VIEW v AS $query").head.getString(0)

  private def makeTables(key: String): Unit = execute(
    // other suites use the server, too
    "DROP TABLE IF EXISTS orders, customers CASCADE",
    s"CREATE TABLE orders (id INT $key, customer INT, amount NUMERIC(10, 2), at TIMESTAMP)",
    s"CREATE TABLE customers (customer INT $key, country TEXT)",
    "INSERT INTO customers VALUES (1, 'NO'), (2, 'IT'), (3, NULL)",
    "INSERT INTO orders VALUES (1, 1, 10, '2026-01-01'), (2, 1, 5.5, NULL), (3, 2, 0, now()), " +
      "(4, 3, 1, '1500-01-01')")

  /** The table by the name of a temporary view. */
  private def named(table: String): Unit =
    spark.read.format("jdbc").options(options + ("dbtable" -> table)).load().createTempView(table)

  /** The table by a name of Spark's catalog. */
  private def listed(table: String): Unit = {
    val all = (options + ("dbtable" -> s"public.$table")).map { case (k, v) => s"$k '$v'" }
    run(s"CREATE TABLE $table USING jdbc OPTIONS (${all.mkString(", ")})")
  }

  private val revenue =
    "SELECT c.country, count(*) AS n, sum(o.amount) AS total, max(o.at) AS last " +
      "FROM orders o JOIN customers c USING (customer) GROUP BY ALL"

  private val rounds = Seq(
    Seq(
      "UPDATE orders SET amount = amount + 1 WHERE id = 2",
      "DELETE FROM customers WHERE customer = 2"),
    Seq(
      "INSERT INTO orders VALUES (9, 2, 2.5, now())",
      "INSERT INTO customers VALUES (2, 'NO')",
      "UPDATE orders SET id = 7 WHERE id = 3",
      "UPDATE orders SET at = NULL WHERE id = 4"),
    Seq("DELETE FROM orders"))

  private val places = Seq[(String, String, String => Unit)](
    ("a catalog of the database", "pg.public.", _ => ()),
    ("names in Spark's catalog", "", listed),
    ("temporary views", "", named))
  private val keys =
    Seq("PRIMARY KEY" -> "primary key (", "" -> "by comparing all rows with a copy. ")

  test("columns that Spark pads, and types of the database's own, are followed") {
    execute(
      "DROP TABLE IF EXISTS orders CASCADE",
      "DROP TYPE IF EXISTS mood CASCADE",
      "CREATE TYPE mood AS ENUM ('ok', 'bad')",
      "CREATE TABLE orders (id INT PRIMARY KEY, code CHAR(3), mood mood, doc JSONB, ref UUID)",
      "INSERT INTO orders VALUES (1, 'a', 'ok', '{}', NULL), (2, NULL, 'bad', NULL, gen_random_uuid())")
    named("orders")
    val query = "SELECT code, mood, count(doc) AS docs, max(ref) AS ref FROM orders GROUP BY ALL"
    create(query)
    execute("INSERT INTO orders VALUES (3, 'a', 'ok', NULL, gen_random_uuid())")
    check(query)
    execute("UPDATE orders SET code = 'abc' WHERE id = 1", "DELETE FROM orders WHERE id = 2")
    check(query)
  }

  test("times of a database are followed in any time zone") {
    execute(
      "DROP TABLE IF EXISTS orders CASCADE",
      "CREATE TABLE orders (id INT PRIMARY KEY, at TIMESTAMPTZ, local TIMESTAMP, day DATE)")
    val rows = TimeZones.wallClocks.zipWithIndex.map { case (clock, id) =>
      s"($id, '${clock}Z', '$clock', '${clock.take(10)}')"
    }
    val (first, then) = rows.splitAt(rows.size / 2)
    named("orders")
    val query = "SELECT at, local, day, count(*) AS n FROM orders GROUP BY ALL"
    TimeZones.drawn("tables of a database").foreach { zones =>
      zones.in(spark) {
        execute("TRUNCATE orders", s"INSERT INTO orders VALUES ${first.mkString(", ")}")
        create(query)
        execute(
          s"INSERT INTO orders VALUES ${then.mkString(", ")}",
          "UPDATE orders SET local = local + INTERVAL '1 us' WHERE id % 3 = 0",
          "DELETE FROM orders WHERE id % 3 = 1")
        check(query)
        assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
        run("DROP MATERIALIZED VIEW v")
      }
    }
  }

  for {
    (place, prefix, register) <- Share.of(places, oneIn = 3)
    (key, told) <- Share.ofWays(keys, place)
  } {
    test(s"tables of PostgreSQL by $place are compared with a copy, key: $key") {
      makeTables(key)
      Seq("orders", "customers").foreach(register)
      val query = revenue
        .replace("orders o", s"${prefix}orders o")
        .replace("customers c", s"${prefix}customers c")
      assert(explained(query).contains(told), explained(query))
      create(query)
      check(query)
      rounds.foreach { statements =>
        execute(statements: _*)
        withClue(statements)(check(query))
      }
      assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
      val read = facts.collect { case (name, text) if name.startsWith("Read of") => text }
      assert(read.exists(_.startsWith("version 4, followed by comparing")), facts)
    }
  }

  test("a view of one table has the key of that") {
    makeTables("PRIMARY KEY")
    create("SELECT *, upper(country) AS c FROM pg.public.customers")
    assert(facts("Plan").endsWith("key (customer)"), facts)
    execute("UPDATE customers SET country = 'DK' WHERE customer = 1")
    check("SELECT *, upper(country) AS c FROM pg.public.customers")
    val last = run("SHOW REFRESHES OF v").head
    assert(last.getAs[Long]("rows_written") == 1, last)
  }

  test("equal rows without a key are counted") {
    execute("CREATE TABLE customers (customer INT, country TEXT)")
    execute("INSERT INTO customers SELECT 1, 'NO' FROM generate_series(1, 5)")
    val query = "SELECT * FROM pg.public.customers"
    create(query)
    execute(
      "DELETE FROM customers WHERE ctid IN (SELECT ctid FROM customers LIMIT 2)",
      "INSERT INTO customers SELECT NULL, NULL FROM generate_series(1, 3)")
    check(query)
    assert(run("SELECT * FROM v").size == 6)
  }

  test("keys and names as databases write them") {
    execute("DROP TABLE IF EXISTS \"Odd.One\"")
    execute(
      "CREATE TABLE \"Odd.One\" (\"B b\" TEXT, \"c d\" INT, \"a.c\" INT, x INT, " +
        "PRIMARY KEY (\"a.c\", \"B b\"))")
    try {
      execute("INSERT INTO \"Odd.One\" VALUES ('x', 1, 1, 1), ('X', 1, 1, 2), ('x', 1, 2, 3)")
      val table = "pg.public.`Odd.One`"
      val query = s"SELECT `B b` AS b, `a.c` AS c, x + 1 AS x FROM $table"
      assert(explained(query).contains("primary key (a.c, B b)"), explained(query))
      create(query)
      execute("UPDATE \"Odd.One\" SET x = 9 WHERE \"B b\" = 'X'")
      check(query)
      assert(facts("Plan").matches(".*key \\((b, c|c, b)\\)"), facts)
    } finally execute("DROP TABLE \"Odd.One\"")
  }

  test("a refresh that fails is done again with what it had read") {
    run(s"SET ${VIEW_STATE.key} = early")
    makeTables("PRIMARY KEY")
    spark.udf.register("checked", checked)
    val query = "SELECT customer, sum(checked(id)) AS ids FROM pg.public.orders GROUP BY customer"
    create(query)
    execute("UPDATE orders SET id = 13 WHERE id = 2")
    fails = true
    try intercept[Exception](run("REFRESH MATERIALIZED VIEW v"))
    finally fails = false
    execute("UPDATE orders SET id = 14 WHERE id = 13", "DELETE FROM orders WHERE id = 1")
    check(query)
    assert(facts("Read of `pg`.`public`.`orders`").startsWith("version 3, "), facts)
    assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
    // of the last version, and of the one before
    assert(copies.size <= 2, copies)
  }

  private def copies: Seq[String] =
    below(warehouse).map(_.getName).filter(_.startsWith("copy-"))

  /** A view over a table of files, and the copies of its last two versions. */
  private def makeCompared(): String = {
    spark.udf.register("checked", checked)
    run("CREATE TABLE orders (id INT, customer INT) USING parquet")
    run("INSERT INTO orders VALUES (1, 1), (2, 1), (3, 2)")
    val query = "SELECT customer, sum(checked(id)) AS ids FROM orders GROUP BY customer"
    create(query, "TBLPROPERTIES ('changelog.follow' = 'copies')")
    run("INSERT INTO orders VALUES (4, 2)")
    check(query)
    query
  }

  test("copies are read where they are when a view is compared with its query") {
    makeCompared()
    Seq("VERIFY MATERIALIZED VIEW v", "WHY MATERIALIZED VIEW v").foreach { statement =>
      var seen = Seq.empty[String]
      meanwhile = () => seen = below(warehouse).map(_.getPath)
      try run(statement)
      finally meanwhile = () => ()
      val copied = seen.filter(path => path.contains("/verify-") && path.endsWith(".parquet"))
      assert(seen.exists(_.contains("/verify-")) && copied.isEmpty, copied)
      assert(seen.exists(_.contains("/lent-")), statement)
      val left = below(warehouse).map(_.getPath)
      assert(!left.exists(path => path.contains("/verify-") || path.contains("/lent-")), left)
    }
  }

  test("a view that goes on meanwhile is compared with what it has read since") {
    val query = makeCompared()
    InterruptedFileSystem.conf.foreach { case (key, value) => spark.conf.set(key, value) }
    try
      InterruptedFileSystem.once("lent-") {
        Seq(5, 6, 7).foreach { id =>
          run(s"INSERT INTO orders VALUES ($id, 2)")
          run("REFRESH MATERIALIZED VIEW v")
        }
      } {
        assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
      }
    finally InterruptedFileSystem.conf.keys.foreach(spark.conf.unset)
    assert(facts("Last verification").contains("2 rows"), facts)
    check(query)
  }

  test("other columns are told, and all is read again") {
    makeTables("PRIMARY KEY")
    val query = "SELECT country, count(*) AS n FROM pg.public.customers GROUP BY country"
    create(query)
    execute("ALTER TABLE customers ADD COLUMN city TEXT")
    checkError("CHANGELOG_TABLE_COLUMNS_CHANGED", "table" -> "`pg`.`public`.`customers`")(
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL"))
    check(query, "full")
    execute("UPDATE customers SET country = 'SE', city = 'Lund' WHERE customer = 1")
    check(query)
  }

  test("rows that were met twice while a table was read in parts are told") {
    makeTables("PRIMARY KEY")
    val properties = new Properties
    options.foreach { case (name, value) => properties.setProperty(name, value) }
    spark.read
      .jdbc(options("url"), "customers", Array("customer < 3", "customer > 1"), properties)
      .createTempView("customers")
    checkError(
      "CHANGELOG_TABLE_KEY_REPEATED",
      "table" -> "`customers`",
      "key" -> "customer",
      "row" -> "2")(create("SELECT * FROM customers"))
  }

  test("what a database would need to be followed better is told") {
    makeTables("")
    val text = explained("SELECT * FROM pg.public.customers")
    assert(text.contains("`pg`.`public`.`customers` is followed by comparing"), text)
    assert(
      text.contains("with from_debezium. To identify rows by a key, add a primary key."),
      text)
    named("orders")
    val filtered = explained("SELECT * FROM orders WHERE amount > 1")
    assert(filtered.contains("`orders` is followed by comparing"), filtered)
  }

  test("a query over a table that can't be compared is computed anew") {
    run("CREATE TABLE orders (id INT, v VARIANT) USING parquet")
    run("INSERT INTO orders VALUES (1, parse_json('1'))")
    val query = "SELECT id + 1 AS id FROM orders"
    val copied = "TBLPROPERTIES ('changelog.follow' = 'copies')"
    create(query, copied)
    run("INSERT OVERWRITE orders VALUES (2, parse_json('2'))")
    check(query, "full")
    assert(facts("Plan").contains("of type VARIANT cannot be compared"), facts)
  }

  test("tables of other catalogs are compared with a copy") {
    assume(!ChangelogSession.isSpark41, "Spark 4.1 follows Iceberg tables by their snapshots")
    run("CREATE TABLE ice.orders (id INT, city STRING, fare DOUBLE)")
    run("INSERT INTO ice.orders VALUES (1, 'Oslo', 5), (2, 'Rome', -0.0)")
    val query = "SELECT city, count(*) AS n, sum(fare) AS total FROM ice.orders GROUP BY city"
    assert(explained(query).contains("a catalog with changes"), explained(query))
    create(query)
    run("INSERT INTO ice.orders VALUES (3, 'Oslo', 0.0), (4, NULL, 1)")
    check(query)
    run("DROP TABLE ice.orders")
  }

  test("rows of files that are replaced or removed are told by a copy, where that is asked for") {
    Share.ofWays(Seq("parquet", "csv"), "replaced").foreach { format =>
      run(
        s"CREATE TABLE orders (id INT, amount DOUBLE, customer INT) USING $format " +
          "PARTITIONED BY (customer)")
      run("INSERT INTO orders VALUES (1, 10, 1), (2, 5.5, 1), (3, -0.0, 2)")
      val query = "SELECT customer, count(*) AS n, sum(amount) AS t FROM orders GROUP BY customer"
      assert(explained(query).contains("'changelog.follow' = 'copies'"), explained(query))
      create(query, "TBLPROPERTIES ('changelog.follow' = 'Copies')")
      run("INSERT OVERWRITE orders VALUES (1, 10, 1), (4, 2, 3)")
      check(query)
      run("INSERT INTO orders VALUES (5, 1, 3)")
      check(query)
      assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
      run("ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('changelog.follow' = 'tables')")
      check(query, "full")
      afterEach()
    }
  }

  test("files that are read with options are compared with a copy by a temporary view") {
    val folder = new File(warehouse, "texts").getPath
    import spark.implicits._
    Seq("1;Oslo", "2;Rome").toDF("value").coalesce(1).write.text(folder)
    spark.read
      .schema("id INT, city STRING")
      .option("sep", ";")
      .csv(folder)
      .createTempView("orders")
    val query = "SELECT upper(city) AS city, count(*) AS n FROM orders GROUP BY 1"
    create(query)
    Seq("1;Bern").toDF("value").coalesce(1).write.mode("overwrite").text(folder)
    check(query)
    assert(run("SELECT city FROM v").map(_.getString(0)) == Seq("BERN"))
  }

  test("a changed query goes on with the copies of the one before") {
    run(s"SET ${VIEW_STATE.key} = early")
    makeTables("PRIMARY KEY")
    val query = "SELECT customer, sum(amount) AS total FROM pg.public.orders GROUP BY customer"
    create(query)
    execute(rounds.head: _*)
    val more = s"$query HAVING sum(amount) > 1"
    run(s"ALTER MATERIALIZED VIEW v AS $more")
    check(more)
    execute("UPDATE orders SET amount = 7 WHERE id = 3")
    check(more)
    assert(run("SHOW REFRESHES OF v").map(_.getString(2)).contains("evolved"))
  }
}

object ComparedTablesSuite {
  @volatile private var fails = false

  /** What is done when a row is computed. */
  @volatile private var meanwhile: () => Unit = () => ()

  private def below(folder: File): Seq[File] =
    folder +: Option(folder.listFiles()).toSeq.flatten.flatMap(below)

  private val checked: Int => Int = { id =>
    meanwhile()
    if (fails) throw new IllegalStateException("failed on purpose")
    id
  }
}
