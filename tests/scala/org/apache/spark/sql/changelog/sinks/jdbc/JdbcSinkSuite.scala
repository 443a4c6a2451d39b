// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.jdbc

/** A database that no more is known about than what JDBC and Spark's dialect for it say. */
class JdbcSinkSuite extends JdbcSinkTests {
  override protected lazy val address: Map[String, String] = Map(
    "url" -> "jdbc:h2:mem:sinks;DB_CLOSE_DELAY=-1",
    "user" -> "tester",
    "password" -> "pw-3fb1c0ffee")
}
