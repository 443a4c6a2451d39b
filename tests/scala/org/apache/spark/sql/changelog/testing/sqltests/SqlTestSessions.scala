// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing.sqltests

import scala.collection.mutable
import scala.util.Try

import org.apache.spark.sql.IntegratedUDFTestUtils
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTableType
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, View}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.LogicalRelation

/**
 * What the statements of a file have set up, and sessions that know it: the tables as something else,
 * the views over them as they are.
 */
private[sqltests] class SqlTestSessions(first: SparkSession, file: SqlTestFile) {
  import SqlTestSessions._

  private val setup = first.newSession()
  private val statements = mutable.ArrayBuffer.empty[String]
  private var known = Option.empty[(Seq[SqlTestTable], Seq[TestView])]
  prepare(setup)
  PostgresTables.create(setup, file)

  private def prepare(session: SparkSession): Unit = {
    first.sessionState.conf.getAllConfs.foreach { case (key, value) =>
      session.sessionState.conf.setConfString(key, value)
    }
    (settingsOf(file) ++ file.settings).foreach { case (key, value) =>
      Try(session.conf.set(key, value))
    }
    // Spark's helper wants to know where Spark's sources are, and looks for nothing there
    sys.props.getOrElseUpdate("spark.test.home", sys.props("java.io.tmpdir"))
    IntegratedUDFTestUtils.registerTestUDF(IntegratedUDFTestUtils.TestScalaUDF("udf"), session)
    session.udf.register("boolne", (a: Boolean, b: Boolean) => a != b)
    session.udf.register("booleq", (a: Boolean, b: Boolean) => a == b)
    session.udf.register("vol", (text: String) => text)
    ()
  }

  /** Runs a statement that is no query. */
  def execute(statement: String): Unit = {
    val done = Try(setup.sql(statement).collect()).isSuccess
    if (done) {
      if (OfSession.findFirstIn(statement.trim).nonEmpty) statements += statement
      known = None
    }
  }

  /** Whether what queries read may have changed since this was asked last. */
  def isKnown: Boolean = known.nonEmpty

  def tables: Seq[SqlTestTable] = relations._1

  private def relations: (Seq[SqlTestTable], Seq[TestView]) = known.getOrElse {
    val found = find()
    known = Some(found)
    found
  }

  /**
   * A new session in which `create` has made the tables.
   */
  def session(create: (SparkSession, SqlTestTable) => Unit): SparkSession = {
    val session = first.newSession()
    prepare(session)
    val (tables, views) = relations
    tables.foreach(create(session, _))
    var waiting = views
    var created = true
    while (created) {
      val (_, failed) = waiting.partition(view => Try(session.sql(view.sql)).isSuccess)
      created = failed.size < waiting.size
      waiting = failed
    }
    statements.foreach(statement => Try(session.sql(statement).collect()))
    session
  }

  private def find(): (Seq[SqlTestTable], Seq[TestView]) = {
    val catalog = setup.sessionState.catalog
    val names = Try(catalog.listTables(catalog.getCurrentDatabase)).getOrElse(Nil)
    val (tables, views) = names.partition(isTable)
    (
      tables.flatMap(name => Try(read(name)).toOption),
      views.flatMap(name => Try(view(name)).toOption))
  }

  private def read(name: TableIdentifier): SqlTestTable = {
    val rows = setup.table(name.quotedString).limit(MaxRows)
    SqlTestTable(name.table, rows.schema.asNullable, rows.collect().toSeq)
  }

  private def view(name: TableIdentifier): TestView = {
    val metadata = setup.sessionState.catalog.getTempViewOrPermanentTableMetadata(name)
    TestView(name.table, metadata.schema.fieldNames.toSeq, metadata.viewText.get)
  }

  /** Whether a relation's rows are its own: those of a table, or of a view that reads nothing else. */
  private def isTable(name: TableIdentifier): Boolean = {
    val catalog = setup.sessionState.catalog
    val metadata = Try(catalog.getTempViewOrPermanentTableMetadata(name)).toOption
    val isView = catalog.isTempView(name) ||
      metadata.exists(_.tableType == CatalogTableType.VIEW)
    !isView || metadata.forall(_.viewText.isEmpty) ||
    !Try(setup.table(name.quotedString).queryExecution.analyzed).toOption.exists(readsOthers)
  }

  private def readsOthers(plan: LogicalPlan): Boolean = {
    val views = mutable.ArrayBuffer.empty[LogicalPlan]
    plan.foreachWithSubqueries {
      case view: View => views += view
      case relation: LogicalRelation if relation.catalogTable.nonEmpty => views += relation
      case _ =>
    }
    views.size > 1
  }

  /** Drops what is shared with other sessions. */
  def close(): Unit = {
    val catalog = setup.sessionState.catalog
    catalog.setCurrentDatabase("default")
    catalog.listTables("default").foreach(name => Try(catalog.dropTable(name, true, true)))
    catalog
      .listFunctions("default")
      .filter(_._2 == "USER")
      .foreach { case (name, _) => Try(catalog.dropFunction(name, true)) }
  }
}

private object SqlTestSessions {

  /** Tables of Spark's are small, but for some of PostgreSQL's. */
  private val MaxRows = 150

  /** Statements whose effect ends with their session. */
  private val OfSession =
    "(?is)^(SET|RESET|DECLARE|USE|(CREATE|DROP)\\s+(OR\\s+REPLACE\\s+)?(TEMP|TEMPORARY)\\s+FUNCTION)\\b".r

  private case class TestView(name: String, columns: Seq[String], text: String) {
    def sql: String = {
      val names = columns.map(column => s"`${column.replace("`", "``")}`").mkString(", ")
      s"CREATE OR REPLACE TEMPORARY VIEW `$name` ($names) AS $text"
    }
  }

  /** What Spark's own suite sets for files of this name. */
  private def settingsOf(file: SqlTestFile): Seq[(String, String)] =
    Seq("spark.sql.ansi.enabled" -> (!file.name.startsWith("nonansi")).toString) ++
      (if (file.name.contains("postgreSQL/"))
         Seq("spark.sql.legacy.interval.enabled" -> "true")
       else Nil) ++
      (if (file.name.startsWith("timestampNTZ"))
         Seq("spark.sql.timestampType" -> "TIMESTAMP_NTZ")
       else Nil)
}
