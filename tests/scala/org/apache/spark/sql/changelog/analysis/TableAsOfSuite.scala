// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import scala.util.Random

import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.analysis.RelationTimeTravel
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkSqlParser

import org.apache.spark.sql.changelog.testing._

/** Joins with a table as of a time of the left row, by `FOR SYSTEM_TIME AS OF` and `versions_of`. */
class TableAsOfSuite
    extends AnyFunSuite
    with ChangelogSession
    with ErrorChecks
    with BeforeAndAfterEach {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Quick)

  private lazy val orders =
    new RawStream(spark, "orders", "op STRING, id INT, cur STRING, at INT")
  private lazy val rates =
    new RawStream(spark, "rates", "op STRING, cur STRING, rate INT, since BIGINT")
  private lazy val events = new RawStream(spark, "events", "value STRING")

  override def beforeEach(): Unit = Seq(orders, rates, events).foreach(_.reset())

  private val feeds =
    """WITH o AS (SELECT * FROM from_changelog(TABLE(orders), change_type => 'op', key => 'id')),
      |r AS (SELECT cur AS currency, rate * 10 AS rate FROM from_changelog(TABLE(rates), change_type => 'op',
      |  key => 'cur', input => 'upsert', sequence_by => 'since'))""".stripMargin

  private def running(
      query: String,
      common: String = feeds)(body: RunningChanges => Unit): Unit = {
    val changes = new RunningChanges(
      spark.sql(s"$common SELECT * FROM to_changelog(TABLE($query))"),
      QuickFileSystem.temporaryDirectory())
    try body(changes)
    finally changes.stop()
  }

  test("a version of a feed ends by the next change of its key, and by a delete") {
    running("SELECT id, r.rate FROM o JOIN r FOR SYSTEM_TIME AS OF o.at ON o.cur = r.currency") {
      query =>
        query.atOnce {
          orders.add("+I 1 EUR 5", "+I 2 EUR 8", "+I 3 EUR 2")
          rates.add("+I EUR 11 3")
        }
        assert(query.next() == Seq("1 110 insert", "2 110 insert"))
        rates.add("+U EUR 12 7")
        assert(query.next() == Seq("2 110 update_preimage", "2 120 update_postimage"))
        rates.add("-D EUR 0 4")
        assert(query.next() == Seq("1 110 delete"))
        query.restart()
        rates.add("+I EUR 13 5")
        assert(query.next() == Seq("1 130 insert"))
    }
  }

  private val texts = Seq(
    "o LEFT JOIN r FOR SYSTEM_TIME AS OF o.at ON o.cur = r.currency",
    "o LEFT OUTER JOIN r FOR system_time AS OF (o.at - 1) AS v ON o.cur = v.currency AND v.rate > 30",
    "o JOIN r FOR SYSTEM_TIME AS OF `at` v ON o.cur = v.currency",
    "o JOIN LATERAL versions_of(TABLE(r), at => o.at) v ON o.cur = v.currency AND o.id <> v.rate")

  /** The same joins over all versions, by batch Spark and without the clause. */
  private val byHand = {
    def best(at: String, left: String) =
      s"""o $left LATERAL (SELECT op, cur AS currency, rate * 10 AS rate FROM rates_batch b
         |  WHERE b.cur = o.cur AND b.since <= $at AND op <> '-U' ORDER BY b.since DESC LIMIT 1) v
         |  ON v.op <> '-D'""".stripMargin
    Seq(
      best("o.at", "LEFT JOIN"),
      best("o.at - 1", "LEFT JOIN") + " AND v.rate > 30",
      best("o.at", "JOIN"),
      best("o.at", "JOIN") + " AND o.id <> v.rate")
  }

  test("random feeds equal batch Spark after every batch") {
    (1 to 3).foreach { seed =>
      texts.zip(byHand).foreach { case (text, oracle) =>
        beforeEach()
        val random = new Random(seed)
        var (sentOrders, sentRates) = (Seq.empty[String], Seq.empty[String])
        val alias = if (text.contains(" v ")) "v" else "r"
        running(s"SELECT id, o.at, $alias.rate FROM $text") { query =>
          (1 to 4).foreach { batch =>
            val newOrders = Seq.fill(3)(
              s"${random.nextInt(1000) + batch * 1000} C${random.nextInt(2)} ${random.nextInt(60)}")
            val newRates = (1 to 3).map { n =>
              val kind = Seq("+I", "+U", "-D")(random.nextInt(3))
              s"$kind C${random.nextInt(2)} ${random.nextInt(9)} ${random.nextInt(15) * 12 + batch * 3 + n - 4}"
            }
            orders.add(newOrders.distinctBy(_.split(' ').head).map("+I " + _): _*)
            rates.add(newRates: _*)
            sentOrders ++= newOrders.distinctBy(_.split(' ').head)
            sentRates ++= newRates
            query.next()
            def table(rows: Seq[String], texts: Set[Int]) = rows
              .map(_.split(' ').zipWithIndex.map { case (v, i) => if (texts(i)) s"'$v'" else v })
              .map(_.mkString("(", ",", ")"))
              .mkString("VALUES ", ",", "")
            val expected = spark
              .sql(s"""WITH o AS (SELECT * FROM (${table(sentOrders, Set(1))}) AS t(id, cur, at)),
                      |rates_batch AS (SELECT * FROM (${table(
                  sentRates,
                  Set(0, 1))}) AS t(op, cur, rate, since))
                      |SELECT id, o.at, v.rate FROM $oracle""".stripMargin)
              .collect()
              .map(TextChangelog.format)
              .sorted
              .toSeq
            assert(FoldedChanges(query.all) == expected, s"$text, seed $seed, batch $batch")
          }
        }
      }
    }
  }

  test("a feed of Debezium's events") {
    val debezium =
      """WITH o AS (SELECT * FROM from_changelog(TABLE(orders), change_type => 'op', key => 'id')),
        |r AS (SELECT * FROM from_debezium(TABLE(events), schema => 'cur STRING, rate INT', key => 'cur',
        |  sequence_by => 'source.ts_ms'))""".stripMargin
    def event(op: String, at: Int, rate: Int, before: String = "null") = {
      val after = if (op == "d") "null" else s"""{"cur":"EUR","rate":$rate}"""
      s"""{"op":"$op","before":$before,"after":$after,"source":{"ts_ms":$at}}"""
    }
    running(
      "SELECT id, r.rate FROM o LEFT JOIN r FOR SYSTEM_TIME AS OF o.at ON o.cur = r.cur",
      debezium) { query =>
      query.atOnce {
        orders.add("+I 1 EUR 5", "+I 2 EUR 8")
        events.add(event("c", 3, 11), event("u", 6, 12, """{"cur":"EUR","rate":11}"""))
      }
      assert(query.next() == Seq("1 11 insert", "2 12 insert"))
      events.add(event("d", 7, 0, """{"cur":"EUR","rate":12}"""))
      assert(query.next() == Seq("2 12 update_preimage", "2 NULL update_postimage"))
    }
  }

  test("time travel by a constant is Spark's") {
    val stock = new SparkSqlParser
    Seq(
      "SELECT * FROM t FOR SYSTEM_TIME AS OF '2024-01-01'",
      "SELECT * FROM a JOIN t FOR SYSTEM_TIME AS OF TIMESTAMP '2024-01-01 00:00:00' b ON a.id = b.id",
      "SELECT * FROM a JOIN t FOR SYSTEM_TIME AS OF current_timestamp() - INTERVAL 1 DAY USING (id)",
      "SELECT * FROM t TIMESTAMP AS OF date_sub(current_date(), 1)").foreach { text =>
      val plan = spark.sessionState.sqlParser.parsePlan(text)
      assert(plan == stock.parsePlan(text))
      assert(plan.exists(_.isInstanceOf[RelationTimeTravel]))
    }
    val travel = spark.sessionState.sqlParser
      .parsePlan("SELECT * FROM t FOR SYSTEM_TIME AS OF '2024-01-01'")
      .collectFirst { case travel: RelationTimeTravel => travel.timestamp }
    assert(travel.flatten.contains(Literal("2024-01-01")))
    intercept[ParseException](spark.sql("SELECT * FROM t FOR SYSTEM_TIME AS OF at"))
  }

  test("joins that have no version of a time are refused") {
    def refused(query: String, common: String = feeds): Unit =
      checkError("CHANGELOG_SYSTEM_TIME")(
        spark.sql(s"$common SELECT * FROM to_changelog(TABLE($query))"))
    Seq(
      "RIGHT JOIN r FOR SYSTEM_TIME AS OF o.at ON o.cur = r.currency",
      "FULL JOIN r FOR SYSTEM_TIME AS OF o.at ON o.cur = r.currency",
      "LEFT SEMI JOIN r FOR SYSTEM_TIME AS OF o.at ON o.cur = r.currency",
      "JOIN r FOR SYSTEM_TIME AS OF o.at USING (currency)",
      "JOIN r FOR SYSTEM_TIME AS OF o.at - 1 ON o.cur = r.currency",
      "JOIN r FOR SYSTEM_TIME AS OF o.cur ON o.cur = r.currency",
      "JOIN r FOR SYSTEM_TIME AS OF o.at ON o.id = r.rate",
      "JOIN r FOR SYSTEM_TIME AS OF o.at").foreach(join => refused(s"SELECT * FROM o $join"))
    val noTime = feeds.replace(", sequence_by => 'since'", "")
    refused("SELECT * FROM o JOIN r FOR SYSTEM_TIME AS OF o.at ON o.cur = r.currency", noTime)
    intercept[AnalysisException](
      spark.sql(
        s"$feeds SELECT * FROM o JOIN r FOR SYSTEM_TIME AS OF r.rate ON o.cur = r.currency"))
    refused("SELECT * FROM o, versions_of(TABLE(r), 5)")
  }
}
