// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.expiry

import scala.collection.mutable
import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state._

import org.apache.spark.sql.changelog.compat.StateStoreWrapper
import org.apache.spark.sql.changelog.state.{PagedStateProvider, ProviderFixture}
import org.apache.spark.sql.changelog.testing.QuickFileSystem

/** Entries are found when they are due, and others are not looked at. */
class TimedStateStoreSuite extends AnyFunSuite with ProviderFixture {

  /** An entry is due at the time that is its value. */
  private val byValue: EntryTimes = (_, value, _) => value.getInt(0).toLong

  private val providers: Seq[(String, () => StateStoreProvider)] = Seq(
    "in memory" -> (() => new HDFSBackedStateStoreProvider),
    "in pages" -> (() => new PagedStateProvider),
    "RocksDB" -> (() => new RocksDBStateStoreProvider))

  private def due(store: TimedStateStore, limit: Long): Set[(Int, Int)] = {
    val found = store.due(limit).map(_.key.copy()).toSeq
    found.foreach(store.remove(_))
    found.map(key => (key.getInt(0), key.getInt(1))).toSet
  }

  for ((name, newProvider) <- providers; capacity <- Seq(3, 1000)) {
    test(s"what is due is what a search finds, whatever becomes of batches, $name, $capacity") {
      val random = new Random(7)
      val directory = QuickFileSystem.temporaryDirectory()
      var provider = start(newProvider(), directory, Map.empty)
      var model: Model = Map.empty
      var version = 0L
      var now = 0L
      var index: Option[TimeIndex] = None
      var numFound = 0
      for (_ <- 1 to 60) {
        val store =
          new TimedStateStore(provider.getStore(version), byValue, index, capacity)
        var after = model
        for (_ <- 1 to random.nextInt(30)) {
          val at = (random.nextInt(5), random.nextInt(20))
          if (random.nextInt(3) == 0) {
            store.remove(key(at._1, at._2))
            after -= at
          } else {
            // late ones among them
            val time = (now + random.nextInt(60) - 5).toInt
            put(store, at -> time)
            after += at -> time
          }
        }
        val moves = random.nextInt(3) > 0
        val limit = if (moves) now + random.nextInt(20) else now
        if (moves) {
          val expected = after.filter(_._2 <= limit).keySet
          assert(due(store, limit) == expected, s"at $limit")
          numFound += expected.size
          after --= expected
        }
        random.nextInt(6) match {
          case 0 =>
            store.abort()
            index = None
          case what =>
            store.commit()
            version += 1
            now = limit
            model = after
            index = store.nextIndex
            if (what == 1) {
              provider.close()
              provider = start(newProvider(), directory, Map.empty)
              index = None
            }
        }
      }
      val last = provider.getReadStore(version)
      try assert(content(last) == model)
      finally last.release()
      assert(numFound > 100)
      provider.close()
    }
  }

  /** Counts what is read of a store. */
  private final class CountingStore(store: StateStore) extends StateStoreWrapper(store) {
    var numRead = 0

    override def get(key: UnsafeRow, family: String): UnsafeRow = {
      numRead += 1
      super.get(key, family)
    }

    override def iterator(family: String): StateStoreIterator[UnsafeRowPair] = {
      val entries = super.iterator(family)
      new StateStoreIterator(
        entries.map { entry =>
          numRead += 1
          entry
        },
        () => entries.close())
    }
  }

  /** How much is read in each of `batches` batches, in which ten of `size` entries are due and as many come. */
  private def reads(size: Int, batches: Int, capacity: Int): Seq[Int] = {
    val provider = paged(QuickFileSystem.temporaryDirectory())
    val first = provider.getStore(0)
    put(first, (0 until size).map(n => (n % 10, n) -> n): _*)
    first.commit()
    var index: Option[TimeIndex] = None
    (1 to batches).map { batch =>
      val counting = new CountingStore(provider.getStore(batch.toLong))
      val store = new TimedStateStore(counting, byValue, index, capacity)
      val come = size + (batch - 1) * 10 until size + batch * 10
      put(store, come.map(n => (n % 10, n) -> n): _*)
      assert(due(store, batch * 10L - 1).size == 10)
      store.commit()
      index = store.nextIndex
      counting.numRead
    }
  }

  test("a batch looks at what is due only, once an index is begun") {
    val read = reads(size = 2000, batches = 30, capacity = 2000)
    assert(read.head == 2010)
    assert(read.tail.forall(_ == 10))
  }

  test("of a large state only so much is held, and it is searched when that has gone") {
    val (batches, capacity) = (100, 200)
    val read = reads(size = 2000, batches, capacity)
    val searches = read.filter(_ > 1000)
    assert(read.filter(_ < 1000).forall(_ <= 10))
    assert(searches.size <= 1 + batches * 10 / capacity)
  }

  test("many entries of one time are found by one search") {
    val provider = paged(QuickFileSystem.temporaryDirectory())
    val counting = new CountingStore(provider.getStore(0))
    val store = new TimedStateStore(counting, byValue, None, capacity = 5)
    assert(due(store, 0).isEmpty)
    put(store, (0 until 100).map(n => (1, n) -> (if (n < 50) 10 else 20)): _*)
    assert(due(store, 9).isEmpty)
    assert(counting.numRead == 0, "nothing of it is held, and it is not due")
    assert(due(store, 10).size == 50)
    assert(due(store, 19).isEmpty)
    assert(counting.numRead == 100)
    assert(due(store, 20).size == 50)
  }

  test("what is written while entries are gone through leaves none of them out") {
    val provider = paged(QuickFileSystem.temporaryDirectory())
    val store = new TimedStateStore(provider.getStore(0), byValue, None, capacity = 3)
    assert(due(store, 0).isEmpty)
    put(store, (1 to 5).map(n => (1, n) -> n): _*)
    val found = store.due(5).map { entry =>
      val number = entry.key.getInt(1)
      // more than the index holds
      put(store, (1 to 4).map(n => (2, 10 * number + n) -> 100): _*)
      number
    }
    assert(found.toSet == (1 to 5).toSet)
    assert(due(store, 100).count(_._1 == 2) == 20)
  }

  test("an entry that stays is looked at once, until it is written or due again") {
    val provider = paged(QuickFileSystem.temporaryDirectory())
    // due every ten
    val repeated: EntryTimes = (_, value, after) => {
      val first = value.getInt(0).toLong
      if (after < first) first else first + ((after - first) / 10 + 1) * 10
    }
    val store = new TimedStateStore(provider.getStore(0), repeated, None, capacity = 100)
    put(store, (1, 1) -> 5)
    val found = mutable.ArrayBuffer.empty[Int]
    for (limit <- 1 to 30) {
      store.due(limit.toLong).foreach(_ => found += limit)
    }
    assert(found == Seq(5, 15, 25))
  }

  test("what bears on others is handed out with what is due next, and in its own time") {
    val provider = paged(QuickFileSystem.temporaryDirectory())
    val bearing: EntryTimes = new EntryTimes {
      override def dueAt(key: UnsafeRow, value: UnsafeRow, after: Long): Long =
        byValue.dueAt(key, value, after)

      override def affectsOtherDeadlines(value: UnsafeRow): Boolean =
        value == null || value.getInt(0) > 100
    }
    val store = new TimedStateStore(provider.getStore(0), bearing, None, capacity = 100)
    def keys(limit: Long): Set[(Int, Boolean)] =
      store.due(limit).map(entry => (entry.key.getInt(1), entry.value == null)).toSet
    assert(keys(0).isEmpty)
    put(store, (1, 1) -> 10, (1, 2) -> 20, (1, 3) -> 30, (1, 4) -> 120)
    store.remove(key(1, 3))
    assert(keys(10) == Set((1, false), (3, true), (4, false)))
    assert(keys(20) == Set((2, false)))
    assert(keys(200) == Set((4, false)))
  }
}
