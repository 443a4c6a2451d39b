// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import java.lang.management.ManagementFactory

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.streaming.state.{StateStoreConf, StateStoreId}
import org.apache.spark.sql.internal.SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS
import org.apache.spark.sql.types.{IntegerType, StructType}

import org.apache.spark.sql.changelog.testing.{QuickFileSystem, Share, WatchedCheckpointFiles}

/** How much memory state takes: as it lives, as it is read from files, and after much has gone. */
class StateMemorySuite extends AnyFunSuite with ProviderFixture {
  private val keys = new StructType().add("a", IntegerType).add("b", IntegerType)
  private val values = new StructType().add("n", IntegerType)
  private val entries = 300000

  private def newTable() = new PagedTable(keys, 1, 1)

  /** What is live, in bytes. */
  private def live(): Long = {
    System.gc()
    val memory = ManagementFactory.getMemoryMXBean.getHeapMemoryUsage
    memory.getUsed
  }

  /** The same once nothing goes any more that others have left in this process. */
  private def settled(): Long = {
    val measured = Iterator.continually { Thread.sleep(200); live() }.take(30).sliding(3)
    measured.find(last => last.head - last.last < 100000).fold(live())(_.last)
  }

  // a minute of collections
  if (Share.isAll) test("reading state takes hardly more than having it") {
    val directory = QuickFileSystem.temporaryDirectory()
    val id = StateStoreId(directory.getPath, 0, 0)
    val conf = new StateStoreConf
    val hadoopConf = spark.sessionState.newHadoopConf()
    hadoopConf.set(
      STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key,
      classOf[WatchedCheckpointFiles].getName)
    val layout = new RowLayout(id, keys, values, conf)
    def files = new StateFiles(id.storeCheckpointLocation(), layout, conf, hadoopConf)

    val base = settled()
    var table = build(files)
    val inUse = table.numBytes
    val steady = live() - base
    table = null

    var most = 0L
    WatchedCheckpointFiles.watch = () => most = math.max(most, live() - base)
    table =
      try files.read(12, () => newTable())
      finally WatchedCheckpointFiles.watch = () => ()
    val read = live() - base
    assert(table.size == entries)
    val figures = s"$entries entries, ${table.numEntryBytes} bytes of rows: $steady live " +
      s"($inUse counted), while reading at most $most, then $read"
    info(figures)
    assert(most <= 1.3 * math.max(steady, read) && table.numBytes <= 1.3 * inUse, figures)
  }

  /** A tenth changes with each of the versions up to 12. */
  private def build(files: StateFiles): PagedTable = {
    val table = newTable()
    for (index <- 0 until entries) table.put(key(index % 1000, index), value(index))
    files.writeSnapshot(1, table.view())
    for (version <- 2 to 12) {
      table.begin()
      for (index <- version until entries by 10) {
        table.put(key(index % 1000, index), value(version))
      }
      files.writeDelta(version, table.changes())
    }
    table
  }

  test("batches that only remove give memory back") {
    val table = newTable()
    for (index <- 0 until entries) table.put(key(index % 1000, index), value(index))
    table.begin()
    val full = table.numBytes
    for (part <- 0 until 10) {
      // all but each hundredth entry, in ten batches
      for (index <- part until entries by 10 if index % 100 != 0) {
        table.remove(key(index % 1000, index))
      }
      table.begin()
    }
    table.begin()
    assert(table.size == entries / 100)
    val left = table.numBytes
    info(s"$full bytes with $entries entries, $left with ${table.size}")
    assert(left < full / 20)
    for (index <- 0 until entries) {
      val value = table.get(key(index % 1000, index))
      assert(if (index % 100 == 0) value.getInt(0) == index else value == null)
    }
    assert(table.entries().size == entries / 100)
  }

  test("what is left after many removals is all there, by key and by prefix") {
    val random = new scala.util.Random(1)
    val table = newTable()
    var model: Model = Map.empty
    for (round <- 0 until 12) {
      val changed = Seq.fill(6000)((random.nextInt(50), random.nextInt(500)))
      val before = model
      table.begin()
      changed.foreach { case (a, b) =>
        if (round % 3 == 0 || random.nextInt(20) == 0) {
          table.put(key(a, b), value(round))
          model += (a, b) -> round
        } else {
          table.remove(key(a, b))
          model -= ((a, b))
        }
      }
      if (round % 4 == 3) {
        table.rollback()
        model = before
      }
      val all = table.entries().map(e => (e.key.getInt(0), e.key.getInt(1)) -> e.value.getInt(0))
      assert(all.toMap == model)
      for (a <- 0 until 50) {
        val found = table.entries(prefix(a)).map(_.key.getInt(1)).toSeq.sorted
        assert(found == model.keys.filter(_._1 == a).map(_._2).toSeq.sorted)
      }
    }
  }

  private val toPrefix = UnsafeProjection.create(StructType(keys.take(1)))

  private def prefix(a: Int): UnsafeRow = toPrefix(new GenericInternalRow(Array[Any](a)))
}
