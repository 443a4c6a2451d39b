// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.sql.Timestamp

import scala.util.Random

import org.apache.spark.sql.Row

/**
 * Events of an auction house: of fifty, one is a new person, three are auctions and the rest bids.
 * Later on bids are withdrawn, and auctions end at other times.
 */
object Nexmark {
  val tables: Seq[Feed] = Seq(
    Feed(
      "person",
      "id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, dateTime TIMESTAMP, extra STRING",
      insertOnly = true),
    Feed(
      "auction",
      "id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, dateTime TIMESTAMP, expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING",
      key = Seq("id")),
    Feed(
      "bid",
      "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING"))

  private val Start = 1640995200000L
  private val MillisBetweenEvents = 40L
  private val Channels = Seq("Google", "Facebook", "Baidu", "Apple", "channel-7", "channel-12")

  /** Four batches of events; the last two also take back and change what came before. */
  lazy val steps: Seq[Step] = {
    val random = new Random(42)
    val batches = (0 until 4).map { batch =>
      (0 until 150).map(number => event(random, batch * 150 + number))
    }
    def rows(name: String, batch: Int): Seq[Row] = batches(batch).collect { case (`name`, row) =>
      row
    }
    (0 until 4).map { batch =>
      val inserted = tables.map { feed =>
        feed.name -> rows(feed.name, batch).map(Change("+I", _))
      }.toMap
      val before = if (batch < 2) -1 else batch - 2
      def some(name: String) =
        if (before < 0) Nil else rows(name, before).zipWithIndex.filter(_._2 % 5 == 0).map(_._1)
      val withdrawn = some("bid").map(Change("-D", _))
      val prolonged = some("auction").flatMap { row =>
        val expires = new Timestamp(row.getTimestamp(6).getTime + 4000)
        Seq(Change("-U", row), Change("+U", Row.fromSeq(row.toSeq.updated(6, expires))))
      }
      Step(
        inserted ++ Map(
          "bid" -> (inserted("bid") ++ withdrawn),
          "auction" -> (inserted("auction") ++ prolonged)))
    }
  }

  private def event(random: Random, number: Int): (String, Row) = {
    val time = new Timestamp(Start + number * MillisBetweenEvents)
    val persons = 1 + number / 50
    val auctions = 3 * (number / 50)
    def one(choices: String*) = choices(random.nextInt(choices.size))
    def extra = random.alphanumeric.take(6).mkString.toLowerCase
    number % 50 match {
      case 0 =>
        val name =
          one("Peter", "Sarah", "Ines", "Walter") + " " + one("Shultz", "Abrams", "Smith")
        val email = s"$extra@example.com"
        val (city, state) = (one("Boise", "Portland", "Phoenix"), one("OR", "ID", "CA", "AZ"))
        "person" -> Row(
          persons - 1L,
          name,
          email,
          s"${random.nextInt(9999)}",
          city,
          state,
          time,
          extra)
      case n if n < 4 =>
        val (id, price) = (auctions + n - 1L, 1L + random.nextInt(500))
        val expires = new Timestamp(time.getTime + 1000L + random.nextInt(9000))
        val category = 10L + random.nextInt(3)
        val seller = random.nextInt(persons).toLong
        "auction" -> Row(
          id,
          s"item $id",
          extra,
          price,
          2 * price,
          time,
          expires,
          seller,
          category,
          extra)
      case _ =>
        // half of the bids are for few auctions
        val hot = random.nextInt(2) == 0
        val auction = if (hot) math.max(0, auctions - 1) else random.nextInt(auctions + 3)
        val channel = one(Channels: _*)
        val id = if (random.nextBoolean()) s"&channel_id=${random.nextInt(9)}" else ""
        val url = s"https://www.nexmark.com/${extra.take(2)}/$extra/item.htm?query=1$id"
        val price = 10L + random.nextInt(9000)
        "bid" -> Row(
          auction.toLong,
          random.nextInt(persons).toLong,
          price,
          channel,
          url,
          time,
          extra)
    }
  }
}
