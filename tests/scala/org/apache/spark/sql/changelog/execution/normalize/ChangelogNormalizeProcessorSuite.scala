// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.normalize

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.expressions.{AttributeReference, UnsafeRow}
import org.apache.spark.sql.types.{IntegerType, LongType}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.plans.UpsertFeed
import org.apache.spark.sql.changelog.testing.{MapStore, ProcessorTest}

/** One key's changes, in whatever order a task reads them, against the newest one of all so far. */
class ChangelogNormalizeProcessorSuite extends AnyFunSuite with ProcessorTest {
  private val Seq(id, value, sequence) =
    Seq("id", "v", "n").map(AttributeReference(_, IntegerType)())
  private val position = AttributeReference("position", LongType, nullable = false)()
  private val kind = RowKind.newAttribute()
  private val input = Seq(id, value, sequence, position, kind)
  private val changeOf = rowsOf(input)

  private case class Change(kind: Byte, value: Int, sequence: Int, position: Long) {
    def row: UnsafeRow = changeOf(Seq[Any](1, value, sequence, position, kind))

    def retracts: Boolean = RowKind.retracts(kind)
  }

  private def valueOf(row: UnsafeRow): Option[Int] = Option(row).map(_.getInt(1))

  for (isSequenced <- Seq(true, false)) {
    test(s"the newest change counts, however a batch is read, with a sequence: $isSequenced") {
      val order: Ordering[Change] =
        if (isSequenced)
          Ordering.by(c => (c.sequence, c.kind != RowKind.UpdateBefore, c.position))
        else Ordering.by(_.position)
      for (seed <- 1 to 300) {
        val random = new Random(seed)
        val store = new MapStore
        val unmatched = new CountUnmatched
        val processor = new ChangelogNormalizeProcessor(
          NormalizeLayout(
            UpsertFeed(
              Seq(id),
              if (isSequenced) Seq(sequence) else Nil,
              position,
              Seq(id, value, sequence),
              kind)),
          input,
          store,
          unmatched)
        var newest: Option[Change] = None
        var numUnmatched = 0
        for (batch <- 1 to 8) {
          val changes = Seq.tabulate(1 + random.nextInt(4)) { index =>
            Change(random.nextInt(4).toByte, random.nextInt(3), random.nextInt(12), index.toLong)
          }
          val before = newest.filterNot(_.retracts)
          val last = changes.max(order)
          def isOlder(change: Change) = isSequenced && newest.exists { stored =>
            change.sequence < stored.sequence ||
            change.sequence == stored.sequence && change.kind == RowKind.UpdateBefore
          }
          val numOutdated = changes.count(isOlder)
          if (!isOlder(last)) {
            newest = if (last.retracts && !isSequenced) None else Some(last)
            val existedBefore = before.isDefined || changes.exists(!_.retracts)
            if (last.kind == RowKind.Delete && !existedBefore) numUnmatched += 1
          }
          processor.process(random.shuffle(changes).map(_.row).iterator)
          val clue = s"seed $seed, batch $batch"
          assert(valueOf(processor.before) == before.map(_.value), clue)
          assert(valueOf(processor.after) == newest.filterNot(_.retracts).map(_.value), clue)
          assert(processor.outdated == numOutdated, clue)
          assert(store.size == newest.size, clue)
        }
        assert(unmatched.count == numUnmatched, s"seed $seed")
        assert(store.numRead == 8, "each batch looks a key up once")
      }
    }
  }
}
