// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.File

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.CatalogV2Implicits._
import org.apache.spark.sql.connector.catalog.{Identifier, Table, TableChange, TableInfo}
import org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog

import org.apache.spark.sql.changelog.sinks.table.SharedCatalog
import org.apache.spark.sql.changelog.testing._

/** Views in Spark's catalog of tests, and in catalogs that cannot store a view. */
class ViewsInCatalogsSuite extends CatalogViewTest {
  override protected def catalog: String = "mem"
  override protected def provider: String = "memory"

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    ChangelogSession.DeltaConf ++ ChangelogSession.Quick ++ Map(
      "spark.sql.warehouse.dir" -> warehouse.getPath,
      "spark.sql.catalog.mem" -> classOf[SharedCatalog].getName,
      "spark.sql.catalog.forgetful" -> classOf[CatalogWithoutProperties].getName,
      "spark.sql.catalog.rigid" -> classOf[CatalogWithoutChanges].getName,
      "spark.sql.catalog.lake" -> classOf[IcebergCatalog].getName,
      "spark.sql.catalog.lake.home" -> new File(warehouse, "lake").getPath,
      "spark.sql.catalog.jdbc" -> classOf[JDBCTableCatalog].getName,
      "spark.sql.catalog.jdbc.url" -> "jdbc:h2:mem:views",
      "spark.sql.catalog.jdbc.driver" -> "org.h2.Driver"))

  test("names may have dots, quotes and capitals") {
    deliver("+I 1 Ada 5")
    val name = "mem.`d.B`.`it's.\"a`` View`"
    create(totals, name = name)
    deliver("+I 2 Ada 1")
    refresh(name = name)
    check(totals, name)
    run("USE mem.`d.B`")
    try {
      assert(run("SHOW MATERIALIZED VIEWS").map(_.getString(1)) == Seq("it's.\"a` View"))
      run("DROP MATERIALIZED VIEW `it's.\"a`` View`")
    } finally run("USE spark_catalog.default")
  }

  test("a dropped view leaves nothing") {
    val home = new File(warehouse, "_changelog")
    for (statement <- Seq("MATERIALIZED VIEW", "TABLE")) {
      create(totals, name = view)
      assert(home.list().nonEmpty)
      run(s"DROP $statement $view")
      assert(home.list().isEmpty && run("SHOW TABLES IN mem.db").isEmpty)
    }
    checkError("CHANGELOG_VIEW_NOT_FOUND")(refresh())
  }

  test("a table with the properties of a view is no view by another name") {
    create(totals, name = view)
    val owner = spark.sessionState.catalogManager.catalog("mem").asTableCatalog
    def name(table: String) = Identifier.of(Array("db"), table)
    val copied = owner.loadTable(name("v"))
    val info = new TableInfo.Builder()
      .withColumns(copied.columns)
      .withPartitions(copied.partitioning)
      .withProperties(copied.properties)
      .build()
    owner.createTable(name("copy"), info)
    try {
      assert(run("SHOW MATERIALIZED VIEWS IN mem.db").map(_.getString(1)) == Seq("v"))
      checkError("CHANGELOG_VIEW_NOT_FOUND")(refresh(name = "mem.db.copy"))
    } finally run("DROP TABLE mem.db.copy")
    refresh()
  }

  test("a catalog that cannot store a view is named at CREATE, with the reason") {
    def refused(name: String, reason: String, query: String = totals): Unit = {
      val error = checkError("CHANGELOG_VIEW_CATALOG_NOT_SUPPORTED")(create(query, name = name))
      assert(error.getMessageParameters.get("reason").contains(reason))
    }
    refused("jdbc.db.v", "no properties")
    refused("forgetful.db.v", "drops properties")
    refused("rigid.db.v", "cannot alter tables")
    if (!ChangelogSession.isSpark41) refused("lake.db.v", "no release for this version of Spark")
    refused("mem.a.b.v", "a catalog, a database and a table")
    assert(
      Seq("forgetful", "rigid").forall(name =>
        run(s"SHOW TABLES IN $name.db").isEmpty) && !new ViewCatalog(spark).exists(
        new ViewCatalog(spark).identify(Seq("mem", "db", "v"))))
  }

  test("a table that lost columns and rows gets them from the last version") {
    deliver("+I 1 Ada 5")
    create(totals, name = view)
    spark.conf.set(RefuseViewWrites.Allowed, value = true)
    try {
      run(s"DELETE FROM $view")
      run(s"ALTER TABLE $view DROP COLUMN total")
      run(s"ALTER TABLE $view UNSET TBLPROPERTIES ('changelog.view.rows')")
    } finally spark.conf.unset(RefuseViewWrites.Allowed)
    deliver("+I 2 Ben 5")
    refresh()
    check(totals, view)
  }

  test("a view is renamed") {
    deliver("+I 3 Ada 9")
    create(totals, name = view)
    run(s"ALTER MATERIALIZED VIEW $view RENAME TO mem.db.other")
    deliver("+I 4 Eve 9")
    checkError("CHANGELOG_VIEW_NOT_FOUND")(refresh())
    refresh(name = "mem.db.other")
    check(totals, "mem.db.other")
    run("DROP MATERIALIZED VIEW mem.db.other")
  }
}

/** A catalog that alters no tables. */
class CatalogWithoutChanges extends SharedCatalog {
  override def alterTable(name: Identifier, changes: TableChange*): Table =
    throw new UnsupportedOperationException("no changes")
}

/** A catalog that keeps no properties of tables. */
class CatalogWithoutProperties extends SharedCatalog {
  override def createTable(name: Identifier, table: TableInfo): Table = super.createTable(
    name,
    new TableInfo.Builder()
      .withColumns(table.columns)
      .withPartitions(table.partitions)
      .withProperties(Map.empty[String, String].asJava)
      .build())
}
