// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import scala.collection.mutable
import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.{ByteType, IntegerType, LongType}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.testing.{MapStore, ProcessorTest}

/** Rows that leave as time passes, against a list of when each copy of a row came. */
class RowTtlChangesSuite extends AnyFunSuite with ProcessorTest {
  private val column = AttributeReference("v", IntegerType)()
  private val kind = RowKind.newAttribute()
  private val input = Seq(column, kind)
  private val changeOf = rowsOf(input)
  private val levelAndTime = UnsafeProjection.create(
    Seq(
      BoundReference(0, ByteType, nullable = true),
      BoundReference(1, LongType, nullable = true)))
  private val ttl = 1000L
  private val start = 1700000000000L

  test("what is left is what came since, whatever comes, goes and is taken back") {
    for (seed <- 1 to 40) {
      val random = new Random(seed)
      val store = new MapStore(prefixOf = key => levelAndTime(key).copy())
      val numLeft, numOfGone = newMetric()
      // when the copies of each value came, the first ones first
      val kept = mutable.Map.empty[Int, Seq[Long]].withDefaultValue(Nil)
      val table = mutable.Map.empty[Int, Long].withDefaultValue(0L)
      var (clock, now) = (start, start)
      var (left, ofGone) = (0L, 0L)
      for (batch <- 1 to 20) {
        clock += random.nextInt(700) - 100
        now = math.max(now, clock)
        val changes = Seq.fill(random.nextInt(6))(random.nextInt(4) -> random.nextInt(2))
        for (value <- 0 to 3) {
          val (over, rest) = kept(value).partition(_ <= now - ttl)
          left += over.size
          val net = changes.collect { case (`value`, sign) => 1 - 2 * sign }.sum
          ofGone += math.max(0, -net - rest.size)
          kept(value) = rest.drop(math.max(0, -net)) ++ Seq.fill(math.max(0, net))(now)
        }
        val processor = new RowTtlChanges(
          new NetRows(Seq(column), Some(kind), Seq(column), input),
          ttl,
          store,
          clock,
          newMetrics(),
          numLeft,
          numOfGone)
        val rows = changes.sortBy(_._1).map { case (value, sign) =>
          changeOf(Seq[Any](value, if (sign == 0) RowKind.Insert else RowKind.Delete))
        }
        val emitted = processor(rows.iterator).map(r => r.getInt(0) -> r.getByte(1)).toSeq
        emitted.foreach { case (value, kind) => table(value) += RowKind.sign(kind) }
        val clue = s"seed $seed, batch $batch"
        for (value <- 0 to 3) assert(table(value) == kept(value).size, s"$clue, value $value")
        assert(
          emitted.groupMap(_._1)(r => RowKind.retracts(r._2)).values.forall(_.distinct.size == 1),
          s"$clue: a row comes or goes, and does not do both")
        val next = processor.finish()
        kept.values.flatten.minOption.foreach { first =>
          assert(
            next.exists(_ <= first + ttl),
            s"$clue: a batch is begun when the next row leaves")
        }
      }
      assert(numLeft.value == left && numOfGone.value == ofGone, s"seed $seed")
    }
  }
}
