// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import java.time.Instant

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/** What is emitted at an interval is held against batch Spark over the rows up to each emission. */
class EmitEverySuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  private val Second = 1000L
  private val start = Instant.parse("2027-01-10T12:00:00Z").toEpochMilli

  private val rides = Feed("rides", "id INT, city STRING, fare INT", key = Seq("id"))
  private val bag = Feed("bag", "g STRING, v INT")
  private val news = Feed("news", "g STRING, v INT", insertOnly = true)

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    val quick = ChangelogSession.Quick - "spark.sql.shuffle.partitions"
    quick.foreach { case (key, value) => spark.conf.set(key, value) }
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")
  }

  private def run(feeds: Seq[Feed], sql: String, variant: Variant = Variant())(
      steps: TimedRun => Unit): Unit = {
    val run =
      new TimedRun(spark, feeds, sql, start, variant, compares = false, emit = "every 10 seconds")
    try withClue(s"$sql $variant ")(steps(run))
    finally run.close()
  }

  test(
    "changes are held back and netted until the interval has passed, also when nothing arrives") {
    onProviders {
      run(Seq(rides), "SELECT city, sum(fare) AS total FROM rides GROUP BY city") { run =>
        assert(run.step(0, rides -> Seq("+I 1 Oslo 5", "+I 2 Rome 7")).size == 2)
        assert(run.step(Second, rides -> Seq("+I 3 Oslo 1", "-D 2 Rome 7")) == Nil)
        assert(run.step(Second, rides -> Seq("-D 3 Oslo 1", "+I 4 Bern 2")) == Nil)
        assert(run.step(8 * Second - 1) == Nil)
        // nothing is left of ride 3
        assert(run.step(1) == Seq("+I Bern 2", "-D Rome 7"))
        run.compare()
        assert(run.step(Second, rides -> Seq("+I 5 Oslo 3", "-D 4 Bern 2")) == Nil)
        run.stop()
        // with what comes in the batch of the emission
        assert(
          run.step(20 * Second, rides -> Seq("+I 6 Oslo 1", "+I 7 Rome 9")) ==
            Seq("+I Rome 9", "+U Oslo 9", "-D Bern 2", "-U Oslo 5"))
        run.compare()
        // a long time without changes: the next one does not wait
        assert(run.step(60 * Second, rides -> Seq("-D 7 Rome 9")) == Seq("-D Rome 9"))
        run.compare()
      }
    }
  }

  test("a batch that is run again emits again, and a clock set back does not emit twice") {
    run(Seq(bag), "SELECT g, v FROM bag") { run =>
      run.step(0, bag -> Seq("+I a 1"))
      run.step(Second, bag -> Seq("+I a 1"))
      run.restart(repeats = true)
      assert(run.step(9 * Second) == Seq("+I a 1"))
      run.step(Second, bag -> Seq("-D a 1"))
      run.setTime(start)
      assert(run.step(15 * Second, bag -> Seq("-D a 1")) == Nil)
      assert(run.step(5 * Second) == Seq("-D a 1", "-D a 1"))
      run.compare()
    }
  }

  private val queries = Seq(
    (rides, "SELECT city, count(*) AS c, max(fare) AS m FROM rides GROUP BY city", Seq("city")),
    (rides, "SELECT a.id, b.id AS other FROM rides a LEFT JOIN rides b ON a.fare = b.fare", Nil),
    (
      rides,
      "SELECT id, city, fare FROM (SELECT *, row_number() OVER (PARTITION BY city ORDER BY fare, id) " +
        "AS n FROM rides) WHERE n <= 2",
      Seq("id")),
    (bag, "SELECT g, v FROM bag", Nil),
    (news, "SELECT g, v FROM news WHERE v > 1", Nil),
    (bag, "SELECT count(*) AS c FROM (SELECT DISTINCT g FROM bag)", Seq("c")))

  for ((feed, sql, key) <- queries) test(s"each emission gives what batch gives: $sql") {
    val modes = Variant() +: Seq(Variant(mode = "upsert", key = key)).filter(_ => key.nonEmpty)
    for (variant <- modes; seed <- 1 to 2) withClue(s"seed $seed ") {
      val random = new Random(seed)
      var rows = Seq.empty[String]
      var (now, last, emissions) = (0L, -10L, 0)
      def row(id: Int) = feed.name match {
        case "rides" =>
          s"$id ${Seq("Oslo", "Rome", "Bern")(random.nextInt(3))} ${random.nextInt(4)}"
        case _ => s"${Seq("a", "b")(random.nextInt(2))} ${random.nextInt(3)}"
      }
      run(Seq(feed), sql, variant) { run =>
        for (step <- 1 to 15) {
          val (gone, kept) = rows.partition(_ => !feed.insertOnly && random.nextInt(4) == 0)
          val come = Seq.tabulate(random.nextInt(4))(index => row(10 * step + index))
          rows = kept ++ come
          val passes = random.nextInt(7).toLong
          now += passes
          val changes = gone.map(row => s"-D $row") ++ come.map(row => s"+I $row")
          if (random.nextInt(5) == 0) run.restart(repeats = step > 1 && random.nextBoolean())
          val isDue = now >= last + 10
          // the first batch is run whether or not there are changes
          val emitted = run.step(passes * Second, feed -> changes)
          if (isDue && (changes.nonEmpty || emitted.nonEmpty)) {
            last = now
            emissions += 1
            run.compare()
          } else if (!isDue) assert(emitted == Nil, s"step $step")
        }
        assert(emissions > 2)
      }
    }
  }

  test("a wrong emission is refused by what is expected") {
    def refused(emit: String, mode: String = "retract")(parameters: (String, String)*): Unit =
      checkError("CHANGELOG_ARGUMENT_INVALID", parameters: _*)(
        spark.sql(s"SELECT * FROM to_changelog(TABLE(SELECT 1 AS a), '$mode', emit => '$emit')"))
    val grammar =
      "one of 'changes', 'every 10 seconds', 'on close' and 'on close, then corrections for 1 " +
        "hour' is expected"
    for (wrong <- Seq("sometimes", "every now and then", "every 0 seconds", "every 1 month")) {
      refused(wrong)("argument" -> "emit", "value" -> s"'$wrong'", "expected" -> grammar)
    }
    refused("on close")(
      "argument" -> "mode",
      "value" -> "'retract'",
      "expected" -> "'append' is expected with emit => 'on close'")
    val corrected = "on close, then corrections for 1 hour"
    refused(corrected, "append")(
      "argument" -> "mode",
      "value" -> "'append'",
      "expected" -> s"'retract' or 'upsert' is expected with emit => '$corrected'")
    spark.sql("SELECT * FROM to_changelog(TABLE(SELECT 1 AS a), emit => 'On Close')").collect()
  }
}
