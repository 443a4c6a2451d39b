// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.microbatch

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.expressions.XXH64
import org.apache.spark.sql.streaming.StreamingQuery

import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.execution.RunningPlans
import org.apache.spark.sql.changelog.testing._

/** A declared key with several rows is told of, although no state counts the rows of all keys. */
class KeySamplesSuite extends AnyFunSuite with ChangelogSession {
  private val t = Feed("t", "id INT, g STRING, v INT", key = Seq("id"))
  private val sums = "SELECT g, sum(v) AS total FROM t GROUP BY g"
  private val off = Map(ChangelogConf.KEY_SAMPLE_ENABLED.key -> "false")

  /** How many warnings there are after each batch, whose changes come in several files. */
  private def warnings(
      sql: String = sums,
      feed: Feed = t,
      conf: Map[String, String] = Map.empty,
      read: DataFrame => Unit = batch => { batch.collect(); () })(
      batches: Seq[String]*): Seq[Int] = {
    val life = new QueryLife(spark, feed)
    var query = Option.empty[StreamingQuery]
    try
      batches.map { files =>
        val running = query.getOrElse {
          val changes = life.changes(sql, conf)
          changes.writeStream
            .option("checkpointLocation", life.checkpoint.toString)
            .foreachBatch((batch: DataFrame, _: Long) => read(batch))
            .start()
        }
        query = Some(running)
        running.processAllAvailable()
        files.foreach(changes => life.add(feed, changes.split(", ").toSeq: _*))
        running.processAllAvailable()
        spark.sparkContext.listenerBus.waitUntilEmpty()
        val shown = RunningPlans.find(running.id.toString).get.trees.flatMap(_.allWarnings)
        val told = shown.filter(_.contains("several rows of one key (id)"))
        assert(told.size == KeySamples.warnings(running.runId).size)
        told.size
      }
    finally {
      query.foreach(_.stop())
      spark.sparkContext.listenerBus.waitUntilEmpty()
      query.foreach(stopped => assert(KeySamples.warnings(stopped.runId).isEmpty))
    }
  }

  test("a key that comes twice is told of once, in one batch and in two") {
    assert(warnings()(Seq("+I 1 a 5, +I 1 b 7"), Seq("+I 1 b 8")) == Seq(1, 1))
    assert(warnings()(Seq("+I 1 a 5"), Seq("+I 2 a 5"), Seq("+I 1 b 7")) == Seq(0, 0, 1))
    assert(warnings()(Seq("+I 1 a 5", "+I 2 a 6"), Seq("-U 2 a 6, +U 1 a 6")) == Seq(0, 1))
    val appended = t.copy(insertOnly = true)
    assert(warnings(feed = appended)(Seq("+I 1 a 5", "+I 2 a 6"), Seq("+I 2 a 7")) == Seq(0, 1))
  }

  test("rows that take the place of others are fine, in whatever order they come") {
    assert(
      warnings()(
        Seq("+I 1 a 5", "+I 2 b 6, +I 3 c 7"),
        Seq("+I 1 a 6", "-D 1 a 5, +I 2 b 7", "-D 2 b 6, -U 3 c 7, +U 3 d 8"),
        Seq("-U 1 a 6, +U 4 a 6", "-U 2 b 7, +U 1 b 7", "+I 2 a 1"),
        Seq("-D 9 a 1"),
        Seq("+I 9 a 1, +I 5 e 1, -D 5 e 1")) == Seq(0, 0, 0, 0, 0))
  }

  test("rows that are read several times are counted once") {
    val several = Seq(
      "SELECT id, v FROM t UNION ALL SELECT id, v FROM t WHERE v > 0",
      "SELECT x.id, y.v FROM t x JOIN t y ON x.id = y.id",
      "SELECT id, v FROM t WHERE v > (SELECT avg(v) FROM t)")
    several.foreach { sql =>
      assert(
        warnings(sql)(Seq("+I 1 a 5", "+I 2 b 6"), Seq("-U 1 a 5, +U 1 a 7")) == Seq(0, 0),
        sql)
      assert(warnings(sql)(Seq("+I 1 a 5", "+I 2 b 6"), Seq("+I 1 a 5")) == Seq(0, 1), sql)
    }
    val twice = (batch: DataFrame) => { batch.collect(); batch.collect(); () }
    val rows = "SELECT id, v FROM t"
    assert(
      warnings(rows, read = twice)(Seq("+I 1 a 5", "+I 2 b 6"), Seq("+I 3 a 1")) == Seq(0, 0))
  }

  test("keys are not looked at if that is switched off, or if newer rows replace older ones") {
    assert(warnings(conf = off)(Seq("+I 1 a 5, +I 1 b 7")) == Seq(0))
    assert(warnings(feed = t.copy(upsert = true))(Seq("+I 1 a 5, +I 1 b 7")) == Seq(0))
  }

  test("of many keys a sample is counted, by all tasks and batches the same") {
    def hash(key: Int): Long = XXH64.hashLong(key.toLong, 42L)
    def counted(keys: Range, mask: Long): SampledKeys = {
      val sample = new SampledKeys(mask)
      keys.foreach(key => sample.add(hash(key), 1))
      sample
    }
    val many = counted(0 until 200000, 0L)
    val first = many.counts.keySet.toSet
    assert(first.size > SampledKeys.Limit / 4 && first.size <= SampledKeys.Limit)
    assert(first == (0 until 200000).map(hash).filter(key => (key & many.mask) == 0).toSet)
    assert(!many.findsRepeated())
    val next = counted(0 until 10000, many.mask)
    assert(next.counts.keySet.toSet.subsetOf(first) && next.counts.nonEmpty)
    next.counts.foreach { case (key, count) => many.add(key, count(0)) }
    assert(many.findsRepeated())
  }
}
