// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.plans.logical.CreateMaterializedViewAsSelect

import org.apache.spark.sql.changelog.testing._
import org.apache.spark.sql.changelog.views.commands._

/** What statements about views say, and what they may not say. */
class ViewStatementSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  private def parse(sql: String) = spark.sessionState.sqlParser.parsePlan(sql)

  test("statements are understood in any case, with comments and quoted names") {
    assert(parse("refresh materialized view a.b") == RefreshViews.one(Seq("a", "b"), None))
    assert(
      parse("-- x\n/* y */ REFRESH STREAMING TABLE `a b`.c FULL;") ==
        RefreshViews.one(Seq("a b", "c"), Some(RefreshPolicy.Full)))
    assert(
      parse("REFRESH MATERIALIZED VIEW v Incremental\n STRICT") ==
        RefreshViews.one(Seq("v"), Some(RefreshPolicy.Strict)))
    assert(parse("START MATERIALIZED VIEW v") == RefreshViews.start(Seq("v")))
    assert(parse("STOP MATERIALIZED VIEW v") == RefreshViews.stop(Seq("v")))
    assert(
      parse("DROP MATERIALIZED VIEW IF EXISTS v") == ChangeViews
        .drop(Seq("v"), ifExists = true, cascade = false))
    assert(parse("DESC EXTENDED MATERIALIZED VIEW v") == ReadViews.describe(Seq("v"), true))
    assert(
      parse("VERIFY MATERIALIZED VIEW v SAMPLE 2.5 PERCENT") ==
        ReadViews.verify(Seq("v"), Some(2.5)))
    assert(
      parse("SHOW MATERIALIZED VIEWS FROM db LIKE 'v*'") ==
        ReadViews.show(Seq("db"), Some("v*")))
    assert(parse("show streaming tables") == ReadViews.show(Nil, None))
  }

  test("what Spark parses is left to it") {
    // Spark's pipelines read the parsed statement
    val create = "CREATE MATERIALIZED VIEW v AS SELECT 1 AS a"
    assert(parse(create).isInstanceOf[CreateMaterializedViewAsSelect])
    val replace = parse("CREATE OR REPLACE MATERIALIZED VIEW v USING orc AS SELECT 1 AS a")
    assert(replace match {
      case view: CreateMaterializedView => view.replace && view.query == "SELECT 1 AS a"
      case _ => false
    })
    intercept[org.apache.spark.sql.catalyst.parser.ParseException](parse("REFRESH"))
    checkError("CHANGELOG_SYNTAX_ERROR", "expected" -> "a name")(
      spark.sql("VERIFY MATERIALIZED VIEW"))
  }

  test("a view is explained before it is made") {
    val create =
      "CREATE OR REPLACE MATERIALIZED VIEW v USING delta AS SELECT value, count(*) FROM t GROUP BY value"
    spark.readStream.format("rate").load().createOrReplaceTempView("t")
    val text = spark.sql(s"EXPLAIN $create").collect().head.getString(0)
    assert(text == spark.sql(s"EXPLAIN CHANGELOG $create").collect().head.getString(0))
    assert(text.contains("ChangelogAggregate [value]") && !spark.catalog.tableExists("v"))
  }

  test("what can't be kept is refused") {
    def create(rest: String) = spark.sql(s"CREATE MATERIALIZED VIEW $rest AS SELECT 1 AS a")
    checkError("CHANGELOG_VIEW_PROVIDER_NOT_SUPPORTED", "provider" -> "csv")(
      create("v USING csv"))
    checkError("CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED")(create("v (a INT DEFAULT 1)"))
    checkError("CHANGELOG_VIEW_COLUMNS_DIFFER", "listed" -> "a INT, b INT", "found" -> "a INT")(
      create("v (a INT, b INT)"))
    checkError("CHANGELOG_VIEW_COLUMNS_DIFFER")(create("v (a STRING)"))
    checkError("CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED")(
      create("v USING parquet PARTITIONED BY (a)"))
    checkError("CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED")(
      create("v USING delta PARTITIONED BY (bucket(2, a))"))
    checkError("CHANGELOG_VIEW_PROPERTY_UNKNOWN", "property" -> "changelog.intervall")(
      create("v TBLPROPERTIES ('changelog.intervall' = '1 second')"))
    checkError("CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED")(
      spark.sql("ALTER MATERIALIZED VIEW v ADD COLUMNS (b INT)"))
    checkError("CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED", "clause" -> "A default collation")(
      create("v DEFAULT COLLATION UTF8_LCASE"))
    checkError("CHANGELOG_VIEW_CATALOG_NOT_SUPPORTED", "view" -> "a.b.v")(create("a.b.v"))
    for ((property, value) <- Seq(
        "changelog.refreshPolicy" -> "often",
        "changelog.emit" -> "sometimes",
        "changelog.emit" -> "every 10 seconds",
        "changelog.interval" -> "soon",
        "changelog.retention" -> "long",
        "changelog.view.query" -> "x")) {
      checkError("CHANGELOG_VIEW_PROPERTY_INVALID", "property" -> property, "value" -> value)(
        create(s"v TBLPROPERTIES ('$property' = '$value')"))
    }
    checkError("CHANGELOG_VIEW_NOT_INCREMENTAL")(
      create("v TBLPROPERTIES ('changelog.refreshPolicy' = 'INCREMENTAL')"))
    checkError("CHANGELOG_VIEW_NOT_INCREMENTAL")(
      spark.sql("CREATE STREAMING TABLE v AS SELECT 1 AS a"))
    create("v")
    try {
      checkError("CHANGELOG_VIEW_PROPERTY_INVALID", "property" -> "SAMPLE")(
        spark.sql("VERIFY MATERIALIZED VIEW v SAMPLE 101 PERCENT"))
      checkError("CHANGELOG_VIEW_NOT_INCREMENTAL")(spark.sql("START MATERIALIZED VIEW v"))
      checkError("CHANGELOG_VIEW_RECURSIVE")(
        spark.sql("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT * FROM v"))
    } finally spark.sql("DROP MATERIALIZED VIEW v")
  }
}
