// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.io.{File, PrintWriter, StringWriter}
import java.nio.charset.StandardCharsets.ISO_8859_1
import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import org.apache.logging.log4j.core.appender.AbstractAppender
import org.apache.logging.log4j.core.config.{Configurator, Property}
import org.apache.logging.log4j.core.{LogEvent, Logger}
import org.apache.logging.log4j.{Level, LogManager}
import org.scalatest.Suite

import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent, SparkListenerJobStart}
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.{DataFrame, SparkSession}

/** Notes all that Spark tells anybody, and looks for secrets in it. */
trait ToldSecrets extends ChangelogSession { self: Suite =>
  private val told = new StringBuffer

  /** Spark's own show what they are given at DEBUG: all of a connection, and of a statement. */
  private val frank = Seq(
    "org.apache.spark.sql.execution.datasources.jdbc.connection",
    "org.apache.spark.sql.execution.SparkSqlParser")

  protected def tell(text: Any): Unit = {
    told.append(text).append('\n')
    ()
  }

  /** Notes the error that `body` must end with. */
  protected def tellError(body: => Any): Unit = tell(text(intercept[Exception](body)))

  /** Notes the files below a folder. */
  protected def tellFiles(folder: File): Unit =
    Files.walk(folder.toPath).iterator.asScala.filter(Files.isRegularFile(_)).foreach {
      (file: Path) => tell(Files.readString(file, ISO_8859_1))
    }

  /** Notes what a query says of itself. */
  protected def tell(query: StreamingQuery): Unit = {
    val stream = query.asInstanceOf[StreamingQueryWrapper].streamingQuery
    tell(s"${stream.lastExecution} ${query.status} $stream ${stream.sink}")
    tell(stream.explainInternal(true))
    query.recentProgress.foreach(progress => tell(progress.json))
    query.exception.foreach(error => tell(error.toString()))
  }

  /** Notes the plans, and the rows, of a statement. */
  protected def tell(session: SparkSession, sql: String): Unit = {
    val result: DataFrame = session.sql(sql)
    tell(castToImpl(result).queryExecution.toString)
    result.collect().foreach(row => tell(row))
  }

  /** Notes logs and events while `body` runs. */
  protected def listening(body: => Unit): Unit = {
    val appender = new AbstractAppender("told", null, null, true, Property.EMPTY_ARRAY) {
      override def append(event: LogEvent): Unit = {
        tell(event.getMessage.getFormattedMessage)
        Option(event.getThrown).foreach(error => tell(text(error)))
      }
    }
    // Spark gives each job all settings of its session
    val settings = spark.conf.getAll.toSet
    val listener = new SparkListener {
      override def onJobStart(start: SparkListenerJobStart): Unit =
        tell(start.properties.asScala.filterNot(settings.contains))
      override def onOtherEvent(event: SparkListenerEvent): Unit = tell(event: Any)
    }
    val root = LogManager.getRootLogger.asInstanceOf[Logger]
    val level = root.getLevel
    appender.start()
    spark.sparkContext.addSparkListener(listener)
    Configurator.setLevel("org.apache.spark.sql", Level.DEBUG)
    frank.foreach(Configurator.setLevel(_, Level.INFO))
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

  /** @param spoken what must have been told, so that something was listened to */
  protected def checkUntold(secrets: Seq[String], spoken: String): Unit = {
    val everything = told.toString
    assert(everything.contains(spoken), "something was told")
    secrets.foreach { secret =>
      val at = everything.indexOf(secret)
      assert(
        at < 0,
        everything.substring((at - 500).max(0), (at + 100).min(everything.length).max(0)))
    }
  }

  private def text(error: Throwable): String = {
    val text = new StringWriter
    error.printStackTrace(new PrintWriter(text))
    text.toString
  }
}
