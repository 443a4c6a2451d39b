// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.endtoend

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/**
 * Rows changed by SQL in a real PostgreSQL go through Debezium and Kafka into tables in a real
 * MariaDB, which after every round equal the same SELECT in PostgreSQL.
 */
class PostgresDebeziumSuite extends AnyFunSuite with KafkaTopics {
  private lazy val postgres = Services.postgres()
  private lazy val kafka = Services.kafka()

  private lazy val mariadb = Services.mariadb()

  /** Runs statements in one transaction. */
  private def execute(statements: String*): Unit =
    DatabaseTable.execute(postgres, statements: _*)

  /** The rows of a query in PostgreSQL, as text. */
  private def select(sql: String): Seq[String] = DatabaseTable.select(postgres, sql)

  private val tables = Map(
    "customers" -> "id INT, name STRING, city STRING, bio STRING",
    "orders" -> ("id INT, customer INT, amount DECIMAL(10,2), weight DECIMAL(38,20), " +
      "placed TIMESTAMP_NTZ, at TIMESTAMP, day DATE, paid BOOLEAN"))

  private val totals =
    """SELECT c.city, count(*) AS n, sum(o.amount) AS total, round(max(o.weight), 4) AS heaviest,
      |  cast(min(o.day) AS VARCHAR(20)) AS first, cast(max(o.placed) AS VARCHAR(40)) AS last,
      |  count(DISTINCT o.customer) AS customers, max(length(c.bio)) AS longest
      |FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.city""".stripMargin

  private val open =
    """SELECT c.id, c.name, count(o.id) AS n, coalesce(sum(o.amount), 0.00) AS total
      |FROM customers c LEFT JOIN orders o ON o.customer = c.id AND NOT o.paid
      |WHERE c.city IS NOT NULL GROUP BY c.id, c.name""".stripMargin

  private def create(): Unit = execute(
    "CREATE TABLE customers(id INT PRIMARY KEY, name TEXT, city TEXT, bio TEXT)",
    "ALTER TABLE customers ALTER COLUMN bio SET STORAGE EXTERNAL",
    """CREATE TABLE orders(id INT PRIMARY KEY, customer INT, amount NUMERIC(10,2),
      |  weight NUMERIC, placed TIMESTAMP, at TIMESTAMPTZ, day DATE, paid BOOLEAN)""".stripMargin,
    "INSERT INTO customers VALUES (1, 'Ada', 'Oslo', repeat('long ', 2000)), (2, 'Bob', 'Rome', 'b')",
    """INSERT INTO orders SELECT i, 1 + i % 3, i * 1.25, i / 3.0, timestamp '2024-01-01 00:00:00.123456'
      | + i * interval '1 hour', now(), date '1969-12-30' + i, i % 2 = 0
      | FROM generate_series(1, 20) i""".stripMargin)

  private val rounds: Seq[Seq[String]] = Seq(
    Seq("INSERT INTO customers VALUES (3, 'Cyd', 'Oslo', NULL)"),
    // the long text is not sent, for it does not change
    Seq("UPDATE customers SET city = 'Bern' WHERE id = 1"),
    Seq(
      "UPDATE orders SET amount = amount + 1 WHERE id <= 10",
      "DELETE FROM orders WHERE id > 15"),
    Seq("UPDATE orders SET id = id + 100, weight = 7.5 WHERE id <= 3"),
    Seq(
      "DELETE FROM customers WHERE id = 2",
      "INSERT INTO customers VALUES (2, 'Bea', 'Bern', 'x')"),
    Seq("UPDATE customers SET name = 'Ada L.', bio = repeat('longer ', 2000) WHERE id = 1"),
    Seq("UPDATE customers SET city = NULL WHERE id = 3", "UPDATE orders SET paid = NOT paid"),
    Seq("DELETE FROM orders"),
    Seq(
      "INSERT INTO orders SELECT i, i % 4, -i, 0, now(), now(), now(), false " +
        "FROM generate_series(1, 50) i"))

  private def topicName(table: String): String = s"shop.public.$table"

  /** Waits until `actual` has been as expected once, as long as everything runs. */
  private def await(expected: Seq[String], what: String, debezium: DebeziumConnector)(
      actual: => Seq[String]): Unit = {
    val deadline = System.nanoTime() + 120L * 1000000000L
    var found = actual
    while (found != expected && System.nanoTime() < deadline) {
      debezium.check()
      Thread.sleep(100)
      found = actual
    }
    assert(found == expected, what)
  }

  test("tables in MariaDB equal queries in PostgreSQL after every round") {
    mariadb
    create()
    tables.keys.foreach(table => createTopic(topicName(table)))
    val debezium = new DebeziumConnector(
      "shop",
      postgres,
      kafka,
      tables.keys.map("public." + _).toSeq,
      Map("offset.flush.interval.ms" -> "3600000"))
    try {
      debezium.start()
      await(Seq("t"), "no slot", debezium)(select("SELECT active FROM pg_replication_slots"))
      tables.foreach { case (table, columns) =>
        stream(topicName(table)).createOrReplaceTempView(s"${table}_topic")
        spark
          .sql(s"SELECT * FROM from_debezium(TABLE(${table}_topic), '$columns', key => 'id')")
          .createOrReplaceTempView(table)
      }
      val views = Seq("totals" -> totals, "open_orders" -> open).map { case (name, sql) =>
        sql -> new DatabaseTable(spark, sql, mariadb, name)
      }
      views.foreach(_._2.start())
      def check(round: String): Unit = views.foreach { case (sql, view) =>
        await(select(sql), s"after $round", debezium)(view.table)
      }
      check("the snapshot")
      rounds.zipWithIndex.foreach { case (round, number) =>
        execute(round: _*)
        check(round.mkString("; "))
        if (number == 3) views.foreach(_._2.restart())
        if (number == 5) {
          // all that it has ever sent, and the tables anew
          debezium.kill()
          debezium.start()
          check("Debezium began anew")
        }
      }
      views.foreach(_._2.stop())
    } finally debezium.stop()
  }
}
