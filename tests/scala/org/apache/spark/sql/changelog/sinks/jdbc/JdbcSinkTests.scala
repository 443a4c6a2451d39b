// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.jdbc

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
}
