// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import java.io.{PrintWriter, StringWriter}
import java.nio.charset.StandardCharsets.ISO_8859_1
import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import org.apache.logging.log4j.core.appender.AbstractAppender
import org.apache.logging.log4j.core.config.{Configurator, Property}
import org.apache.logging.log4j.core.{LogEvent, Logger}
import org.apache.logging.log4j.{Level, LogManager}
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent, SparkListenerJobStart}
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper

import org.apache.spark.sql.changelog.testing._

/** Passwords are in no plan, log, event, checkpoint, progress or error. */
class SinkSecretsSuite extends AnyFunSuite with ChangelogSession {
  private val secrets = Seq("0ption5ecret", "addr5ecret", "ja4s5ecret")
  private val rides = Feed("rides", "id INT, city STRING, fare INT", key = Seq("id"))
  private val told = new StringBuffer

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

  private val connections = "org.apache.spark.sql.execution.datasources.jdbc.connection"

  private def listening(body: => Unit): Unit = {
    val appender = new AbstractAppender("told", null, null, true, Property.EMPTY_ARRAY) {
      override def append(event: LogEvent): Unit = {
        told.append(event.getMessage.getFormattedMessage).append('\n')
        Option(event.getThrown).foreach(error => told.append(text(error)))
        ()
      }
    }
    val listener = new SparkListener {
      override def onJobStart(start: SparkListenerJobStart): Unit = {
        told.append(start.properties)
        ()
      }
      override def onOtherEvent(event: SparkListenerEvent): Unit = {
        told.append(event)
        ()
      }
    }
    val root = LogManager.getRootLogger.asInstanceOf[Logger]
    val level = root.getLevel
    appender.start()
    spark.sparkContext.addSparkListener(listener)
    Configurator.setLevel("org.apache.spark.sql", Level.DEBUG)
    // Spark's own, which shows the properties of every JDBC connection it makes
    Configurator.setLevel(connections, Level.INFO)
    Configurator.setRootLevel(Level.INFO)
    root.addAppender(appender)
    try body
    finally {
      root.removeAppender(appender)
      Configurator.setRootLevel(level)
      Configurator.setLevel("org.apache.spark.sql", level)
      spark.sparkContext.removeSparkListener(listener)
    }
  }

  private def text(error: Throwable): String = {
    val text = new StringWriter
    error.printStackTrace(new PrintWriter(text))
    text.toString
  }

  private def note(query: KeptQuery, options: Map[String, String]): Unit = {
    val running = query.start("changelog-fanout", options)
    query.add("+I 1 Oslo 5")
    val failed = intercept[Exception](query.processAll())
    val stream = running.asInstanceOf[StreamingQueryWrapper].streamingQuery
    val texts = Seq(text(failed), s"${stream.lastExecution}", stream.explainInternal(true)) ++
      running.recentProgress.map(_.json) ++ running.exception.map(_.toString()) :+
      s"${running.status} $stream ${stream.sink}"
    texts.foreach(text => told.append(text))
    Files.walk(query.checkpoint.toPath).iterator.asScala.filter(Files.isRegularFile(_)).foreach {
      (file: Path) => told.append(Files.readString(file, ISO_8859_1))
    }
    running.stop()
  }

  test("secrets are told nowhere") {
    listening {
      val sql = "SELECT id, city FROM rides"
      // the first two sinks have the batch, and Kafka can't be reached
      note(new KeptQuery(spark, rides, sql, null), options)
      note(new KeptQuery(spark, rides, sql, null), options + ("a.password" -> "0ption5ecret2"))
      note(
        new KeptQuery(spark, rides, sql, null),
        options + ("b.url" -> (options("b.url") + ";MISSPELLED=1")))
      note(
        new KeptQuery(spark, rides, sql, null),
        options + ("c.kafka.sasl.jaas.config" -> (jaas + " password=\"ja4s5ecret")))
    }
    val everything = told.toString
    assert(everything.contains("changelog-fanout"), "something was told")
    secrets.foreach { secret =>
      val at = everything.indexOf(secret)
      assert(
        at < 0,
        everything.substring((at - 500).max(0), (at + 100).min(everything.length).max(0)))
    }
  }
}
