// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.jdbc

import java.sql.SQLException

import org.apache.spark.sql.changelog.testing._

class PostgresSinkSuite extends JdbcSinkTests {
  override protected lazy val address: Map[String, String] = Services.postgres()

  override protected def addressIn(zone: String): String =
    s"${address("url")}?options=-c%20TimeZone=$zone"

  override protected def otherInstants: String = "TIMESTAMP(6)"

  test("a value that it can't hold fails the batch by name") {
    checkNotHeld("IF(fare = 0, 'a\\u0000b', city)", "city", "texts without the character U+0000")
    checkNotHeld(
      "make_timestamp_ntz(IF(fare = 0, -4713, 2024), 11, 23, 0, 0, 0)",
      "local",
      "times from -4713-11-24 on")
    checkNotHeld("make_date(IF(fare = 0, -5000, 2024), 1, 1)", "day", "days from -4713-11-24 on")
  }

  test("the character U+0000 is replaced if asked for, except in a key") {
    val table = newTable()
    val replaces =
      options ++ Map("dbtable" -> table, "createTable" -> "true", "nullCharacter" -> "?")
    val sql =
      "SELECT id, 'a\\u0000b\\u0000' AS city, array('x', '\\u0000', NULL) AS tags FROM rides"
    running(kept(sql, table)) { query =>
      query.start("changelog-jdbc", replaces)
      query.add("+I 1 Oslo 1")
      query.processAll()
      val select = s"SELECT city, array_to_string(tags, ',', '-') FROM $table"
      assert(DatabaseTable.select(options, select) == Seq("a?b? x,?,-"))
    }
    val byText = "SELECT concat(city, '\\u0000') AS city, sum(fare) AS fare FROM rides GROUP BY 1"
    running(kept(byText, newTable())) { query =>
      query.start("changelog-jdbc", replaces + ("dbtable" -> newTable()))
      query.add("+I 1 Oslo 1")
      checkError("CHANGELOG_SINK_VALUE_NOT_HELD", "column" -> "city")(query.processAll())
    }
  }

  test("texts can be kept as UUID, as JSON and as one of an enumeration") {
    val table = newTable()
    execute(
      "CREATE TYPE mood AS ENUM ('ok', 'bad')",
      s"CREATE TABLE $table (id UUID PRIMARY KEY, doc JSONB, mood mood)")
    val moods = Feed("moods", "id STRING, doc STRING, mood STRING", key = Seq("id"))
    val id = "00000000-0000-0000-0000-00000000000"
    running(kept("SELECT * FROM moods", table, moods)) { query =>
      query.start("changelog-jdbc", options + ("dbtable" -> table))
      query.check(s"+I ${id}1 [1] ok", s"+I ${id}2 NULL NULL", s"+I ${id}3 [] bad")
      query.check(s"-U ${id}2 NULL NULL", s"+U ${id}2 NULL ok", s"-D ${id}3 [] bad")
    }
  }

  test("a column whose name would be cut off is refused, and no table is made") {
    val table = newTable()
    val all = options ++ Map("dbtable" -> table, "createTable" -> "true")
    val name = "é" * 32
    running(kept(s"SELECT id, fare AS `$name` FROM rides", table)) { query =>
      query.start("changelog-jdbc", all)
      query.add("+I 1 Oslo 1")
      checkError("CHANGELOG_SINK_NAME_TOO_LONG", "column" -> name, "longest" -> "63")(
        query.processAll())
      intercept[SQLException](DatabaseTable.select(options, s"SELECT * FROM $table"))
    }
    val longest = name.drop(1) + "x"
    running(kept(s"SELECT id, fare AS `$longest` FROM rides", table)) { query =>
      query.start("changelog-jdbc", all)
      query.check("+I 1 Oslo 1")
    }
  }

  test("arrays of times stay what they are") {
    val table = newTable()
    val sql = "SELECT id, array(TIMESTAMP_NTZ'2024-03-10 02:30:00', NULL) AS local, " +
      "array(TIMESTAMP'2024-11-03 06:30:00.000001Z') AS at, array(DATE'1582-10-10') AS day FROM rides"
    TimeZones("America/New_York", "Asia/Kolkata", "UTC").in(spark) {
      running(kept(sql, table)) { query =>
        query.start("changelog-jdbc", options ++ Map("dbtable" -> table, "createTable" -> "true"))
        query.add("+I 1 Oslo 1")
        query.processAll()
        val texts = "local::text, (at[1] AT TIME ZONE 'UTC')::text, day::text"
        assert(
          DatabaseTable.select(options, s"SELECT $texts FROM $table") == Seq(
            "{\"2024-03-10 02:30:00\",NULL} 2024-11-03 06:30:00.000001 {1582-10-10}"))
      }
    }
  }

  override protected def nowhere: (String, String) =
    "jdbc:postgresql://127.0.0.1:9/postgres" -> "127.0.0.1:9 refused"

  override protected def refusal: String = "password authentication failed for user"
}
