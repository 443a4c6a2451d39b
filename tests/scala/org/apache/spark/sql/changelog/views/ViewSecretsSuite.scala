// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.File

import scala.io.Source
import scala.util.Using

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog

import org.apache.spark.sql.changelog.testing._

/** Passwords of what views read are in no statement's answer, in what is stored of a view, nor on a page. */
class ViewSecretsSuite extends AnyFunSuite with KafkaTopics with ToldSecrets with ErrorChecks {
  private val secrets = Seq("ja4s5ecret", "0ption5ecret", "pr0perty5ecret")
  private val warehouse: File = QuickFileSystem.temporaryDirectory()
  private val jaas =
    "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"u\" " +
      "password=\"ja4s5ecret\";"

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    ChangelogSession.DeltaConf ++ ChangelogSession.Quick ++ Map(
      "spark.sql.warehouse.dir" -> warehouse.getPath,
      "spark.ui.enabled" -> "true",
      "spark.ui.port" -> "0"))

  private val query =
    """SELECT city, count(*) AS n FROM (
      |  SELECT id, city FROM from_upsert_kafka(TABLE(topic), 'id INT, city STRING', 'id')
      |  UNION ALL SELECT id, city FROM from_changelog(TABLE(changes), '_change_type', 'id')
      |) GROUP BY city""".stripMargin

  private def execute(sql: String): Unit = DatabaseTable.execute(account, sql)

  private val account = Map(
    "url" -> "jdbc:h2:mem:viewed;DB_CLOSE_DELAY=-1",
    "user" -> "tester",
    "password" -> "0ption5ecret")

  /** Options of sources whose names say no secret. */
  private val guardedOptions = Map(
    "url" -> "jdbc:postgresql://db.example/shop?user=u&password=pr0perty5ecret",
    "kafka.sasl.jaas.config" -> jaas.replace("ja4s5ecret", "pr0perty5ecret"),
    "kafka.ssl.keystore.key" -> "-----BEGIN PRIVATE KEY----- pr0perty5ecret",
    "registry.url" -> "https://u:pr0perty5ecret@registry.example",
    "path" -> "s3a://AKIA:pr0perty5ecret@bucket/rides")

  private lazy val sources: Unit = {
    createTopic("viewed_secretly")
    send("viewed_secretly", Seq("1" -> """{"city":"Oslo"}"""))
    spark.readStream
      .format("kafka")
      .option("kafka.bootstrap.servers", Services.kafka()("bootstrap"))
      .option("kafka.sasl.jaas.config", jaas)
      .option("startingOffsets", "earliest")
      .option("subscribe", "viewed_secretly")
      .load()
      .createOrReplaceTempView("topic")
    execute("CREATE TABLE rides (id INT, city VARCHAR(20))")
    execute("INSERT INTO rides VALUES (1, 'Oslo')")
    spark.read
      .format("jdbc")
      .options(account + ("dbtable" -> "rides"))
      .load()
      .createOrReplaceTempView("stored")
    spark.readStream
      .format("changelog-snapshots")
      .option("query", "SELECT id AS id, city AS city FROM stored")
      .load()
      .createOrReplaceTempView("changes")
  }

  private def tellThese(statements: String*): Unit = statements.foreach(tell(spark, _))

  /** Every statement there is about views, and Spark's own about their tables. */
  private def tellAll(query: String): Unit = {
    val create = s"CREATE MATERIALIZED VIEW v USING parquet AS $query"
    tellThese(s"EXPLAIN $create", s"EXPLAIN CHANGELOG FORMAT JSON $create", create)
    execute("INSERT INTO rides VALUES (2, 'Rome')")
    tellThese(
      "REFRESH MATERIALIZED VIEW v",
      "VERIFY MATERIALIZED VIEW v",
      "SHOW MATERIALIZED VIEWS",
      "DESCRIBE EXTENDED MATERIALIZED VIEW v",
      "DESCRIBE TABLE EXTENDED v",
      "SHOW TBLPROPERTIES v",
      "SHOW CREATE TABLE v",
      "EXPLAIN EXTENDED SELECT * FROM v",
      "START MATERIALIZED VIEW v")
    val view = new ViewCatalog(spark).get(Seq("v"))
    val running = RunningViews.active(view).get
    running.processAllAvailable()
    tell(running)
    Seq("", "views/", "view/?name=v", s"query/?run=${running.runId}").foreach { page =>
      val address = s"${spark.sparkContext.uiWebUrl.get}/changelog/$page"
      tell(Using.resource(Source.fromURL(address))(_.mkString))
    }
    tellThese("DESCRIBE EXTENDED MATERIALIZED VIEW v", "STOP MATERIALIZED VIEW v")
    tell(spark.sessionState.catalog.getTableMetadata(view.name).properties)
    tellFiles(warehouse)
    execute("ALTER TABLE rides RENAME TO away")
    tellError(spark.sql("REFRESH MATERIALIZED VIEW v"))
    tellThese("DESCRIBE EXTENDED MATERIALIZED VIEW v")
    execute("ALTER TABLE away RENAME TO rides")
    tellThese("DROP MATERIALIZED VIEW v")
  }

  test("secrets of a view's sources are told nowhere") {
    sources
    assume(!ChangelogSession.isSpark41, "Spark 4.1 shows a source's options in plans")
    listening {
      tellAll(query)
      // the log of Delta's tables holds the definition
      tellThese(s"CREATE MATERIALIZED VIEW v USING delta AS $query", "SHOW TBLPROPERTIES v")
      tellFiles(warehouse)
      tellThese("DROP MATERIALIZED VIEW v")
    }
    checkUntold(secrets, "viewed_secretly")
  }

  test("secrets of a database whose table is followed are told nowhere") {
    sources
    listening {
      tellAll("SELECT city, count(*) AS n FROM stored GROUP BY city")
    }
    checkUntold(secrets, "comparing all rows with a copy")
  }

  test("secrets of a catalog of a database are told nowhere, nor those of sessions") {
    sources
    val catalog = "spark.sql.catalog.shop"
    val settings = Map(
      catalog -> classOf[JDBCTableCatalog].getName,
      s"$catalog.url" -> (account("url") + ";USER=tester;PASSWORD=0ption5ecret"),
      s"$catalog.driver" -> "org.h2.Driver",
      "spark.sql.registry" -> "https://registry.example?password=pr0perty5ecret",
      "spark.sql.registry.token" -> "pr0perty5ecret")
    settings.foreach { case (key, value) => spark.conf.set(key, value) }
    try
      listening {
        tellAll("SELECT CITY, count(*) AS n FROM shop.PUBLIC.RIDES GROUP BY CITY")
      }
    finally settings.keys.foreach(spark.conf.unset)
    checkUntold(secrets, "PUBLIC")
  }

  test("secrets in the statement that makes a view are refused, and told nowhere") {
    def refused(place: String)(sql: String): Unit = {
      checkError("CHANGELOG_VIEW_SECRET", "place" -> place)(spark.sql(sql))
      tellError(spark.sql(sql))
    }
    listening {
      for (replace <- Seq("", "OR REPLACE ")) {
        refused("property changelog.dbPassword")(
          s"CREATE ${replace}MATERIALIZED VIEW v " +
            "TBLPROPERTIES ('changelog.dbPassword' = 'pr0perty5ecret') AS SELECT 1 AS a")
      }
      val option = "WITH ('password' = 'pr0perty5ecret')"
      Seq(
        s"SELECT * FROM STREAM t $option",
        s"WITH c AS (SELECT * FROM t $option) SELECT * FROM c",
        s"SELECT 1 AS a WHERE 1 IN (SELECT a FROM t $option)",
        s"SELECT * FROM from_changelog(TABLE(SELECT * FROM STREAM t $option), 'op')").foreach {
        query =>
          refused("option password of its query")(s"CREATE STREAMING TABLE v AS $query")
          refused("option password of its query")(s"EXPLAIN CREATE STREAMING TABLE v AS $query")
      }
      spark.sql("CREATE MATERIALIZED VIEW v AS SELECT * FROM VALUES (1) AS t(a)")
      def refusedIn(place: String)(relation: String): Unit = Seq(
        "CREATE STREAMING TABLE w AS",
        "EXPLAIN CREATE MATERIALIZED VIEW w AS",
        "CREATE OR REPLACE MATERIALIZED VIEW w AS",
        "EXPLAIN ALTER MATERIALIZED VIEW v AS",
        "ALTER MATERIALIZED VIEW v AS").foreach { statement =>
        refused(place)(s"$statement SELECT * FROM $relation")
      }
      for ((name, value) <- guardedOptions) {
        refusedIn(s"option $name of its query")(s"STREAM t WITH ('$name' = '$value')")
      }
      for (path <- Seq("s3a://AKIA:pr0perty5ecret@b/t", "abfss://b/t?sig=pr0perty5ecret")) {
        refusedIn("path of a table of the format parquet in its query")(s"parquet.`$path`")
      }
      refused("property url")(
        s"ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('url' = '${guardedOptions("url")}')")
      spark.sql("DROP MATERIALIZED VIEW v")
    }
    checkUntold(secrets, "CHANGELOG_VIEW_SECRET")
  }
}
