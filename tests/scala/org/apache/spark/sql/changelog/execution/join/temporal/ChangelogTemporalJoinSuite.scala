// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join.temporal

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/** Joins with the version of a time, with more rows of a key than one record holds. */
class ChangelogTemporalJoinSuite extends AnyFunSuite with ChangelogSession {
  private lazy val oracle = new Oracle(spark)
  private val orders = Feed("orders", "id INT, cur STRING, at INT")
  private val rates = Feed("rates", "cur STRING, since INT, rate INT")

  for (conf <- Seq(Map.empty[String, String], Variant.RocksDB))
    test(s"many rows of one key come and go${if (conf.isEmpty) "" else ", RocksDB"}") {
      val random = new Random(7)
      var present = Map("orders" -> Set.empty[String], "rates" -> Set.empty[String])
      def insert(feed: String, rows: Seq[String]) = {
        val come = rows.toSet -- present(feed)
        present += feed -> (present(feed) ++ come)
        come.toSeq.sorted.map(row => s"+I $row")
      }
      def delete(feed: String, count: Int) = {
        val gone = random.shuffle(present(feed).toSeq.sorted).take(count)
        present += feed -> (present(feed) -- gone)
        gone.map(row => s"-D $row")
      }
      def some(count: Int)(row: Int => String) = Seq.fill(count)(row(random.nextInt(1000)))
      def someOrders(count: Int) = some(count)(at => s"${random.nextInt(1 << 20)} EUR $at")
      // each time has one rate, so that batch Spark has no choice
      def someRates(count: Int) = some(count)(since => s"EUR ${2 * since} $since")
      def step(orders: Seq[String], rates: Seq[String]) =
        Step(Map("orders" -> orders, "rates" -> rates).map { case (name, changes) =>
          val feed = Seq(this.orders, this.rates).find(_.name == name).get
          name -> changes.map(TextChangelog.parse(_, feed.schema))
        })
      val steps = Seq(
        step(insert("orders", someOrders(700)), Nil),
        step(Nil, insert("rates", someRates(600))),
        step(insert("orders", someOrders(50)), insert("rates", someRates(5))),
        step(delete("orders", 200), delete("rates", 3)),
        step(delete("orders", 500), delete("rates", 380)),
        step(insert("orders", someOrders(400)), insert("rates", someRates(300))),
        step(delete("orders", 10000), Nil),
        step(insert("orders", someOrders(9)), delete("rates", 10000)))
      oracle.check(
        Program(
          Seq(orders, rates),
          "SELECT o.id, o.at, r.rate FROM orders o LEFT JOIN LATERAL (SELECT * FROM rates v " +
            "WHERE v.cur = o.cur AND v.since <= o.at ORDER BY v.since DESC LIMIT 1) r",
          steps),
        Variant(conf = conf))
    }
}
