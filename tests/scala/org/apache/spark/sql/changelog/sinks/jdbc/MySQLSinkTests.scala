// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.jdbc

import java.time.{Instant, ZoneId, ZoneOffset}

import org.apache.spark.sql.changelog.testing.Services

/** Tests `changelog-jdbc` with a server of MySQL's family. */
abstract class MySQLSinkTests extends JdbcSinkTests {
  override protected def addressIn(zone: String): String = {
    val offset = Instant.EPOCH.atZone(ZoneId.of(zone)).getOffset
    val named = if (offset == ZoneOffset.UTC) "+00:00" else offset
    s"${address("url")}?sessionVariables=time_zone='$named'"
  }

  override protected def otherInstants: String = "TIMESTAMP(6) NULL"

  override protected def wallClocks: String = "DATETIME(6)"

  test("a value that it can't hold fails the batch by name") {
    val years = "years from 0 to 9999"
    checkNotHeld("make_timestamp(IF(fare = 0, 10000, 2024), 1, 1, 0, 0, 0)", "at", years)
    checkNotHeld("make_timestamp_ntz(IF(fare = 0, -1, 2024), 1, 1, 0, 0, 0)", "local", years)
    checkNotHeld("make_date(IF(fare = 0, 10000, 2024), 1, 1)", "day", years)
    checkNotHeld("IF(fare = 0, double('NaN'), 1.5D)", "number", "finite numbers")
    checkNotHeld("IF(fare = 0, float('-Infinity'), 1.5F)", "number", "finite numbers")
  }

  override protected def refusal: String = "Access denied for user 'tester'"

  test("a server that cuts values off must not") {
    val table = newTable()
    val url = s"${address("url")}?sessionVariables=sql_mode=''"
    running(kept("SELECT city, count(*) AS n FROM rides GROUP BY city", table)) { query =>
      query.start(
        "changelog-jdbc",
        options ++ Map("dbtable" -> table, "createTable" -> "true", "url" -> url))
      query.add(s"+I 1 ${"x" * 300} 1", s"+I 2 ${"x" * 299}y 1", "+I 3 Oslo 1")
      val error = intercept[Exception](query.processAll())
      assert(error.getMessage.contains("Data too long for column 'city'"))
      assert(read(table).count() == 0)
    }
  }
}

class MariaDBSinkSuite extends MySQLSinkTests {
  override protected lazy val address: Map[String, String] = Services.mariadb()

  override protected def nowhere: (String, String) =
    "jdbc:mariadb://127.0.0.1:9/test" -> "Connection refused"
}

/** Needs MySQL's own server: `MYSQLD` is the path of the program. */
class MySQLSinkSuite extends MySQLSinkTests {
  override protected lazy val address: Map[String, String] = Services.mysql()

  /** MySQL's driver decodes the address. */
  override protected def addressIn(zone: String): String =
    super.addressIn(zone).replace("'+", "'%2B")

  override protected def nowhere: (String, String) =
    "jdbc:mysql://127.0.0.1:9/test" -> "Communications link failure"
}
