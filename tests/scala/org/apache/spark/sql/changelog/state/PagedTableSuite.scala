// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import java.io.ByteArrayOutputStream

import scala.collection.mutable
import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.streaming.state.UnsafeRowPair
import org.apache.spark.sql.types.{IntegerType, LongType, StringType, StructType}
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.testing.{QuickFileSystem, TestShare}

/** The table against a map: entries, prefixes, what is taken back, and pages given back. */
class PagedTableSuite extends AnyFunSuite with TestShare {
  private val keySchema = new StructType().add("group", IntegerType).add("name", StringType)
  private val toKey = UnsafeProjection.create(keySchema)
  private val toPrefix = UnsafeProjection.create(StructType(keySchema.take(1)))
  private val toValue = UnsafeProjection.create(new StructType().add("value", LongType))

  private def key(group: Any, name: String): UnsafeRow =
    toKey(new GenericInternalRow(Array[Any](group, UTF8String.fromString(name)))).copy()

  private def prefix(group: Any): UnsafeRow =
    toPrefix(new GenericInternalRow(Array[Any](group))).copy()

  private def value(number: Long): UnsafeRow =
    toValue(new GenericInternalRow(Array[Any](number)))

  private val directory = QuickFileSystem.temporaryDirectory().toPath

  /** All but what is written to goes to small local files. */
  private def inFiles = new StateMemory(0, () => directory, "a table", fileSize = 64 * 1024)

  private def table(
      prefixColumns: Int = 1,
      largestPage: Int = 4096,
      memory: StateMemory = StateMemory.unlimited) =
    new PagedTable(keySchema, 1, prefixColumns, memory, largestPage)

  private val memories =
    Seq("on the heap" -> (() => StateMemory.unlimited), "in files" -> (() => inFiles))

  private type Model = Map[(Any, String), Long]

  private def content(entries: Iterator[UnsafeRowPair]): Seq[((Any, String), Long)] =
    entries.map { entry =>
      val group: Any = if (entry.key.isNullAt(0)) null else entry.key.getInt(0)
      (group, entry.key.getString(1)) -> entry.value.getLong(0)
    }.toSeq

  private def check(table: PagedTable, model: Model): Unit = {
    assert(table.size == model.size)
    assert(content(table.entries()).sortBy(_.toString) == model.toSeq.sortBy(_.toString))
    (Seq[Any](null) ++ (0 to 5)).foreach { group =>
      val expected = model.toSeq.filter(_._1._1 == group).sortBy(_.toString)
      assert(content(table.entries(prefix(group))).sortBy(_.toString) == expected)
    }
    model.foreach { case ((group, name), number) =>
      assert(table.get(key(group, name)).getLong(0) == number)
    }
  }

  for ((where, memory) <- memories; seed <- 1 to 20) {
    test(s"random changes, committed and taken back, $where, seed $seed") {
      val random = new Random(seed)
      val subject = table(memory = memory())
      var committed: Model = Map.empty
      for (_ <- 1 to 30) {
        subject.begin()
        var model = committed
        for (_ <- 1 to random.nextInt(400)) {
          val group: Any = if (random.nextInt(8) == 0) null else random.nextInt(5)
          // names of many sizes, hot ones among them
          val name = "n" * (1 + random.nextInt(60)) + random.nextInt(4)
          if (random.nextInt(3) == 0) {
            assert(subject.remove(key(group, name)) == model.contains((group, name)))
            model -= ((group, name))
          } else {
            val number = random.nextLong()
            subject.put(key(group, name), value(number))
            model += (group, name) -> number
          }
        }
        check(subject, model)
        if (random.nextBoolean()) {
          checkChanges(subject, committed, model)
          committed = model
        } else {
          subject.rollback()
          check(subject, committed)
        }
      }
    }
  }

  private def checkChanges(table: PagedTable, before: Model, after: Model): Unit = {
    val changes = table.changes()
    // what was written again with its value may be there too
    val (removed, put) = (all(changes.foreachRemoved), all(changes.foreachPut))
    assert(removed.length >= before.keys.count(!after.contains(_)))
    assert(put.length >= after.count { case (key, number) =>
      !before.get(key).contains(number)
    })
    assert(put.length <= after.size)
  }

  private def all(foreach: (Long => Unit) => Unit): Seq[Long] = {
    val found = mutable.ArrayBuffer.empty[Long]
    foreach(found += _)
    found.toSeq
  }

  for ((where, memory) <- memories)
    test(s"pages of which little is wanted are given back, and rows handed out stay, $where") {
      val subject = table(largestPage = 4096, memory = memory())
      for (number <- 1 to 1000) subject.put(key(number % 5, s"name $number"), value(number))
      subject.begin()
      val kept = subject.get(key(1, "name 1"))
      for (round <- 1 to 50) {
        for (number <- 1 to 1000) {
          subject.put(key(number % 5, s"name $number"), value(number + round))
        }
        subject.begin()
      }
      assert(kept.getLong(0) == 1, "its record has been replaced fifty times")
      assert(subject.get(key(1, "name 1")).getLong(0) == 51)
      // half of what is held, and what one batch leaves behind
      assert(subject.numBytes < 8 * subject.numEntryBytes)
      assert((subject.numFileBytes > subject.numEntryBytes / 2) == (where == "in files"))
    }

  test("files are given back when most of what they hold has gone") {
    val subject = table(memory = inFiles)
    val random = new Random(1)
    for (round <- 1 to 200) {
      for (_ <- 1 to 500) {
        val number = random.nextInt(5000)
        subject.put(key(number % 5, s"name $number"), value(round))
      }
      subject.begin()
    }
    assert(subject.size > 4000)
    // as many bytes as are mapped now and were a few batches ago, of a hundred times as many written
    val held = subject.numFileBytes
    assert(held < 6 * subject.numEntryBytes, subject.numEntryBytes)
  }

  test("a disk without room is no failure") {
    val missing = directory.resolve("missing")
    val subject = table(memory = new StateMemory(0, () => missing, "a table"))
    for (number <- 1 to 5000) subject.put(key(number % 5, s"name $number"), value(number))
    assert(subject.numFileBytes == 0)
    assert(subject.get(key(2, "name 77")).getLong(0) == 77)
    java.nio.file.Files.createDirectory(missing)
    subject.begin()
    assert(subject.numFileBytes > subject.numEntryBytes / 2)
    assert(subject.get(key(2, "name 77")).getLong(0) == 77)
  }

  test("a table that is closed, or nobody has any more, gives its part of the heap back") {
    // more than what other tables of this process have
    val limit = Long.MaxValue / 4
    val rooms = Seq.fill(2)(new StateMemory(limit, () => directory, "a table"))
    rooms.foreach(_.takeHeap(limit / 4 * 3))
    assert(rooms.forall(_.exceedsLimit(0)))
    rooms.head.close()
    assert(!rooms.last.exceedsLimit(0))
    rooms.last.close()
  }

  test("an array may not find room on the heap in one piece, though in all there is enough") {
    // far more than what other tables of this process have
    val room = new StateMemory(1L << 30, () => directory, "a table")
    assert(!room.exceedsLimit(100L << 20))
    assert(!room.zeros(1 << 20).isInFile)
    assert(room.zeros(10 << 20).isInFile)
    room.close()
  }

  test("a record may be larger than a page") {
    val subject = table(largestPage = 4096)
    val long = "x" * 100000
    subject.put(key(1, long), value(1))
    subject.put(key(1, "short"), value(2))
    assert(subject.get(key(1, long)).getLong(0) == 1)
    assert(content(subject.entries(prefix(1))).size == 2)
  }

  test("entries may be changed while they are gone through") {
    val subject = table()
    for (number <- 0 until 100) subject.put(key(1, s"n$number"), value(number))
    subject.begin()
    val seen = mutable.Set.empty[String]
    subject.entries(prefix(1)).foreach { entry =>
      val name = entry.key.getString(1)
      assert(seen.add(name))
      subject.put(key(1, name), value(-1))
      subject.remove(key(1, name))
      // one that is still to come
      subject.remove(key(1, s"n${entry.value.getLong(0) - 1}"))
      subject.put(key(1, s"new $name"), value(0))
    }
    assert(seen.size == 50)
    assert(content(subject.entries(prefix(1))).forall(_._1._2.startsWith("new")))
  }

  for ((where, memory) <- memories) test(s"a view stays as it was, $where") {
    val subject = table(memory = memory())
    for (number <- 1 to 500) subject.put(key(1, s"n$number"), value(number))
    val view = subject.view()
    subject.begin()
    for (_ <- 1 to 20) {
      for (number <- 1 to 500) subject.put(key(1, s"n$number"), value(-1))
      subject.begin()
    }
    val numbers = all(view.foreachPut).map { address =>
      val records = view.records
      val row = new UnsafeRow(1)
      val (first, size) = (records.keySizeOf(address), records.valueSizeOf(address))
      val written = new ByteArrayOutputStream
      records.write(address, first, size, written)
      val bytes = records.bytes(address, first, size)
      assert(written.toByteArray.sameElements(bytes))
      row.pointTo(bytes, size)
      row.getLong(0)
    }
    assert(numbers.sorted == (1L to 500L))
  }

  test("slots stay right while they grow and shrink") {
    val random = new Random(5)
    val slots = new HashSlots(StateMemory.unlimited)
    val model = mutable.Map.empty[Int, Int]
    def places(hash: Int): Seq[Int] =
      Iterator.iterate(slots.first(hash))(slots.next(_, hash)).takeWhile(_ >= 0).toSeq
    for (id <- 0 until 20000) {
      // few hashes, so that there are long runs
      val hash = random.nextInt(1000) * 16
      slots.add(hash, id)
      model(id) = hash
      if (random.nextInt(3) > 0) {
        val (gone, itsHash) = model.head
        slots.removeAt(places(itsHash).find(slots.idAt(_) == gone).get)
        model -= gone
      }
    }
    model.groupMap(_._2)(_._1).foreach { case (hash, ids) =>
      assert(places(hash).map(slots.idAt).sorted == ids.toSeq.sorted)
    }
  }
}
