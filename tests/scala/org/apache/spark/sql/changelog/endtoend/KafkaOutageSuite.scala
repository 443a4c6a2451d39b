// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.endtoend

import java.io.File
import java.util.concurrent.atomic.AtomicReference

import org.scalatest.BeforeAndAfterEach
import org.scalatest.concurrent.Eventually.{eventually, timeout}
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Seconds, Span}

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.functions.{col, udf}
import org.apache.spark.sql.streaming.StreamingQuery

import org.apache.spark.sql.changelog.testing._
import org.apache.spark.sql.changelog.views.RunningViews

/** A broker crashes under queries and refreshes that read and write its topics, and returns with its data. */
class KafkaOutageSuite
    extends AnyFunSuite
    with KafkaTopics
    with ErrorChecks
    with BeforeAndAfterEach {
  import KafkaOutageSuite._

  private lazy val kafka = new Services.Own("kafka")
  private var isPatient = false

  // one task after the other: the second reads its partition when the first has lost the broker
  override protected lazy val spark: SparkSession = ChangelogSession.start(conf = Map(
    "spark.master" -> "local[1]",
    "spark.sql.warehouse.dir" -> QuickFileSystem.temporaryDirectory().getPath))

  override protected def bootstrap: String = kafka.address("bootstrap")

  override protected def broker: Map[String, String] =
    super.broker ++ (if (isPatient) Map.empty else Impatient)

  override def afterEach(): Unit = {
    spark.streams.active.foreach(_.stop())
    RunningViews.stopAll()
    kafka.restart()
    spark.sql("DROP MATERIALIZED VIEW IF EXISTS v")
    ()
  }

  override def afterAll(): Unit =
    try kafka.close()
    finally super.afterAll()

  private def rides(source: String): String =
    s"from_upsert_kafka(TABLE($source), 'id INT, city STRING, fare INT', 'id')"

  private val totals = "SELECT city, count(*) AS n, sum(fare) AS total FROM rides GROUP BY city"
  private val row = "city STRING, n BIGINT, total BIGINT"

  /** Gives a topic of two partitions a new ride in each, and a new value of the first ride. */
  private def deliver(topic: String, number: Int): Unit = {
    def ride(id: Int) = s"$id" -> s"""{"city":"${Cities(id % Cities.size)}","fare":$number}"""
    send(topic, Seq(ride(2 * number)), Some(0))
    send(topic, Seq(ride(2 * number + 1), ride(1)), Some(1))
  }

  /** A stream of a topic during whose first row something happens. */
  private def watched(topic: String): DataFrame = stream(topic).where(watch(col("partition")))

  private def start(topic: String, checkpoint: File): StreamingQuery = {
    watched(s"${topic}_rides").createOrReplaceTempView("topic")
    val query = totals.replace("rides", rides("topic"))
    spark
      .sql(s"SELECT * FROM to_changelog(TABLE($query))")
      .writeStream
      .format("changelog-kafka")
      .options(broker ++ (if (isPatient) Map.empty else ImpatientSink))
      .option("topic", s"${topic}_totals")
      .option("checkpointLocation", checkpoint.getPath)
      .start()
  }

  private def expected(topic: String): RowMultiset = {
    batch(topic).createOrReplaceTempView("topic_now")
    RowMultiset.of(spark.sql(totals.replace("rides", rides("topic_now"))).collect())
  }

  private def checkTotals(topic: String): Unit =
    assert(
      RowMultiset.of(newest(s"${topic}_totals", row).collect()) == expected(s"${topic}_rides"))

  private def create(topic: String): File = {
    Seq("rides", "totals").foreach(name => createTopic(s"${topic}_$name", partitions = 2))
    deliver(s"${topic}_rides", 0)
    QuickFileSystem.temporaryDirectory()
  }

  test("a query waits for a broker that returns soon, and writes each row once") {
    isPatient = true
    val query = start("soon", create("soon"))
    query.processAllAvailable()
    checkTotals("soon")
    def soon(): Unit = {
      kafka.crash()
      new Thread(() => {
        Thread.sleep(2000)
        kafka.restart()
      }).start()
    }
    deliver("soon_rides", 1)
    next.set(() => soon())
    deliver("soon_rides", 2)
    query.processAllAvailable()
    checkTotals("soon")
    soon()
    deliver("soon_rides", 3)
    query.processAllAvailable()
    checkTotals("soon")
    val counts = spark.read
      .format("kafka")
      .options(broker ++ Map("subscribe" -> "soon_totals", "includeHeaders" -> "true"))
      .load()
      .groupBy("key", "headers")
      .count()
    assert(counts.where("count > 1").isEmpty)
  }

  test("a query whose broker stays away fails by name, and its next run goes on") {
    isPatient = false
    val checkpoint = create("away")
    for (number <- 1 to 2) {
      val query = start("away", checkpoint)
      query.processAllAvailable()
      checkTotals("away")
      next.set(() => kafka.crash())
      deliver("away_rides", number)
      val error = checkError("CHANGELOG_KAFKA_NOT_REACHABLE", "servers" -> bootstrap) {
        query.processAllAvailable()
      }
      assert(error.getSqlState == "08001" && error.getCause != null)
      checkError("CHANGELOG_KAFKA_NOT_REACHABLE")(start("away", checkpoint))
      kafka.restart()
    }
    start("away", checkpoint).processAllAvailable()
    checkTotals("away")
  }

  test("a refresh whose broker goes away fails by name, and the next one reads the rest") {
    isPatient = false
    create("viewed")
    watched("viewed_rides").createOrReplaceTempView("topic")
    def run(sql: String) = spark.sql(sql).collect().toSeq
    def fact(name: String) = run("DESCRIBE MATERIALIZED VIEW v")
      .collectFirst { case row if row.getString(0) == name => row.getString(1) }
      .getOrElse("")
    def check(): Unit = {
      kafka.restart()
      run("REFRESH MATERIALIZED VIEW v")
      assert(RowMultiset.of(run("SELECT * FROM v")) == expected("viewed_rides"))
      assert(fact("Last refresh").contains(", incremental,"))
      assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
    }
    def fails(): Unit = {
      val before = run("SELECT * FROM v").toSet
      val error = checkError("CHANGELOG_KAFKA_NOT_REACHABLE", "servers" -> bootstrap)(
        run("REFRESH MATERIALIZED VIEW v"))
      assert(error.getMessage.linesIterator.size == 1)
      assert(fact("Failure").contains("CHANGELOG_KAFKA_NOT_REACHABLE"), fact("Failure"))
      assert(run("SELECT * FROM v").toSet == before)
    }
    run(s"CREATE MATERIALIZED VIEW v USING parquet AS ${totals.replace("rides", rides("topic"))}")
    deliver("viewed_rides", 1)
    check()
    deliver("viewed_rides", 2)
    kafka.crash()
    fails()
    check()
    deliver("viewed_rides", 3)
    next.set(() => kafka.crash())
    fails()
    assert(next.get eq Nothing, "the broker was away before")
    check()
    run("START MATERIALIZED VIEW v")
    deliver("viewed_rides", 4)
    kafka.crash()
    eventually(timeout(Span(60, Seconds)))(assert(fact("Status") == "FAILED"))
    assert(fact("Failure").contains("Timeout"), fact("Failure"))
  }
}

object KafkaOutageSuite {
  private val Cities = Seq("Oslo", "Rome", "Bern")
  private val Nothing: () => Unit = () => ()

  /** What happens when the next row is read. */
  private val next = new AtomicReference(Nothing)

  private val watch = udf { (_: Int) =>
    next.getAndSet(Nothing)()
    true
  }

  /** Give up within seconds, which takes minutes by default. */
  private val Impatient = Map(
    "kafka.default.api.timeout.ms" -> "2000",
    "kafka.request.timeout.ms" -> "1000",
    "fetchOffset.numRetries" -> "1",
    "kafkaConsumer.pollTimeoutMs" -> "2000")
  private val ImpatientSink = Map(
    "kafka.max.block.ms" -> "2000",
    "kafka.delivery.timeout.ms" -> "3000",
    "kafka.linger.ms" -> "0")
}
