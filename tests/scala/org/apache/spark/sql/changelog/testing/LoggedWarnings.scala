// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.collection.mutable

import org.apache.logging.log4j.core.appender.AbstractAppender
import org.apache.logging.log4j.core.config.Property
import org.apache.logging.log4j.core.{LogEvent, Logger}
import org.apache.logging.log4j.{Level, LogManager}

/** The warnings that are logged meanwhile, and begin so. */
object LoggedWarnings {
  def apply(beginning: String)(body: => Unit): Seq[String] = {
    val texts = mutable.ArrayBuffer.empty[String]
    val appender = new AbstractAppender("warnings", null, null, true, Property.EMPTY_ARRAY) {
      override def append(event: LogEvent): Unit =
        if (event.getLevel == Level.WARN) {
          texts.synchronized(texts += event.getMessage.getFormattedMessage)
          ()
        }
    }
    val root = LogManager.getRootLogger.asInstanceOf[Logger]
    appender.start()
    root.addAppender(appender)
    try body
    finally root.removeAppender(appender)
    texts.synchronized(texts.filter(_.startsWith(beginning)).toSeq)
  }
}
