// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import java.util.Comparator

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.{DataType, IntegerType}

import org.apache.spark.sql.changelog.execution.CountedTail
import org.apache.spark.sql.changelog.plans.RankFunction

/** The best rows of one partition, against a sorted multiset ranked from scratch. */
class RankHeadSuite extends AnyFunSuite {
  private val projection = UnsafeProjection.create(Array[DataType](IntegerType, IntegerType))

  private def row(value: Int, id: Int): UnsafeRow = projection(InternalRow(value, id)).copy()

  private val ties: Comparator[UnsafeRow] = Comparator.comparingInt((r: UnsafeRow) => r.getInt(0))
  private val order: Comparator[UnsafeRow] =
    ties.thenComparing(Comparator.comparingInt((r: UnsafeRow) => r.getInt(1)))

  private class Rows extends CountedTail[UnsafeRow] {
    val counts = mutable.Map.empty[UnsafeRow, Long]

    override def count(row: UnsafeRow): Long = counts.getOrElse(row, 0L)

    override def update(row: UnsafeRow, count: Long): Unit =
      if (count == 0) counts -= row else counts(row.copy()) = count

    override def foreach(visit: (UnsafeRow, Long) => Unit): Unit =
      counts.toSeq.foreach { case (row, count) => visit(row, count) }
  }

  /** Every copy of every row within the bounds, with its rank. */
  private def expected(
      rows: collection.Map[UnsafeRow, Long],
      function: RankFunction,
      start: Long,
      end: Long): Seq[(UnsafeRow, Int)] = {
    val copies = rows.toSeq
      .sortBy(_._1)(Ordering.comparatorToOrdering(order))
      .flatMap { case (row, count) => Seq.fill(math.max(0L, count).toInt)(row) }
    val values = copies.map(_.getInt(0))
    val distinctValues = values.distinct
    val ranked = copies.zipWithIndex.map { case (row, index) =>
      val rank = function match {
        case RankFunction.RowNumber => index + 1
        case RankFunction.RankWithGaps => values.indexOf(row.getInt(0)) + 1
        case RankFunction.DenseRank => distinctValues.indexOf(row.getInt(0)) + 1
      }
      row -> rank
    }
    ranked.filter { case (_, rank) => rank >= start && rank <= end }
  }

  private def reload(head: RankHead): Unit = {
    val entries = (0 until head.size).map(index => head.entry(index) -> head.count(index))
    head.reset(head.numTailEntries)
    entries.foreach { case (row, count) => head.append(row, count) }
  }

  private def texts(rows: java.util.ArrayList[RankedRow]) =
    rows.asScala.toSeq.map(ranked => ranked.row -> ranked.rank)

  for (function <- Seq(
      RankFunction.RowNumber,
      RankFunction.RankWithGaps,
      RankFunction.DenseRank)) {
    test(s"$function over rows that come and go") {
      for (seed <- 1 to 200) {
        val random = new Random(seed)
        val start = 1L + random.nextInt(3)
        val end = start - 1 + random.nextInt(6)
        val head = new RankHead(function, start, end, order, ties, keepsOthers = true)
        val tail = new Rows
        val all = mutable.Map.empty[UnsafeRow, Long]
        for (batch <- 1 to 20) {
          head.shown()
          for (_ <- 1 to random.nextInt(30)) {
            val some = row(random.nextInt(12), random.nextInt(3))
            val before = all.getOrElse(some, 0L)
            // sometimes more is taken back than is there
            val delta = if (random.nextInt(5) < 2) -math.max(before, 1L) else 1L
            assert(head.add(some, delta, tail) == before, s"seed $seed, batch $batch")
            if (before + delta == 0) all -= some else all(some) = before + delta
          }
          assert(
            texts(head.complete(tail)) == expected(all, function, start, end),
            s"seed $seed, batch $batch")
          assert(tail.counts.size == head.numTailEntries, s"seed $seed, batch $batch")
          reload(head)
        }
      }
    }

    test(s"$function over rows that only come, with nothing else kept") {
      for (seed <- 1 to 200) {
        val random = new Random(seed)
        val start = 1L + random.nextInt(3)
        val end = start - 1 + random.nextInt(6)
        val head = new RankHead(function, start, end, order, ties, keepsOthers = false)
        val tail = new Rows
        val all = mutable.Map.empty[UnsafeRow, Long]
        for (batch <- 1 to 20) {
          head.shown()
          for (_ <- 1 to random.nextInt(30)) {
            val some = row(random.nextInt(12), random.nextInt(3))
            head.offer(some, tail)
            all(some) = all.getOrElse(some, 0L) + 1
          }
          val shown = head.complete(tail)
          assert(texts(shown) == expected(all, function, start, end), s"seed $seed, batch $batch")
          assert(tail.counts.isEmpty)
          assert(head.size <= expected(all, function, 1, end).map(_._1).distinct.size)
          reload(head)
        }
      }
    }
  }

  test("a batch that shows nothing new leaves the record as it is") {
    val head = new RankHead(RankFunction.RowNumber, 1, 2, order, ties, keepsOthers = false)
    val tail = new Rows
    (1 to 5).foreach(value => head.offer(row(value, 0), tail))
    head.complete(tail)
    assert(head.isChanged)
    reload(head)
    head.shown()
    head.offer(row(9, 0), tail)
    head.complete(tail)
    assert(!head.isChanged)
  }
}
