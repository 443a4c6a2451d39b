// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.util.TimeZone

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf

/** The time zones of the JVM, of the session and of a database. */
case class TimeZones(jvm: String, session: String, database: String) {

  /** Runs `body` in the time zones of the JVM and the session. */
  def in[T](spark: SparkSession)(body: => T): T = {
    val (ownJvm, ownSession) =
      (TimeZone.getDefault, spark.conf.get(SQLConf.SESSION_LOCAL_TIMEZONE))
    TimeZone.setDefault(TimeZone.getTimeZone(jvm))
    spark.conf.set(SQLConf.SESSION_LOCAL_TIMEZONE.key, session)
    try body
    finally {
      spark.conf.set(SQLConf.SESSION_LOCAL_TIMEZONE.key, ownSession)
      TimeZone.setDefault(ownJvm)
    }
  }

  override def toString: String = s"JVM in $jvm, session in $session, database in $database"
}

object TimeZones {
  private val zones = Seq("America/New_York", "Asia/Kolkata", "Pacific/Apia", "UTC")

  private val all =
    for (jvm <- zones; session <- zones; database <- zones)
      yield TimeZones(jvm, session, database)

  /** One combination, by the share and by what is tested; one in eight of them where all is tested. */
  def drawn(what: String): Seq[TimeZones] = {
    val some = if (Share.isAll) 8 else all.size
    all.grouped(some).zipWithIndex.toSeq.map { case (group, number) =>
      group(Share.choose(s"$what, group $number", group.size))
    }
  }

  /** Wall clocks that some zone skips or has twice, days that calendars disagree on, first and last ones. */
  val wallClocks: Seq[String] = Seq(
    "0001-01-01 00:00:00",
    "0001-01-01 00:00:00.000001",
    "1500-02-28 23:59:59.999999",
    "1582-10-04 12:00:00",
    "1582-10-05 00:00:00",
    "1582-10-14 23:59:59.999999",
    "1582-10-15 00:00:00",
    "1883-11-18 12:01:30.5",
    "1900-02-28 12:00:00",
    "1941-10-01 00:05:00",
    "1969-12-31 23:59:59.999999",
    "1970-01-01 00:00:00",
    "2011-12-29 23:30:00",
    "2011-12-30 00:00:00",
    "2011-12-30 12:34:56.123456",
    "2011-12-31 00:00:00",
    "2024-02-29 12:34:56.654321",
    "2024-03-10 01:30:00",
    "2024-03-10 02:30:00",
    "2024-03-10 03:30:00",
    "2024-11-03 00:30:00",
    "2024-11-03 01:30:00",
    "2024-11-03 05:30:00",
    "2024-11-03 06:30:00",
    "2038-01-19 03:14:07.999999",
    "2038-01-19 03:14:08",
    "9999-12-31 23:59:59.999999")
}
