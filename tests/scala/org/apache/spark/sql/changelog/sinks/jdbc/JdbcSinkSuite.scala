// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.jdbc

import org.apache.spark.sql.changelog.testing.Feed

/** A database that no more is known about than what JDBC and Spark's dialect for it say. */
class JdbcSinkSuite extends JdbcSinkTests {
  override protected lazy val address: Map[String, String] = Map(
    "url" -> "jdbc:h2:mem:sinks;DB_CLOSE_DELAY=-1",
    "user" -> "tester",
    "password" -> "pw-3fb1c0ffee")

  test("columns can have any name") {
    val table = newTable()
    val names =
      Feed("names", "`before` INT, `after` INT, `step` STRING", key = Seq("before", "after"))
    running(kept("SELECT * FROM names", table, names)) { query =>
      query.start("changelog-jdbc", options ++ Map("dbtable" -> table, "createTable" -> "true"))
      query.check("+I 1 1 x", "+I 1 2 NULL")
      query.check("-U 1 1 x", "+U 1 1 y", "-D 1 2 NULL")
    }
  }

  override protected def addressIn(zone: String): String = s"${address("url")};TIME ZONE=$zone"

  override protected def otherInstants: String = "TIMESTAMP(6) WITH TIME ZONE"

  override protected def nowhere: (String, String) =
    "jdbc:h2:tcp://127.0.0.1:9/test" -> "127.0.0.1:9"

  override protected def refusal: String = "Wrong user name or password"
}
