// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import java.util.Comparator

import scala.collection.mutable
import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.execution.CountedTail

class ExtremumHeadSuite extends AnyFunSuite {
  private val smallestFirst: Comparator[Any] =
    (left: Any, right: Any) => Integer.compare(left.asInstanceOf[Int], right.asInstanceOf[Int])

  /** A tail in memory, that counts how often it is scanned. */
  private class Values extends CountedTail[Any] {
    val counts = mutable.Map.empty[Any, Long]
    var numScans = 0

    override def count(value: Any): Long = counts.getOrElse(value, 0L)

    override def update(value: Any, count: Long): Unit =
      if (count == 0) counts -= value else counts(value) = count

    override def foreach(visit: (Any, Long) => Unit): Unit = {
      numScans += 1
      counts.toSeq.foreach { case (value, count) => visit(value, count) }
    }
  }

  private def entries(head: ExtremumHead): Seq[(Any, Long)] =
    (0 until head.size).map(index => head.entry(index) -> head.count(index))

  /** The head as it is after it was written to state and read back. */
  private def reload(head: ExtremumHead): Unit = {
    val (values, tail) = (entries(head), head.numTailEntries)
    head.reset(tail)
    values.foreach { case (value, count) => head.append(value, count) }
  }

  for (capacity <- Seq(1, 2, 3, 4, 16)) {
    test(s"random changes agree with a sorted multiset, at capacity $capacity") {
      for (seed <- 1 to 300) {
        val random = new Random(seed)
        val head = new ExtremumHead(smallestFirst, capacity)
        val tail = new Values
        val all = mutable.TreeMap.empty[Int, Long]
        val range = Seq(3, 10, 60)(random.nextInt(3))
        for (batch <- 1 to 30) {
          for (_ <- 1 to random.nextInt(12)) {
            val value = random.nextInt(range)
            // rather take back what is there; sometimes more than is there
            val delta =
              if (random.nextInt(5) < 2) -math.max(all.getOrElse(value, 0L), 1L)
              else 1L + random.nextInt(2)
            head.add(value, delta, tail)
            val count = all.getOrElse(value, 0L) + delta
            if (count == 0) all -= value else all(value) = count
          }
          head.complete(tail)
          val best = all.collectFirst { case (value, count) if count > 0 => value }
          val where = s"seed $seed, batch $batch"
          assert(Option(head.best) == best, where)
          assert((entries(head) ++ tail.counts).toMap == all.toMap, where)
          assert(tail.counts.size == head.numTailEntries, where)
          assert(
            entries(head).map(_._1) == entries(head).map(_._1.asInstanceOf[Int]).sorted,
            where)
          assert(
            tail.counts.keys.forall(value =>
              entries(head).forall(_._1.asInstanceOf[Int] < value.asInstanceOf[Int])),
            where)
          reload(head)
        }
        head.clear(tail)
        assert(head.best == null && tail.counts.isEmpty && head.numTailEntries == 0)
      }
    }
  }

  test("the tail is not read before the head is used up") {
    val head = new ExtremumHead(smallestFirst, capacity = 4)
    val tail = new Values
    (1 to 100).foreach(head.add(_, 1, tail))
    for (value <- 1 to 4) {
      assert(head.best == value)
      head.add(value, -1, tail)
      head.complete(tail)
    }
    assert(tail.numScans <= 1)
    assert(head.best == 5)
  }

  test("a value taken back before it comes is never the best") {
    val head = new ExtremumHead(smallestFirst, capacity = 4)
    val tail = new Values
    head.add(1, -1, tail)
    head.add(2, 1, tail)
    assert(head.best == 2)
    head.add(1, 1, tail)
    assert(head.best == 2 && head.size == 1)
  }

  private val order = Seq(smallestFirst, smallestFirst.reversed)

  for (capacity <- Seq(1, 2, 4); numHeads <- Seq(1, 2))
    test(s"$numHeads extrema share what is in no head, at capacity $capacity") {
      for (seed <- 1 to 300) {
        val random = new Random(seed)
        val heads = order.take(numHeads).map(new ExtremumHead(_, capacity)).toArray
        val table = new Values
        val values = new ExtremumValues(heads, table)
        val all = mutable.TreeMap.empty[Int, Long]
        val range = Seq(3, 10, 60)(random.nextInt(3))
        for (batch <- 1 to 30) {
          for (_ <- 1 to random.nextInt(12)) {
            // beyond the values that Java boxes once
            val value = 1000 + random.nextInt(range)
            val delta =
              if (random.nextInt(5) < 2) -math.max(all.getOrElse(value, 0L), 1L)
              else random.nextInt(3).toLong
            values.add(value, delta)
            val count = all.getOrElse(value, 0L) + delta
            if (count == 0) all -= value else all(value) = count
          }
          values.complete()
          val where = s"seed $seed, batch $batch"
          val there = all.collect { case (value, count) if count > 0 => value }
          val best = Seq(there.headOption, there.lastOption).take(numHeads)
          assert(heads.toSeq.map(head => Option(head.best)) == best, where)
          val inHeads = heads.flatMap(entries).toMap
          assert((inHeads ++ table.counts).toMap == all.toMap, where)
          assert(table.counts.keySet.intersect(inHeads.keySet).isEmpty, where)
          heads.foreach(head => assert(head.size + head.numTailEntries == all.size, where))
          heads.foreach(reload)
        }
        values.clear()
        assert(table.counts.isEmpty && heads.forall(head => head.best == null))
      }
    }
}
