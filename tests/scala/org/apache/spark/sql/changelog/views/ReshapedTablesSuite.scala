// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** Views over tables whose columns, partitions or files become others, though they are called as before. */
class ReshapedTablesSuite
    extends AnyFunSuite
    with ViewSession
    with ErrorChecks
    with BeforeAndAfterEach {
  import ReshapedTablesSuite._

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    WhileOptimized.conf ++ ChangelogSession.Quick + ("spark.sql.warehouse.dir" -> warehouse.getPath))

  private val feed = "'delta.enableChangeDataFeed' = 'true'"
  private val files = "'delta.enableDeletionVectors' = 'false'"
  private val vectors = "'delta.enableDeletionVectors' = 'true'"
  private val sums =
    "SELECT customer, count(*) AS n, sum(amount) AS total FROM orders GROUP BY ALL"

  override def afterEach(): Unit = {
    WhileOptimized.never()
    Seq("w", "v").foreach(view => run(s"DROP MATERIALIZED VIEW IF EXISTS $view"))
    Seq("orders", "customers").foreach(table => run(s"DROP TABLE IF EXISTS $table"))
  }

  private def make(properties: String*): Unit = {
    run(
      "CREATE TABLE orders (id INT, customer INT, amount INT) USING delta " +
        properties.mkString("TBLPROPERTIES (", ", ", ")"))
    run("INSERT INTO orders VALUES (1, 1, 10), (2, 2, 20), (3, 1, 5)")
  }

  private def create(query: String, name: String = "v"): Unit =
    run(s"CREATE MATERIALIZED VIEW $name USING delta AS $query")

  private def refresh(more: String = ""): Unit = run(s"REFRESH MATERIALIZED VIEW v $more")

  private def check(query: String, mode: String, name: String = "v"): Unit = {
    assert(RowMultiset.of(run(s"SELECT * FROM $name")) == RowMultiset.of(run(query)))
    assert(spark.sql(s"SHOW REFRESHES OF $name").select("mode").head().getString(0) == mode)
    assert(run(s"VERIFY MATERIALIZED VIEW $name").isEmpty)
  }

  /** What a refresh that may not compute all anew says, and what becomes of one that may. */
  private def readAgain(
      condition: String,
      query: String,
      table: String = "`spark_catalog`.`default`.`orders`"): Unit = {
    checkError(condition, "table" -> table)(refresh("INCREMENTAL"))
    refresh()
    check(query, "full")
  }

  test(
    "a column that was dropped and added again, or has changed places with another, is another one") {
    Share.ofWays(Seq(feed, files), "dropped").foreach { changes =>
      make(changes, "'delta.columnMapping.mode' = 'name'")
      create(sums)
      run("INSERT INTO orders VALUES (4, 2, 1)")
      refresh()
      check(sums, "incremental")
      run("ALTER TABLE orders DROP COLUMN amount")
      run("ALTER TABLE orders ADD COLUMN amount INT")
      readAgain("CHANGELOG_TABLE_COLUMNS_CHANGED", sums)
      run("ALTER TABLE orders RENAME COLUMN id TO other")
      run("ALTER TABLE orders RENAME COLUMN customer TO id")
      run("ALTER TABLE orders RENAME COLUMN other TO customer")
      run("ALTER TABLE orders ALTER COLUMN customer FIRST")
      run("ALTER TABLE orders ALTER COLUMN id FIRST")
      readAgain("CHANGELOG_TABLE_COLUMNS_CHANGED", sums)
      afterEach()
    }
  }

  test("columns that are renamed or dropped, with changes of rows before and after") {
    Share.ofWays(Seq(feed, files, vectors), "renamed").foreach { changes =>
      run(
        "CREATE TABLE orders (id INT, customer INT, amount INT, note STRING, " +
          "place STRUCT<city: STRING, street: STRING>) USING delta " +
          s"TBLPROPERTIES ($changes, 'delta.columnMapping.mode' = 'name')")
      var id = 0
      def change(amount: String, places: String*): Unit = {
        id += 3
        val place = places.map(field => s"'$field', '$field ' || id").mkString(", ")
        run(
          s"INSERT INTO orders (id, customer, $amount, place) SELECT INT(id) + $id, INT(id % 2), INT(id), " +
            s"named_struct($place) FROM range(3)")
        if (id % 2 == 0) run(s"DELETE FROM orders WHERE id = ${id - 2}")
        else run(s"UPDATE orders SET $amount = $amount + 100, customer = 7 WHERE id = $id")
      }
      def query(amount: String) =
        s"SELECT customer, place.city, count(*) AS n, $amount AS total FROM orders GROUP BY ALL"
      def equals(query: String): Unit = {
        assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(query)))
        ()
      }
      val sum = query("sum(amount)")
      change("amount", "city", "street")
      create(sum)
      // of columns that the query does not read
      Seq(
        ("street", "RENAME COLUMN note TO remark", Some("street")),
        ("street", "DROP COLUMN remark", Some("street")),
        ("street", "RENAME COLUMN place.street TO road", Some("road")),
        ("road", "DROP COLUMN place.road", None)).foreach { case (before, statement, after) =>
        change("amount", "city", before)
        run(s"ALTER TABLE orders $statement")
        change("amount", "city" +: after.toSeq: _*)
        withClue(s"$changes, $statement: ") {
          refresh()
          equals(sum)
        }
      }
      // of columns that it reads
      Seq(
        ("amount", "RENAME COLUMN amount TO price", Some("price"), "sum(price)"),
        ("price", "RENAME COLUMN price TO amount", Some("amount"), "sum(amount)"),
        ("amount", "DROP COLUMN amount", None, "count(id)")).foreach {
        case (before, statement, after, total) =>
          change(before, "city")
          run(s"ALTER TABLE orders $statement")
          after.foreach(change(_, "city"))
          withClue(s"$changes, $statement: ") {
            val error = intercept[AnalysisException](refresh())
            assert(error.getCondition == "UNRESOLVED_COLUMN.WITH_SUGGESTION")
            run(s"ALTER MATERIALIZED VIEW v AS ${query(total)}")
            equals(query(total))
            run("DELETE FROM orders WHERE id = 7")
            refresh("INCREMENTAL STRICT")
            check(query(total), "incremental")
          }
      }
      afterEach()
    }
  }

  test("columns are the same ones when a table comes to map them") {
    make(feed)
    create(sums)
    run("ALTER TABLE orders SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    run("INSERT INTO orders VALUES (4, 2, 1)")
    refresh()
    check(sums, "incremental")
  }

  test("a table that is overwritten with other partitions is read again") {
    Share.ofWays(Seq(feed, files), "overwritten").foreach { changes =>
      val place = QuickFileSystem.temporaryDirectory().getPath
      val table = s"delta.`$place`"
      val query = sums.replace("orders", table)
      run(
        s"CREATE TABLE $table (id INT, customer INT, amount INT) USING delta TBLPROPERTIES ($changes)")
      run(s"INSERT INTO $table VALUES (1, 1, 10), (2, 2, 20), (3, 1, 5)")
      create(query)
      Seq(Seq("customer"), Nil).foreach { columns =>
        val rows = spark.sql(s"SELECT id, customer, amount + 1 AS amount FROM $table")
        val writer = rows.localCheckpoint().write.format("delta").mode("overwrite")
        writer.option("overwriteSchema", "true").partitionBy(columns: _*).save(place)
        readAgain("CHANGELOG_TABLE_COLUMNS_CHANGED", query, s"delta.`file:$place`")
      }
      run("DROP MATERIALIZED VIEW v")
    }
  }

  test("columns that were others for a while are told, and all is read again") {
    Share.ofWays(Seq(feed, files), "a while").foreach { changes =>
      make(changes)
      create(sums)
      run("ALTER TABLE orders ADD COLUMNS (note STRING)")
      run("INSERT INTO orders VALUES (4, 2, 1, 'x')")
      run("RESTORE TABLE orders TO VERSION AS OF 1")
      readAgain("CHANGELOG_TABLE_COLUMNS_CHANGED", sums)
      afterEach()
    }
  }

  test("columns that could be NULL for a while are told, too") {
    run(
      "CREATE TABLE orders (id INT, customer INT, amount INT NOT NULL) USING delta " +
        s"TBLPROPERTIES ($feed)")
    run("INSERT INTO orders VALUES (1, 1, 10), (2, 2, 20)")
    create(sums)
    run("ALTER TABLE orders ALTER COLUMN amount DROP NOT NULL")
    run("INSERT INTO orders VALUES (3, 1, NULL)")
    run("RESTORE TABLE orders TO VERSION AS OF 1")
    readAgain("CHANGELOG_TABLE_CHANGES_LOST", sums)
  }

  test("a refresh that has failed, whose table has got a column since, reads all again") {
    make(feed)
    spark.udf.register("unless_broken", (id: Int) => unlessBroken(id))
    val query = "SELECT customer, sum(unless_broken(id)) AS ids FROM orders GROUP BY customer"
    create(query)
    run("UPDATE orders SET amount = 1 WHERE id = 2")
    isBroken = true
    try intercept[Exception](refresh())
    finally isBroken = false
    run("ALTER TABLE orders ADD COLUMNS (note STRING FIRST)")
    readAgain("CHANGELOG_TABLE_COLUMNS_CHANGED", query)
    run("ALTER TABLE orders ADD COLUMNS (more STRING FIRST)")
    checkError("CHANGELOG_TABLE_COLUMNS_CHANGED")(run("VERIFY MATERIALIZED VIEW v"))
  }

  test("rows that come while the first batch is planned are read once") {
    make(feed)
    WhileOptimized.once("orders")(run("INSERT INTO orders VALUES (100, 1, 1)"))
    create(sums)
    assert(WhileOptimized.isDone)
    refresh()
    check(sums, "incremental")
  }

  test("another version of a table that is read as it was is another query") {
    make(feed)
    run("CREATE TABLE customers (customer INT, country STRING) USING delta")
    run("INSERT INTO customers VALUES (1, 'NO'), (2, 'IT')")
    val query = "SELECT o.id, c.country FROM orders o JOIN c USING (customer)"
    run("CREATE VIEW c AS SELECT * FROM customers VERSION AS OF 1")
    try {
      create(query)
      run("UPDATE customers SET country = 'SE'")
      run("CREATE OR REPLACE VIEW c AS SELECT * FROM customers VERSION AS OF 2")
      run("INSERT INTO orders VALUES (9, 1, 1)")
      checkError("CHANGELOG_QUERY_CHANGED")(refresh("INCREMENTAL"))
      refresh()
      check(query, "full")
      val before = query.replace("JOIN c", "JOIN (SELECT * FROM customers VERSION AS OF 1) c")
      run(s"ALTER MATERIALIZED VIEW v AS $before")
      assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(before)))
    } finally run("DROP VIEW c")
  }

  test("columns may be called as Delta or we call what is told of changes") {
    val ofOurs = Seq("_net", "_gone", "_newest", "_there", "_rows", "_before")
    val all = ofOurs ++ Seq("_commit_version", "_commit_timestamp")
    val ways = Seq(files -> ofOurs, files -> all, feed -> ofOurs)
    Share.ofWays(ways, "called").foreach { case (changes, names) =>
      val columns = names.map(name => s"$name INT").mkString(", ")
      run(s"CREATE TABLE orders (id INT, $columns) USING delta TBLPROPERTIES ($changes)")
      def row(id: Int) = Seq.fill(names.size)(s"$id").mkString(s"($id, ", ", ", ")")
      run(s"INSERT INTO orders VALUES ${row(1)}, ${row(2)}, ${row(2)}")
      val query = ofOurs.mkString("SELECT id, ", ", ", " FROM orders")
      create(query)
      run(s"INSERT INTO orders VALUES ${row(3)}")
      run("DELETE FROM orders WHERE id = 1")
      run("UPDATE orders SET _net = 7 WHERE id = 2")
      refresh()
      check(query, if (names == all) "full" else "incremental")
      afterEach()
    }
  }

  test("the folder of a partition is not the table that it is in") {
    val place = QuickFileSystem.temporaryDirectory().getPath
    val table = s"delta.`$place`"
    run(s"CREATE TABLE $table (id INT, customer INT) USING delta PARTITIONED BY (customer)")
    run(s"INSERT INTO $table VALUES (1, 1), (2, 2)")
    val folder = s"$place/customer=1"
    spark.read.format("delta").load(folder).createOrReplaceTempView("some")
    try
      Share.ofWays(Seq(s"delta.`$folder`", "some"), "a partition").foreach { name =>
        val query = s"SELECT id FROM $name"
        create(query)
        assert(RowMultiset.of(run("SELECT id FROM v")) == RowMultiset.of(run(query)))
        run(s"INSERT INTO $table VALUES (3, 1), (4, 2)")
        refresh()
        check(query, "incremental")
        run("DROP MATERIALIZED VIEW v")
      }
    finally spark.catalog.dropTempView("some")
  }

  test("a version is read as long as its files are there, however old it is") {
    make(feed, "'delta.deletedFileRetentionDuration' = 'interval 0 hours'")
    create(sums)
    run("INSERT INTO orders VALUES (4, 2, 1)")
    assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
    refresh()
    check(sums, "incremental")
  }

  test("files that were deleted are told, whatever the session says of missing files") {
    make(files)
    create(sums)
    run("UPDATE orders SET amount = amount + 1 WHERE id = 1")
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try {
      run("VACUUM orders RETAIN 0 HOURS")
      refresh()
      check(sums, "full")
    } finally {
      spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
      spark.conf.unset("spark.sql.files.ignoreMissingFiles")
    }
  }

  test("rows of a folder are others in another partition") {
    val folder = QuickFileSystem.temporaryDirectory().getPath
    run(
      "CREATE TABLE orders (id INT, customer INT) USING parquet PARTITIONED BY (customer) " +
        s"LOCATION '$folder'")
    run("INSERT INTO orders PARTITION (customer = 1) VALUES (1), (2)")
    run("INSERT INTO orders PARTITION (customer = 2) VALUES (3)")
    val counts = "SELECT customer, count(*) AS n FROM orders GROUP BY customer"
    create(counts)
    run(s"ALTER TABLE orders ADD PARTITION (customer = 7) LOCATION '$folder/customer=1'")
    refresh()
    check(counts, "incremental")
    run("ALTER TABLE orders DROP PARTITION (customer = 1)")
    readAgain("CHANGELOG_TABLE_FILES_REPLACED", counts)
  }

  test(
    "partitions by time are of each view's own time zone where several are refreshed at once") {
    run("CREATE TABLE orders (id INT, at TIMESTAMP) USING parquet PARTITIONED BY (at)")
    run("INSERT INTO orders VALUES (1, TIMESTAMP '2026-01-01 10:00:00')")
    val query = "SELECT id, unix_seconds(at) AS at FROM orders"
    val zones = Seq("v" -> "UTC", "w" -> "America/New_York")
    def each(body: (String, String) => Unit): Unit = zones.foreach { case (name, zone) =>
      run(s"SET TIME ZONE '$zone'")
      try body(name, zone)
      finally run("SET TIME ZONE 'UTC'")
    }
    each((name, _) => create(query, name))
    run("INSERT INTO orders VALUES (2, TIMESTAMP '2026-01-02 10:00:00')")
    run("REFRESH MATERIALIZED VIEWS")
    each((name, _) => check(query, "incremental", name))
    // an hour that there was in one zone only
    run("INSERT INTO orders VALUES (3, TIMESTAMP '2026-03-08 02:30:00')")
    run("REFRESH MATERIALIZED VIEWS")
    each((name, _) => check(query, "incremental", name))
  }
}

object ReshapedTablesSuite {

  @volatile private var isBroken = false

  private def unlessBroken(id: Int): Int =
    if (isBroken) throw new IllegalStateException("broken") else id
}
