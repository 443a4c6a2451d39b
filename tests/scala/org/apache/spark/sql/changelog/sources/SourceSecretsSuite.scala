// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.DataFrame

import org.apache.spark.sql.changelog.testing._

/** Passwords of sources are in no plan, log, event, checkpoint, progress or error. */
class SourceSecretsSuite extends AnyFunSuite with KafkaTopics with ToldSecrets {
  private val jaas = Map(
    "kafka.sasl.jaas.config" ->
      ("org.apache.kafka.common.security.plain.PlainLoginModule required username=\"u\" " +
        "password=\"ja4s5ecret\";"))
  private val hasty = Map(
    "kafka.security.protocol" -> "SASL_PLAINTEXT",
    "kafka.sasl.mechanism" -> "PLAIN",
    "kafka.request.timeout.ms" -> "500",
    "kafka.default.api.timeout.ms" -> "1000",
    "fetchOffset.numRetries" -> "1")
  private val letters = QuickFileSystem.temporaryDirectory()

  private def topic(options: Map[String, String]): DataFrame = spark.readStream
    .format("kafka")
    .option("kafka.bootstrap.servers", Services.kafka()("bootstrap"))
    .option("startingOffsets", "earliest")
    .option("subscribe", "guarded")
    .options(options)
    .load()

  /** Explains and runs a query over `source` until it has read all there is, or fails. */
  private def follow(source: DataFrame, table: String => String, fails: Boolean): Unit = {
    source.createOrReplaceTempView("source")
    val sql = s"SELECT city, count(*) AS n FROM ${table("source")} GROUP BY city"
    tell(spark, s"EXPLAIN EXTENDED $sql")
    tell(spark, s"EXPLAIN CHANGELOG $sql")
    tell(spark, s"EXPLAIN CHANGELOG FORMAT JSON $sql")
    val checkpoint = QuickFileSystem.temporaryDirectory()
    val query = spark
      .sql(s"SELECT * FROM to_changelog(TABLE($sql))")
      .writeStream
      .format("noop")
      .option("checkpointLocation", checkpoint.getPath)
      .start()
    if (fails) tellError(query.processAllAvailable()) else query.processAllAvailable()
    tell(query)
    query.stop()
    tellFiles(checkpoint)
    assert(fails || query.recentProgress.map(_.numInputRows).sum > 0)
  }

  private def records(source: String): String =
    s"from_upsert_kafka(TABLE($source), 'id INT, city STRING', 'id', dead_letter => '$letters')"

  private def changes(source: String): String =
    s"from_changelog(TABLE($source), '_change_type', key => 'id')"

  test("Kafka's are told nowhere") {
    assume(!ChangelogSession.isSpark41, "Spark 4.1 shows a source's options in plans")
    createTopic("guarded")
    send("guarded", Seq("1" -> """{"city":"Oslo"}""", "2" -> "hello"))
    listening {
      // a client that needs no password does not look at it
      follow(topic(jaas), records, fails = false)
      follow(topic(jaas ++ hasty), records, fails = true)
      val unfinished = jaas.map { case (name, value) => name -> s"$value password=\"ja4s5ecret" }
      follow(topic(unfinished ++ hasty), records, fails = true)
      tellFiles(letters)
    }
    checkUntold(Seq("ja4s5ecret"), "subscribe")
  }

  test("a database's that is followed by snapshots are told nowhere") {
    val url = "jdbc:h2:mem:guarded;DB_CLOSE_DELAY=-1"
    val account = Map("url" -> url, "user" -> "tester", "password" -> "0ption5ecret")
    def execute(sql: String): Unit = DatabaseTable.execute(account, sql)
    execute("CREATE TABLE rides (id INT, city VARCHAR(20))")
    execute("INSERT INTO rides VALUES (1, 'Oslo')")
    def snapshots(options: Map[String, String]): DataFrame = {
      spark.read
        .format("jdbc")
        .options(options + ("dbtable" -> "rides"))
        .load()
        .createOrReplaceTempView("stored")
      spark.readStream
        .format("changelog-snapshots")
        .option("query", "SELECT id AS id, city AS city FROM stored")
        .load()
    }
    listening {
      follow(snapshots(account), changes, fails = false)
      val address = Map("url" -> s"$url;USER=tester;PASSWORD=0ption5ecret")
      follow(snapshots(address), changes, fails = false)
      tellError(snapshots(account + ("password" -> "wr0ng5ecret")))
      JdbcAddresses.guarded("0ption5ecret").foreach { url =>
        val standIn = Map("url" -> url, "driver" -> classOf[StandInDriver].getName)
        follow(snapshots(standIn), changes, fails = false)
      }
      Seq(account, address).foreach { options =>
        val source = snapshots(options)
        execute("DROP TABLE rides")
        follow(source, changes, fails = true)
        execute("CREATE TABLE rides (id INT, city VARCHAR(20))")
      }
    }
    checkUntold(Seq("0ption5ecret", "wr0ng5ecret"), "changelog-snapshots")
  }
}
