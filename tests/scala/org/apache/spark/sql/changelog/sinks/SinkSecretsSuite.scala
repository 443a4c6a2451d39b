// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.errors.Credentials
import org.apache.spark.sql.changelog.testing._

/** Passwords are in no plan, log, event, checkpoint, progress or error. */
class SinkSecretsSuite extends AnyFunSuite with ToldSecrets {
  private val secrets = Seq("0ption5ecret", "addr5ecret", "ja4s5ecret")
  private val rides = Feed("rides", "id INT, city STRING, fare INT", key = Seq("id"))

  private val jaas =
    "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"u\" " +
      "password=\"ja4s5ecret\";"
  private val options = Map(
    "sinks" -> "a,b,c",
    "a.format" -> "changelog-jdbc",
    "a.url" -> "jdbc:h2:mem:option;DB_CLOSE_DELAY=-1",
    "a.user" -> "tester",
    "a.password" -> "0ption5ecret",
    "b.format" -> "changelog-jdbc",
    "b.url" -> "jdbc:h2:mem:address;DB_CLOSE_DELAY=-1;USER=tester;PASSWORD=addr5ecret",
    "c.format" -> "changelog-kafka",
    "c.topic" -> "t",
    "c.kafka.bootstrap.servers" -> "127.0.0.1:9",
    "c.kafka.security.protocol" -> "SASL_PLAINTEXT",
    "c.kafka.sasl.mechanism" -> "PLAIN",
    "c.kafka.sasl.jaas.config" -> jaas,
    "c.kafka.max.block.ms" -> "500") ++
    Seq("a", "b").flatMap(sink => Seq(s"$sink.dbtable" -> "t", s"$sink.createTable" -> "true"))

  /** Of a query that fails, at its start or later. */
  private def note(query: KeptQuery, options: Map[String, String]): Unit = tellError {
    val running = query.start("changelog-fanout", options)
    try {
      query.add("+I 1 Oslo 5")
      query.processAll()
    } finally {
      tell(running)
      tellFiles(query.checkpoint)
      running.stop()
    }
  }

  test("an address is told without user and password") {
    val guarded =
      JdbcAddresses.guarded("addr5ecret") ++ JdbcAddresses.guardedRarely("addr5ecret")
    guarded.foreach { address =>
      val told = Credentials.removed(address)
      assert(!told.contains("addr5ecret") && !told.contains("tester"), told)
      assert(told.contains("db.example") || told.contains("h2:mem:guarded"), told)
      assert(Credentials.hasSecret(address), address)
    }
    JdbcAddresses.open.foreach { address =>
      assert(Credentials.removed(address) == address && !Credentials.hasSecret(address))
    }
    assert(!Credentials.hasSecret("jdbc:postgresql://db.example/shop?user=tester"))
  }

  test("secrets are told nowhere") {
    listening {
      val sql = "SELECT id, city FROM rides"
      // the first two sinks have the batch, and Kafka can't be reached
      note(new KeptQuery(spark, rides, sql, null), options)
      note(new KeptQuery(spark, rides, sql, null), options + ("a.password" -> "0ption5ecret2"))
      JdbcAddresses.guarded("addr5ecret").foreach { address =>
        note(new KeptQuery(spark, rides, sql, null), options + ("b.url" -> address))
      }
      note(
        new KeptQuery(spark, rides, sql, null),
        options + ("b.url" -> (options("b.url") + ";MISSPELLED=1")))
      note(
        new KeptQuery(spark, rides, sql, null),
        options + ("c.kafka.sasl.jaas.config" -> (jaas + " password=\"ja4s5ecret")))
    }
    checkUntold(secrets, "changelog-fanout")
  }
}
