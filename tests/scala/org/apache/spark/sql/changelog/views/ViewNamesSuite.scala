// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.hadoop.fs.Path
import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf

import org.apache.spark.sql.changelog.checkpoint.BatchLogs
import org.apache.spark.sql.changelog.testing._

/** What names stand for: those of views, however they are written, and those in their queries, whoever refreshes. */
class ViewNamesSuite extends AnyFunSuite with ViewSession with BeforeAndAfterEach {

  override def beforeEach(): Unit = {
    run("CREATE TABLE orders (customer STRING, amount INT) USING delta")
    run("INSERT INTO orders VALUES ('Ada', 1), ('Ada', 1), ('Ben', 2)")
  }

  override def afterEach(): Unit = {
    run("DROP MATERIALIZED VIEW IF EXISTS v")
    run("DROP TABLE orders")
  }

  private def check(query: String, session: SparkSession = spark): Unit = {
    val expected = session.sql(query).collect()
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(expected))
  }

  test("a batch is written once, however the view is called when it is done again") {
    run("CREATE MATERIALIZED VIEW V USING delta AS SELECT * FROM orders")
    for (statement <- Share.ofWays(Seq("VIEWS", "VIEW Default.v"), "a batch")) {
      run("INSERT INTO orders VALUES ('Eve', 3), ('Eve', 3)")
      run("DELETE FROM orders WHERE customer = 'Ada'")
      run("INSERT INTO orders VALUES ('Ada', 1), ('Ada', 5)")
      run("REFRESH MATERIALIZED VIEW V")
      forgetLastBatch()
      run(s"REFRESH MATERIALIZED $statement")
      check("SELECT * FROM orders")
    }
  }

  /** As if the process had ended just before the batch was known to be done. */
  private def forgetLastBatch(): Unit = {
    val checkpoint = new ViewCatalog(spark).get(Seq("v")).definition.checkpoint
    val last = new BatchLogs(spark, checkpoint).lastDone.get
    val files = checkpoint.getFileSystem(spark.sessionState.newHadoopConf())
    assert(files.delete(new Path(checkpoint, s"commits/$last"), false))
  }

  test("a temporary view may also give the snapshot of a feed, or be read by nothing") {
    val session = spark.newSession()
    session.sql("CREATE TEMPORARY VIEW before AS SELECT DISTINCT * FROM orders")
    val feed = "SELECT '+I' AS op, customer, amount FROM STREAM arriving"
    run("CREATE TABLE arriving (customer STRING, amount INT) USING json")
    try {
      val changes =
        s"from_changelog(TABLE($feed), 'op', key => array('customer', 'amount'), snapshot => TABLE(before))"
      session.sql(
        s"CREATE MATERIALIZED VIEW v AS WITH no AS (SELECT * FROM before) SELECT DISTINCT customer FROM $changes")
      run("INSERT INTO arriving VALUES ('Zoe', 1)")
      session.sql("REFRESH MATERIALIZED VIEW v")
      check(
        "SELECT DISTINCT customer FROM (SELECT * FROM orders UNION ALL SELECT * FROM arriving)")
      run("DROP MATERIALIZED VIEW v")
    } finally run("DROP TABLE arriving")
  }

  test("settings that a view was made without are those of nobody who refreshes it") {
    run("INSERT INTO orders VALUES ('2020-1-5', 1)")
    val query =
      "SELECT try_to_timestamp(customer, 'yyyy-MM-dd') AS at, amount * 1.10BD AS more FROM orders"
    run(s"CREATE MATERIALIZED VIEW v AS $query")
    val other = spark.newSession()
    other.conf.set("spark.sql.legacy.timeParserPolicy", "LEGACY")
    other.conf.set("spark.sql.decimalOperations.allowPrecisionLoss", "false")
    other.conf.set("spark.sql.caseSensitive", "true")
    // the name that a setting had, which is never recorded
    other.conf.set("spark.sql.legacy.parquet.datetimeRebaseModeInRead", "LEGACY")
    run("INSERT INTO orders VALUES ('2020-1-6', 1)")
    other.sql("REFRESH MATERIALIZED VIEW v")
    check(query)
    other.sql("REFRESH MATERIALIZED VIEW v FULL")
    check(query)
    assert(other.conf.get("spark.sql.legacy.timeParserPolicy") == "LEGACY")
    val session = ViewQuery.sessionFor(other, new ViewCatalog(spark).get(Seq("v")).definition)
    assert(session.conf.get(SQLConf.PARQUET_REBASE_MODE_IN_READ.key) == "LEGACY")
    assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
  }

  test("a temporary view of who refreshes hides nothing that the view reads") {
    Seq("SELECT * FROM orders", "SELECT * FROM orders WHERE rand() < 2").foreach { query =>
      run(s"CREATE MATERIALIZED VIEW v AS $query")
      val other = spark.newSession()
      other.sql("CREATE TEMPORARY VIEW orders AS SELECT 'Zoe' AS customer, 7 AS amount")
      run("INSERT INTO orders VALUES ('Eve', 3)")
      other.sql("REFRESH MATERIALIZED VIEW v")
      check("SELECT * FROM orders")
      other.sql("REFRESH MATERIALIZED VIEW v FULL")
      check("SELECT * FROM orders")
      other.sql("ALTER MATERIALIZED VIEW v AS SELECT customer, amount + 1 AS amount FROM orders")
      check("SELECT customer, amount + 1 AS amount FROM orders", other)
      run("DROP MATERIALIZED VIEW v")
    }
  }

  test("a temporary view that a view reads is needed, and no table of its name will do") {
    val other = spark.newSession()
    other.sql("CREATE TEMPORARY VIEW some AS SELECT * FROM orders WHERE amount > 1")
    other.sql("CREATE TEMPORARY VIEW of_them AS SELECT * FROM some")
    other.sql("CREATE MATERIALIZED VIEW v AS SELECT * FROM of_them")
    run("INSERT INTO orders VALUES ('Eve', 3)")
    run("CREATE VIEW some AS SELECT 'Zoe' AS customer, 7 AS amount")
    run("CREATE VIEW of_them AS SELECT * FROM some")
    try {
      val error = intercept[AnalysisException](run("REFRESH MATERIALIZED VIEW v"))
      assert(error.getCondition == "TABLE_OR_VIEW_NOT_FOUND" && error.message.contains("of_them"))
      assert(spark.sql("SHOW REFRESHES OF v").select("state").head().getString(0) == "FAILED")
      other.sql("REFRESH MATERIALIZED VIEW v")
      check("SELECT * FROM orders WHERE amount > 1")
      other.sql("CREATE SAVEPOINT s OF MATERIALIZED VIEW v")
      run("RESTORE MATERIALIZED VIEW v TO SAVEPOINT s")
      check("SELECT * FROM orders WHERE amount > 1")
    } finally {
      run("DROP VIEW of_them")
      run("DROP VIEW some")
    }
  }

  test("a temporary view that a data frame has made needs no others") {
    spark.table("orders").createOrReplaceTempView("some")
    spark.table("some").where("amount > 1").createOrReplaceTempView("more")
    spark.catalog.dropTempView("some")
    try {
      run("CREATE MATERIALIZED VIEW v AS SELECT * FROM more")
      run("INSERT INTO orders VALUES ('Eve', 3)")
      run("REFRESH MATERIALIZED VIEW v")
      check("SELECT * FROM orders WHERE amount > 1")
    } finally spark.catalog.dropTempView("more")
  }

  test("a text is read as by who has made the view, whoever refreshes it") {
    run("INSERT INTO orders VALUES ('7', 1)")
    val query = "SELECT CAST(customer AS INT) AS n, '\\\\' AS slash FROM orders"
    val lenient = spark.newSession()
    lenient.conf.set("spark.sql.ansi.enabled", "false")
    lenient.sql(s"CREATE MATERIALIZED VIEW v AS $query")
    val other = spark.newSession()
    other.conf.set("spark.sql.ansi.enabled", "true")
    other.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    Seq("", "FULL").foreach { how =>
      run("INSERT INTO orders VALUES ('Eve', 3)")
      other.sql(s"REFRESH MATERIALIZED VIEW v $how")
      check(query, lenient)
    }
    val modes = spark.sql("SHOW REFRESHES OF v").select("mode").collect().map(_.getString(0))
    assert(modes.toSeq.drop(1).head == "incremental")
  }
}
