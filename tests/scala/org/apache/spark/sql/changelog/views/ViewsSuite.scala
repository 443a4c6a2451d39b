// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.File
import java.nio.file.Files

import scala.jdk.CollectionConverters._

import org.apache.commons.io.FileUtils
import org.apache.hadoop.fs.FileSystem

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.catalog.{
  CreateTableEvent, ExternalCatalogEvent, ExternalCatalogEventListener
}
import org.apache.spark.sql.delta.DeltaLog

/** Views made, kept and dropped by statements, however they are stored. */
trait ViewTests extends ViewTest {
  testEach("a view is filled, refreshed by changes, and forgets nothing") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20", "+I 3 NULL 5")
    create(totals, "COMMENT 'what they owe'")
    check(totals)
    deliver("-U 1 Ada 30", "+U 1 Ben 50", "-D 3 NULL 5")
    run("REFRESH MATERIALIZED VIEW v")
    check(totals)
    // nothing new
    run("REFRESH MATERIALIZED VIEW v INCREMENTAL")
    check(totals)
    deliver("+I 4 Eve 1")
    run("REFRESH MATERIALIZED VIEW v FULL")
    check(totals)
    deliver("-D 4 Eve 1", "+I 5 Ada 2")
    run("REFRESH MATERIALIZED VIEW v")
    check(totals)
  }

  testEach("rows without a key are kept as often as they are there") {
    val query = s"SELECT customer, amount FROM $orders WHERE amount > 1"
    val anonymous = query.replace(", key => array('id')", "")
    deliver("+I 1 Ada 30", "+I 2 Ada 30", "+I 3 NULL 30", "+I 4 NULL 30")
    create(anonymous)
    check(anonymous)
    deliver("-D 2 Ada 30", "+I 5 NULL 30", "-D 3 NULL 30", "-D 4 NULL 30", "+I 6 Eve 7")
    run("REFRESH MATERIALIZED VIEW v")
    check(anonymous)
    deliver("-D 1 Ada 30", "+I 7 Eve 7")
    run("REFRESH MATERIALIZED VIEW v")
    check(anonymous)
  }

  testEach("rows that Spark takes for equal are told apart") {
    // Delta has no collations
    val text = if (provider == "delta") "customer" else "customer COLLATE UTF8_LCASE"
    val query = s"SELECT $text AS c, amount * 0.0D AS zero FROM " +
      orders.replace(", key => array('id')", "")
    def texts(name: String) = run(s"SELECT * FROM $name").map(_.mkString(" ")).sorted
    deliver("+I 1 ada 1", "+I 2 ADA 1", "+I 3 Ben 1", "+I 4 Ben 1")
    create(query)
    create("SELECT * FROM v", name = "second")
    deliver("-U 1 ada 1", "+U 1 Ada 1", "-U 3 Ben 1", "+U 3 Ben -1")
    Seq("v", "second").foreach { name =>
      run(s"REFRESH MATERIALIZED VIEW $name")
      assert(texts(name) == Seq("ADA 0.0", "Ada 0.0", "Ben -0.0", "Ben 0.0"), name)
      check(query, "v")
    }
    val changes = run("SELECT * FROM changes('v')")
    val last = changes.map(_.getAs[Long]("_commit_version")).max
    val come = changes.filter { change =>
      change.getAs[Long]("_commit_version") == last &&
      change.getAs[String]("_change_type").matches("insert|update_postimage")
    }
    assert(come.map(change => s"${change(0)} ${change(1)}").toSet.contains("Ada 0.0"), changes)
    deliver("-D 2 ADA 1", "-D 4 Ben 1")
    Seq("v", "second").foreach { name =>
      run(s"REFRESH MATERIALIZED VIEW $name")
      assert(texts(name) == Seq("Ada 0.0", "Ben -0.0"), name)
    }
  }

  testEach("rows that leave the first places leave the view, also where it shows places") {
    val first = s"""SELECT id, customer, r FROM (
      SELECT *, row_number() OVER (PARTITION BY customer ORDER BY amount DESC, id) AS r FROM $orders)
      WHERE r <= 2"""
    deliver("+I 1 Ada 10", "+I 2 Ada 20", "+I 3 Ben 1")
    create(first)
    check(first)
    deliver("+I 4 Ada 30", "-U 3 Ben 1", "+U 3 Ada 40")
    run("REFRESH MATERIALIZED VIEW v")
    check(first)
    deliver("-D 3 Ada 40")
    run("REFRESH MATERIALIZED VIEW v")
    check(first)
  }

  testEach("a view over a view follows its changes") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    create(totals)
    val byCount = "SELECT n, count(*) AS customers FROM STREAM v GROUP BY n"
    create(byCount, name = "second")
    check(byCount, "second")
    deliver("-D 1 Ada 30", "+I 3 Ben 1", "+I 4 Eve 2")
    run("REFRESH MATERIALIZED VIEW v")
    run("REFRESH MATERIALIZED VIEW second")
    check(byCount, "second")
    deliver("+I 5 Eve 2")
    run("REFRESH MATERIALIZED VIEW v FULL")
    run("REFRESH MATERIALIZED VIEW second")
    check(byCount, "second")
  }

  testEach("rows are told apart by values that can be compared, or by a key") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    val documents = s"SELECT id, parse_json(to_json(struct(customer))) AS j FROM $orders"
    checkError("CHANGELOG_SINK_VALUE_NOT_COMPARABLE", "column" -> "j", "type" -> "VARIANT") {
      create(documents.replace(", key => array('id')", ""))
    }
    assert(!spark.catalog.tableExists("v"))
    create(documents)
    deliver("-D 1 Ada 30")
    run("REFRESH MATERIALIZED VIEW v")
    assert(run("SELECT id, j:customer::STRING FROM v") == Seq(Row(2, "Ben")))
  }

  testEach("OR REPLACE shows other rows, under another definition") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    create(totals)
    val best = s"SELECT id, amount FROM $orders ORDER BY amount DESC LIMIT 1"
    checkError("CHANGELOG_VIEW_EXISTS", "view" -> "`spark_catalog`.`default`.`v`")(create(best))
    spark.sql(s"CREATE MATERIALIZED VIEW IF NOT EXISTS v AS $best")
    check(totals)
    spark.sql(s"-- again\nCREATE OR REPLACE MATERIALIZED VIEW v USING $provider AS $best")
    check(best)
    deliver("+I 3 Eve 40")
    run("REFRESH MATERIALIZED VIEW v")
    check(best)
  }
}

/** Views stored as Delta tables. */
class DeltaViewsSuite extends ViewTests {
  override protected def provider = "delta"

  test("delta: the commit that replaces rows changes the definition, too") {
    deliver("+I 1 Ada 30")
    create(totals)
    def version = new DeltaStorage(spark).version(new ViewCatalog(spark).get(Seq("v")))
    val other = totals.replace("count(*)", "1 + count(*)")
    val wider = totals.replace("AS total", "AS total, 1 AS one")
    val queries = Seq(other, wider, s"SELECT * FROM ($wider)")
    ("REFRESH MATERIALIZED VIEW v FULL" +: queries.map(query =>
      s"ALTER MATERIALIZED VIEW v AS $query")).foreach { statement =>
      val before = version
      run(statement)
      assert(version == before + 1, statement)
    }
    check(wider)
  }

  test("delta: views are found without reading the logs of tables") {
    def bytesRead = FileSystem.getGlobalStorageStatistics.iterator.asScala
      .flatMap(statistics => Option(statistics.getLong("bytesRead")))
      .map(_.longValue)
      .sum
    val names = (1 to 3).map(number => s"other_$number")
    names.foreach(name => run(s"CREATE TABLE $name USING delta AS SELECT 1 AS a"))
    try {
      deliver("+I 1 Ada 30")
      create(totals)
      DeltaLog.clearCache()
      val catalog = new ViewCatalog(spark)
      val before = bytesRead
      assert(catalog.list(Seq("default"), "other_*").isEmpty)
      assert(bytesRead == before)
      assert(catalog.list(Seq("default"), "*").map(_.name.table) == Seq("v"))
      assert(bytesRead > before)
    } finally names.foreach(name => run(s"DROP TABLE $name"))
  }

  test("delta: rows without a key hold no maps") {
    deliver("+I 1 Ada 30")
    val query = s"SELECT map(customer, amount) AS m FROM $orders"
    checkError("CHANGELOG_SINK_VALUE_NOT_COMPARABLE", "column" -> "m")(create(query))
    assert(!spark.catalog.tableExists("v"))
  }

  test("delta: what a process leaves that ends while it makes a view is in nobody's way") {
    deliver("+I 1 Ada 30")
    create(totals)
    val log = new File(warehouse, "v/_delta_log/00000000000000000000.json").toPath
    val made = Files.readAllBytes(log)
    // before the table's log knows of it, and before the catalog does
    for (write <- Seq(false, true)) {
      run("DROP MATERIALIZED VIEW v")
      Files.createDirectories(log.getParent)
      if (write) Files.write(log, made)
      create(totals)
      check(totals)
    }
  }
}

/** Views stored as snapshots in Parquet. */
class SnapshotViewsSuite extends ViewTests {
  test("a view can be kept running, and is stopped") {
    create(totals)
    run("START MATERIALIZED VIEW v")
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    checkError("CHANGELOG_VIEW_IS_RUNNING")(run("REFRESH MATERIALIZED VIEW v"))
    val query = RunningViews.active(new ViewCatalog(spark).get(Seq("v"))).get
    query.processAllAvailable()
    check(totals)
    deliver("-D 1 Ada 30")
    query.processAllAvailable()
    check(totals)
    val now = facts("DESCRIBE MATERIALIZED VIEW v")
    assert(now("Status") == "RUNNING" && now("Behind").matches("at most \\d+ s"), now)
    assert(now("Plan") == "incremental, [I,UB,UA,D], key (customer)")
    assert(now("Last verification").contains("equal"))
    run("STOP MATERIALIZED VIEW v")
    assert(!query.isActive && facts("DESC MATERIALIZED VIEW v")("Status") == "IDLE")
  }

  test("a column of a view may be called as the change type is") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    val query =
      s"SELECT customer AS _change_type, sum(amount) AS n FROM $orders GROUP BY customer"
    create(query)
    check(query)
    deliver("-D 1 Ada 30", "+I 3 Ben 5")
    run("REFRESH MATERIALIZED VIEW v")
    check(query)
  }

  test("DROP leaves nothing") {
    create(totals)
    assert(run("SHOW MATERIALIZED VIEWS").map(_.getString(1)) == Seq("v"))
    assert(run("SHOW MATERIALIZED VIEWS IN default LIKE 'x*'").isEmpty)
    run("DROP MATERIALIZED VIEW v")
    assert(run("SHOW MATERIALIZED VIEWS").isEmpty && !new File(warehouse, "v").exists())
    checkError("CHANGELOG_VIEW_NOT_FOUND", "found" -> "nothing")(run("DROP MATERIALIZED VIEW v"))
    checkError("CHANGELOG_VIEW_NOT_FOUND")(run("REFRESH STREAMING TABLE orders"))
  }

  test("a lease is renewed no more before a view goes: its folder would come back") {
    // renewed every millisecond
    spark.conf.set("spark.sql.changelog.views.lease", "6ms")
    try {
      create(totals)
      ViewLeases(spark, Seq("v")) { view =>
        val folder = new File(view.definition.home.toUri.getPath, ViewLease.Folder)
        // files that are being written have other names
        def said() = folder
          .listFiles((_, name) => name.forall(_.isDigit))
          .map(file => Files.readString(file.toPath))
          .toSet
        def goesOn(within: Int) = {
          val before = said()
          (1 to within / 100).exists { _ =>
            Thread.sleep(100)
            said() != before
          }
        }
        assert(goesOn(within = 10000))
        ViewLeases.endForRemoval(view)
        assert(!goesOn(within = 100))
      }
      // nobody has ended the lease: who waits for it does so until it expires
      run("DROP MATERIALIZED VIEW v")
    } finally spark.conf.unset("spark.sql.changelog.views.lease")
  }

  test("a view is there with its rows, or not at all") {
    deliver("+I 1 Ada 30", "? 2 Ben 20")
    checkError("CHANGELOG_CHANGE_TYPE_UNKNOWN")(create(totals))
    checkError("CHANGELOG_NONDETERMINISTIC_EXPRESSION")(
      create(s"SELECT customer, rand() AS r FROM $orders"))
    assert(!spark.catalog.tableExists("v") && !new File(warehouse, "v").exists())
  }

  test("a view is known as one from the moment it is there") {
    var kinds = Seq.empty[Boolean]
    val listener = new ExternalCatalogEventListener {
      override def onEvent(event: ExternalCatalogEvent): Unit = event match {
        case CreateTableEvent(_, "v") =>
          kinds :+= new ViewCatalog(spark)
            .find(new ViewCatalog(spark).identify(Seq("v")))
            .isDefined
        case _ =>
      }
    }
    spark.sharedState.externalCatalog.addListener(listener)
    try create(totals)
    finally spark.sharedState.externalCatalog.removeListener(listener)
    assert(kinds == Seq(true))
  }

  test("columns without an alias are called as Spark calls them") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    val query = "SELECT customer, sum(amount), count(*) + 1 FROM STREAM orders GROUP BY customer"
    create(query)
    deliver("-D 1 Ada 30", "+I 3 Ben 1")
    run("REFRESH MATERIALIZED VIEW v")
    check(query)
    assert(spark.table("v").columns.toSeq == Seq("customer", "sum(amount)", "(count(1) + 1)"))
  }

  test("a streaming table takes rows that stay, and no others") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    val plain = "SELECT id, upper(customer) AS customer FROM STREAM orders"
    spark.sql(s"CREATE STREAMING TABLE v USING $provider AS $plain")
    check(plain)
    deliver("+I 3 Eve 1", "+I 3 Eve 1")
    run("REFRESH STREAMING TABLE v")
    check(plain)
    create("SELECT customer FROM v", name = "second")
    check("SELECT customer FROM v", "second")
    spark.sql("DROP STREAMING TABLE v CASCADE")
    val error = changelogError(spark.sql(s"CREATE STREAMING TABLE v USING $provider AS $totals"))
    assert(error.getCondition == "CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES")
  }

  test("a query without streams is computed anew if its tables are not to be followed") {
    spark.sql("CREATE TABLE plain AS SELECT 1 AS id, 'Ada' AS customer")
    try {
      create(
        "SELECT customer, count(*) AS n FROM plain GROUP BY customer",
        "TBLPROPERTIES ('changelog.follow' = 'streams')")
      spark.sql("INSERT INTO plain VALUES (2, 'Ada')")
      assert(run("VERIFY MATERIALIZED VIEW v").size == 2)
      run("REFRESH MATERIALIZED VIEW v")
      check("SELECT customer, count(*) AS n FROM plain GROUP BY customer")
      checkError("CHANGELOG_VIEW_NOT_INCREMENTAL")(run("REFRESH MATERIALIZED VIEW v INCREMENTAL"))
    } finally spark.sql("DROP TABLE plain")
  }

  test("a temporary view over any source can be read") {
    val source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10)
    source.load().createOrReplaceTempView("numbers")
    create("SELECT value % 3 AS rest, count(*) AS n FROM numbers GROUP BY value % 3")
    def total = spark.table("v").selectExpr("sum(n)").head().getLong(0)
    val first = total
    assert(first > 0 && first % 10 == 0)
    run("REFRESH MATERIALIZED VIEW v")
    assert(total > first && run("VERIFY MATERIALIZED VIEW v").isEmpty)
    spark.catalog.dropTempView("numbers")
    val error =
      intercept[org.apache.spark.sql.AnalysisException](run("REFRESH MATERIALIZED VIEW v"))
    assert(error.getCondition == "TABLE_OR_VIEW_NOT_FOUND")
    assert(facts("DESCRIBE EXTENDED MATERIALIZED VIEW v")("Plan").contains("numbers"))
  }

  test("a query of one row keeps one row, and foreign files stay") {
    val foreign = new File(warehouse, "v/mine")
    assert(foreign.mkdirs())
    val query = s"SELECT count(*) AS n, sum(amount) AS total FROM $orders"
    deliver("+I 1 Ada 30")
    create(query)
    deliver("+I 2 Ada 5", "-D 1 Ada 30")
    run("REFRESH MATERIALIZED VIEW v FULL")
    deliver("-D 2 Ada 5")
    run("REFRESH MATERIALIZED VIEW v")
    check(query)
    run("DROP MATERIALIZED VIEW v")
    assert(foreign.getParentFile.list().toSeq == Seq("mine"))
    assert(foreign.delete() && foreign.getParentFile.delete())
  }

  test("a view keeps its columns when those of its source change") {
    create("SELECT * FROM STREAM orders")
    spark.sql("ALTER TABLE orders ADD COLUMNS (note STRING)")
    checkError(
      "CHANGELOG_VIEW_SCHEMA_CHANGED",
      "stored" -> "op STRING, id INT, customer STRING, amount INT",
      "found" -> "op STRING, id INT, customer STRING, amount INT, note STRING")(
      run("REFRESH MATERIALIZED VIEW v"))
    checkError("CHANGELOG_VIEW_SCHEMA_CHANGED")(run("REFRESH MATERIALIZED VIEW v FULL"))
  }

  test("it also keeps them where all is computed anew") {
    Seq("delta", "parquet").foreach { format =>
      spark.sql("CREATE TABLE plain (a INT, b INT) USING json")
      spark.sql("INSERT INTO plain VALUES (1, 2)")
      val policy = "TBLPROPERTIES ('changelog.refreshPolicy' = 'full')"
      run(s"CREATE MATERIALIZED VIEW v USING $format $policy AS SELECT * FROM plain")
      for (columns <- Seq("a INT", "a INT, b INT, c INT", "a INT, b STRING")) {
        spark.sql("DROP TABLE plain")
        spark.sql(s"CREATE TABLE plain ($columns) USING json")
        checkError("CHANGELOG_VIEW_SCHEMA_CHANGED", "stored" -> "a INT, b INT")(
          run("REFRESH MATERIALIZED VIEW v"))
        assert(run("SELECT a, b FROM v") == Seq(Row(1, 2)))
      }
      run("DROP MATERIALIZED VIEW v")
      spark.sql("DROP TABLE plain")
    }
  }

  test("what is left of a view that was being dropped is not another one's") {
    deliver("+I 1 Ada 30")
    create(totals)
    run("REFRESH MATERIALIZED VIEW v")
    run("CREATE SAVEPOINT s OF MATERIALIZED VIEW v")
    val left = new ViewCatalog(spark).get(Seq("v"))
    // as if the process had ended then
    spark.sessionState.catalog.dropTable(left.name, ignoreIfNotExists = false, purge = false)
    create(totals, "TBLPROPERTIES ('changelog.refreshPolicy' = 'incremental')")
    check(totals)
    assert(run("SHOW REFRESHES OF v").size == 1)
    assert(run("SHOW SAVEPOINTS OF MATERIALIZED VIEW v").isEmpty)
    val home = new File(left.definition.home.toUri.getPath)
    assert(new ViewCatalog(spark).get(Seq("v")).definition.home.getName == s"${home.getName}-2")
    // which may be somebody else's
    assert(home.list().nonEmpty)
    FileUtils.deleteDirectory(home)
  }

  test("what nobody reads any more goes, what somebody may read stays") {
    deliver("+I 1 Ada 30")
    create(totals, "TBLPROPERTIES ('changelog.retention' = '1 hour')")
    val reader = spark.newSession().table("v")
    reader.queryExecution.executedPlan
    def folders = {
      val rows = new File(new ViewCatalog(spark).get(Seq("v")).definition.rows.toUri.getPath)
      // the names without the term of the writer
      val found = rows.list().filter(_.startsWith("batch-")).toSeq
      found.map(_.split('-').take(2).mkString("-")).sorted
    }
    deliver("+I 2 Ada 20")
    run("REFRESH MATERIALIZED VIEW v")
    assert(reader.collect().toSeq == Seq(Row("Ada", 1L, 30L)))
    assert(folders == Seq("batch-0", "batch-1"))
    spark.sql("ALTER VIEW v SET TBLPROPERTIES ('changelog.retention' = '1 millisecond')")
    deliver("+I 3 Ada 20")
    run("REFRESH MATERIALIZED VIEW v")
    Thread.sleep(1000)
    deliver("+I 4 Ada 20")
    run("REFRESH MATERIALIZED VIEW v")
    assert(folders.last == "batch-3" && !folders.contains("batch-0"))
    check(totals)
  }

  testEach("a view shows what is closed, and corrects it for as long as its property says") {
    spark.readStream
      .table("orders")
      .selectExpr("timestamp_seconds(60 * amount) AS at")
      .withWatermark("at", "10 minutes")
      .createOrReplaceTempView("timed")
    val windows =
      "SELECT window.end AS w, count(*) AS n FROM timed GROUP BY window(at, '5 minutes')"
    def shown(name: String) =
      run(s"SELECT minute(w), n FROM $name ORDER BY w").map(_.mkString(" ")).toSeq
    val corrected = "on close, then corrections for 20 minutes"
    // a refresh ends with a batch that emits what its last rows have closed
    val noData = "spark.sql.streaming.noDataMicroBatches.enabled"
    val before = spark.conf.get(noData)
    spark.conf.set(noData, "true")
    try {
      deliver("+I 1 a 61", "+I 2 a 66")
      create(windows, "TBLPROPERTIES ('changelog.emit' = 'on close')")
      create(windows, s"TBLPROPERTIES ('changelog.emit' = '$corrected')", "second")
      assert(shown("v").isEmpty && shown("second").isEmpty)
      deliver("+I 3 a 75")
      Seq("v", "second").foreach(name => run(s"REFRESH MATERIALIZED VIEW $name"))
      assert(shown("v") == Seq("5 1") && shown("second") == Seq("5 1"))
      deliver("+I 4 a 62")
      Seq("v", "second").foreach(name => run(s"REFRESH MATERIALIZED VIEW $name"))
      assert(shown("v") == Seq("5 1") && shown("second") == Seq("5 2"))
    } finally {
      spark.conf.set(noData, before)
      spark.catalog.dropTempView("timed")
    }
  }
}
