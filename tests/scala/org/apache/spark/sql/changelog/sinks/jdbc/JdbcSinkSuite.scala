// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.jdbc

import java.time.{Instant, LocalDate, LocalDateTime}

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

  test("dates and times that a database is known not to hold") {
    for ((url, years) <- Seq(
        "oracle:thin:@db" -> "-4711",
        "sqlserver://db" -> "1",
        "db2://db" -> "1")) {
      val database = DatabaseSyntax(s"jdbc:$url")
      val held = Some(s"years from $years to 9999")
      assert(database.limitOf(LocalDate.of(10000, 1, 1)) == held)
      assert(database.limitOf(LocalDateTime.of(-4712, 12, 31, 0, 0)) == held)
      assert(database.limitOf(Instant.parse("+10000-01-01T00:00:00Z")) == held)
      assert(database.limitOf(LocalDate.of(1, 1, 1)).isEmpty)
    }
    assert(DatabaseSyntax("jdbc:h2:mem:x").limitOf(LocalDate.of(10000, 1, 1)).isEmpty)
  }

  override protected def addressIn(zone: String): String = s"${address("url")};TIME ZONE=$zone"

  override protected def otherInstants: String = "TIMESTAMP(6) WITH TIME ZONE"

  override protected def nowhere: (String, String) =
    "jdbc:h2:tcp://127.0.0.1:9/test" -> "127.0.0.1:9"

  override protected def refusal: String = "Wrong user name or password"
}
