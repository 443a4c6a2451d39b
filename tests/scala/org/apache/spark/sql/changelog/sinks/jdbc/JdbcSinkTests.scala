// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.jdbc

import java.time.{LocalDate, LocalDateTime, OffsetDateTime, ZoneOffset}

import scala.util.Using

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.{DataFrame, Row}

import org.apache.spark.sql.changelog.testing._

/** What `changelog-jdbc` does to a table of any database. */
abstract class JdbcSinkTests extends AnyFunSuite with ChangelogSession with ErrorChecks {

  /** `url`, `user` and `password` of the database. */
  protected def address: Map[String, String]

  protected lazy val options: Map[String, String] =
    Seq("url", "user", "password").map(name => name -> address(name)).toMap

  protected val rides: Feed = Feed("rides", "id INT, city STRING, fare INT", key = Seq("id"))
  private var tables = 0

  protected def newTable(): String = {
    tables += 1
    s"target_$tables"
  }

  protected def execute(statements: String*): Unit =
    DatabaseTable.execute(options, statements: _*)

  protected def read(table: String): DataFrame = DatabaseTable.read(spark, options, table)

  /** A query whose result is kept in a new table. */
  protected def kept(sql: String, table: String, feed: Feed = rides): KeptQuery =
    new KeptQuery(spark, feed, sql, read(table))

  protected def running(query: KeptQuery)(body: KeptQuery => Unit): Unit =
    try body(query)
    finally query.stop()

  private val byCity = "SELECT city, count(*) AS n, sum(fare) AS total FROM rides GROUP BY city"

  for (mode <- Seq("retract", "upsert"); partitions <- Seq(1, 3)) {
    test(s"a table equals the query after every batch, mode $mode, $partitions partitions") {
      val table = newTable()
      val all = options ++ Map(
        "dbtable" -> table,
        "createTable" -> "true",
        "numPartitions" -> partitions.toString)
      running(kept(byCity, table)) { query =>
        query.start("changelog-jdbc", all, s", mode => '$mode'")
        query.check("+I 1 Oslo 5", "+I 2 Rome 7", "+I 3 NULL 1", "+I 4 oslo NULL", "+I 5 Åre 9")
        query.check("-U 1 Oslo 5", "+U 1 Rome 5", "-D 4 oslo NULL")
        query.stop()
        query.start("changelog-jdbc", all, s", mode => '$mode'")
        query.check("-D 3 NULL 1", "+I 1 Oslo 2", "+I 6 NULL 3", "+I 7 '' 3")
        query.check("-U 6 NULL 3", "+U 6 NULL 4", "-D 7 '' 3", "-D 5 Åre 9")
      }
    }
  }

  test("a key is a pair of columns, either of which can be NULL") {
    val table = newTable()
    running(kept("SELECT city, fare, count(*) AS n FROM rides GROUP BY city, fare", table)) {
      query =>
        query.start("changelog-jdbc", options ++ Map("dbtable" -> table, "createTable" -> "true"))
        query.check("+I 1 Oslo 5", "+I 2 Oslo NULL", "+I 3 NULL 5", "+I 4 NULL NULL")
        query.check("+I 5 Oslo 5", "+I 6 Oslo NULL", "+I 7 NULL 5", "+I 8 NULL NULL")
        query.check(
          "-D 5 Oslo 5",
          "-D 2 Oslo NULL",
          "-D 6 Oslo NULL",
          "-D 3 NULL 5",
          "-D 8 NULL NULL")
    }
  }

  test("a query without a key is kept with the count of each row") {
    val table = newTable()
    val copies = new KeptQuery(
      spark,
      rides,
      "SELECT city, fare FROM rides",
      read(table).selectExpr("city", "fare", "explode(sequence(1L, copies))").drop("col"))
    running(copies) { query =>
      val all = options ++ Map("dbtable" -> table, "createTable" -> "true")
      val counting = ", mode => 'upsert', count_rows => 'copies'"
      query.start("changelog-jdbc", all, counting)
      query.check("+I 1 Oslo 5", "+I 2 Oslo 5", "+I 3 NULL 5", "+I 4 Rome NULL", "+I 5 NULL 5")
      query.check("-D 1 Oslo 5", "-U 3 NULL 5", "+U 3 Rome NULL", "-D 5 NULL 5")
      query.forgetLastBatch()
      query.start("changelog-jdbc", all, counting)
      query.check("-D 2 Oslo 5", "+I 6 NULL 5")
    }
  }

  test("a key that is none of the query's is checked after every batch") {
    val table = newTable()
    running(kept("SELECT city, id, fare FROM rides WHERE city IS NOT NULL", table)) { query =>
      val all = options ++ Map("dbtable" -> table, "createTable" -> "true")
      val checking = ", mode => 'upsert', key => 'city', duplicates => 'fail'"
      query.start("changelog-jdbc", all, checking)
      query.check("+I 1 Oslo 5", "+I 2 Rome 7", "+I 3 NULL 1", "+I 4 NULL 1")
      query.check("-U 1 Oslo 5", "+U 1 Rome 5", "-U 2 Rome 7", "+U 2 Oslo 8", "+I 5 Bern 1")
      query.check("-D 5 Bern 1", "+I 6 Bern 2")
      query.add("-U 1 Rome 5", "+U 1 Oslo 5")
      val error = checkError("CHANGELOG_OUTPUT_KEY_DUPLICATE", "key" -> "(city)", "rows" -> "2") {
        query.processAll()
      }
      val shown = Seq("first", "second").map(error.getMessageParameters.get)
      assert(shown.toSet == Set("{Oslo, 1, 5}", "{Oslo, 2, 8}"))
      assert(
        read(table).select("city", "id").collect().toSet == Set(
          Row("Rome", 1),
          Row("Oslo", 2),
          Row("Bern", 6)))
    }
  }

  test("a query of one row keeps one row") {
    val table = newTable()
    running(kept("SELECT count(*) AS n, max(fare) AS highest FROM rides", table)) { query =>
      query.start("changelog-jdbc", options ++ Map("dbtable" -> table, "createTable" -> "true"))
      query.check("+I 1 Oslo 5", "+I 2 Oslo 7")
      query.check("-D 2 Oslo 7")
      query.check("-D 1 Oslo 5")
    }
  }

  test("a table of one's own is kept by any unique key, in its own order of columns") {
    val table = newTable()
    execute(s"CREATE TABLE $table (total BIGINT, city VARCHAR(20) UNIQUE, n BIGINT NOT NULL)")
    running(
      kept(
        "SELECT city, count(*) AS n, sum(fare) AS total FROM rides WHERE city IS NOT NULL GROUP BY city",
        table)) { query =>
      query.start("changelog-jdbc", options + ("dbtable" -> table))
      query.add("+I 1 Oslo 5", "+I 2 Rome 7")
      query.add("-U 1 Oslo 5", "+U 1 Rome 5")
      spark.streams.active.foreach(_.processAllAvailable())
      assert(
        read(table).select("city", "n", "total").collect().toSeq == Seq(Row("Rome", 2L, 12L)))
    }
  }

  test("a table without an index on the key is kept too") {
    val table = newTable()
    execute(s"CREATE TABLE $table (city VARCHAR(20), n BIGINT, total BIGINT)")
    running(kept(byCity, table)) { query =>
      query.start("changelog-jdbc", options + ("dbtable" -> table))
      query.check("+I 1 Oslo 5", "+I 2 Rome 7", "+I 3 NULL 1")
      query.check("-U 1 Oslo 5", "+U 1 Rome 5", "+I 4 NULL 1")
    }
  }

  test("values of another unique column can move from row to row") {
    val table = newTable()
    execute(s"CREATE TABLE $table (id INT PRIMARY KEY, city VARCHAR(20) UNIQUE, fare INT)")
    running(kept("SELECT id, city, fare FROM rides", table)) { query =>
      query.start("changelog-jdbc", options + ("dbtable" -> table), ", mode => 'upsert'")
      query.check("+I 1 Oslo 5", "+I 2 Rome 7", "+I 3 Bern 1")
      query.check(
        "-U 1 Oslo 5",
        "+U 1 Rome 5",
        "-U 2 Rome 7",
        "+U 2 Bern 7",
        "-U 3 Bern 1",
        "+U 3 Oslo 1")
      query.check("-D 1 Rome 5", "-U 2 Bern 7", "+U 2 Rome 7")
    }
  }

  test("rows that only come need no key") {
    val table = newTable()
    val plain = Feed("plain", "id INT, city STRING", insertOnly = true)
    for (partitions <- Seq(1, 2)) {
      val name = s"${table}_$partitions"
      running(kept("SELECT city FROM plain WHERE id > 1", name, plain)) { query =>
        val all = options ++ Map(
          "dbtable" -> name,
          "createTable" -> "true",
          "numPartitions" -> partitions.toString)
        query.start("changelog-jdbc", all)
        query.check("+I 1 Oslo", "+I 2 Oslo", "+I 3 Oslo", "+I 4 NULL")
        query.check("+I 5 Oslo", "+I 6 Rome")
      }
    }
  }

  test("values of every type arrive") {
    val table = newTable()
    val types = Feed(
      "types",
      "id BIGINT, b BOOLEAN, i INT, f FLOAT, d DOUBLE, n DECIMAL(20,3), s STRING, x BINARY, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ",
      key = Seq("id"))
    running(kept("SELECT * FROM types", table, types)) { query =>
      query.start(
        "changelog-jdbc",
        options ++ Map("dbtable" -> table, "createTable" -> "true"),
        ", mode => 'upsert'")
      query.add(
        "+I 1 true 5 1.5 0.1 12345678901234567.125 häß€😀 bytes 2024-02-29 2024-02-29T12:34:56.123456 2024-02-29T12:34:56.654321",
        "+I 2 NULL NULL NULL NULL NULL NULL NULL NULL NULL NULL")
      spark.streams.active.foreach(_.processAllAvailable())
      val rows = read(table)
        .orderBy("id")
        .selectExpr(
          "id",
          "CAST(b AS BOOLEAN)",
          "i",
          "f",
          "d",
          "n",
          "s",
          "CAST(x AS STRING)",
          "day",
          "CAST(CAST(at AS TIMESTAMP) AS STRING)",
          "CAST(local AS STRING)")
        .collect()
      val expected = "1 true 5 1.5 0.1 12345678901234567.125 häß€😀 bytes 2024-02-29 " +
        "2024-02-29 12:34:56.123456 2024-02-29 12:34:56.654321"
      assert(rows.map(_.toSeq.mkString(" ")).toSeq == Seq(expected, "2" + " null" * 10))
    }
  }

  /** The address of the database, sessions of which begin in a time zone. */
  protected def addressIn(zone: String): String

  /** An address where no such database is, and what its error says. */
  protected def nowhere: (String, String)

  /** What the error for a wrong password says. */
  protected def refusal: String

  test("an address that can't be reached and a wrong password are told apart") {
    def refused(changed: (String, String)*)(address: String, reason: String): Unit = {
      val query = kept("SELECT * FROM rides", "none")
      val error = checkError(
        "CHANGELOG_SINK_CONNECTION_FAILED",
        "address" -> address,
        "user" -> "the user tester") {
        query.start("changelog-jdbc", options ++ changed + ("dbtable" -> "none"))
      }
      assert(error.getMessageParameters.get("reason").contains(reason))
      assert(error.getCause.getMessage.contains(reason))
    }
    val host = options("url").split("[?;]").head
    refused("password" -> "another")(host, refusal)
    val (other, reason) = nowhere
    refused("url" -> other)(other.split("[?;]").head, reason)
  }

  private val clocks = Feed("clocks", "text STRING, n INT", key = Seq("text"))

  for (zones <- TimeZones.drawn(suiteName))
    test(s"instants, wall clocks and days stay what they are: $zones") {
      checkTimes(newTable(), zones, TimeZones.wallClocks)
    }

  /** The type of a column for instants that a new table has not. */
  protected def otherInstants: String

  /** The type of a column for wall clocks. */
  protected def wallClocks: String = "TIMESTAMP(6)"

  test("a table of one's own can have another type of instants") {
    val table = newTable()
    execute(
      s"CREATE TABLE $table (at $otherInstants, local $wallClocks, on_day DATE, n BIGINT, " +
        "UNIQUE (at, local, on_day))")
    checkTimes(
      table,
      TimeZones("America/New_York", "UTC", "Asia/Kolkata"),
      TimeZones.wallClocks.filter(clock => clock > "1971" && clock < "2038-01-19 03:14:08"))
  }

  private def checkTimes(table: String, zones: TimeZones, clocksUsed: Seq[String]): Unit = {
    val sql = "SELECT CAST(concat(text, 'Z') AS TIMESTAMP) AS at, " +
      "CAST(text AS TIMESTAMP_NTZ) AS local, CAST(left(text, 10) AS DATE) AS on_day, sum(n) AS n " +
      "FROM clocks GROUP BY 1, 2, 3"
    def row(clock: String, n: Int) = s"${clock.replace(' ', 'T')} $n"
    def check(query: KeptQuery, present: Seq[(String, Int)]): Unit = {
      query.processAll()
      val expected = present.map { case (clock, n) =>
        val local = LocalDateTime.parse(clock.replace(' ', 'T'))
        (local, local, local.toLocalDate, n.toLong)
      }
      // MariaDB's driver reads a wall clock in the time zone of the JVM
      val written = TimeZones("UTC", "UTC", "UTC").in(spark)(times(table))
      assert(written == expected.sortBy(_.toString))
    }
    val (gone, others) = clocksUsed.zipWithIndex.partition(_._2 % 3 == 1)
    val (changed, same) = others.partition(_._2 % 3 == 0)
    zones.in(spark) {
      running(kept(sql, table, clocks)) { query =>
        val all = Map("dbtable" -> table, "createTable" -> "true")
        query.start("changelog-jdbc", options ++ all + ("url" -> addressIn(zones.database)))
        query.add((gone ++ others).map { case (clock, _) => s"+I ${row(clock, 1)}" }: _*)
        check(query, clocksUsed.map(_ -> 1))
        query.add(gone.map { case (clock, _) => s"-D ${row(clock, 1)}" } ++ changed.flatMap {
          case (clock, _) => Seq(s"-U ${row(clock, 1)}", s"+U ${row(clock, 2)}")
        }: _*)
        check(query, same.map(_._1 -> 1) ++ changed.map(_._1 -> 2))
      }
    }
  }

  /** A query fails over a value that the database can't hold, and writes nothing of the batch. */
  protected def checkNotHeld(sql: String, column: String, held: String): Unit = {
    val table = newTable()
    running(kept(s"SELECT id, $sql AS $column FROM rides", table)) { query =>
      query.start("changelog-jdbc", options ++ Map("dbtable" -> table, "createTable" -> "true"))
      query.add("+I 1 Oslo 1", "+I 2 Oslo 0", "+I 3 Oslo 1")
      checkError(
        "CHANGELOG_SINK_VALUE_NOT_HELD",
        "table" -> table,
        "column" -> column,
        "held" -> held)(query.processAll())
      assert(read(table).count() == 0)
    }
  }

  /** The instants in UTC, wall clocks, days and counts of a table, as the database has them. */
  private def times(table: String): Seq[(LocalDateTime, LocalDateTime, LocalDate, Long)] =
    DatabaseTable.connected(options) { connection =>
      val sql = s"SELECT * FROM $table"
      Using.resource(connection.createStatement().executeQuery(sql)) { rows =>
        val zoned = Seq("timestamptz", "TIMESTAMP WITH TIME ZONE")
          .exists(rows.getMetaData.getColumnTypeName(1).startsWith)
        Iterator
          .continually(rows)
          .takeWhile(_.next())
          .map { row =>
            val at =
              if (!zoned) row.getObject(1, classOf[LocalDateTime])
              else
                row
                  .getObject(1, classOf[OffsetDateTime])
                  .withOffsetSameInstant(ZoneOffset.UTC)
                  .toLocalDateTime
            val local = row.getObject(2, classOf[LocalDateTime])
            (at, local, row.getObject(3, classOf[LocalDate]), row.getLong(4))
          }
          .toSeq
          .sortBy(_.toString)
      }
    }
}
