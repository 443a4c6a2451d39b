// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import java.io.File
import java.nio.file.Files

import scala.util.Random

import org.scalatest.concurrent.Eventually.eventually
import org.scalatest.concurrent.PatienceConfiguration.Timeout
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.SpanSugar._

import org.apache.spark.sql.execution.streaming.state._

import org.apache.spark.sql.changelog.testing.{
  ErrorChecks, FailingCheckpointFiles, QuickFileSystem
}

/** Versions in memory and in files, and Spark's own provider on the same files. */
class PagedStateProviderSuite extends AnyFunSuite with ProviderFixture with ErrorChecks {
  import FailingCheckpointFiles._

  for (conf <- Seq(
      Map.empty[String, String],
      Map("spark.sql.streaming.stateStore.rowChecksum.enabled" -> "true"),
      Map("spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "2")))
    test(s"one provider goes on where the other has stopped, ${conf.keys.mkString}") {
      val random = new Random(3)
      val directory = QuickFileSystem.temporaryDirectory()
      var model: Model = Map.empty
      for (version <- 0 until 24) {
        val provider =
          if (version / 4 % 2 == 0) paged(directory, conf) else spark(directory, conf)
        val store = provider.getStore(version)
        assert(content(store) == model, s"version $version")
        for (_ <- 1 to 20) {
          val (a, b) = (random.nextInt(4), random.nextInt(10))
          if (random.nextInt(3) == 0) {
            store.remove(key(a, b))
            model -= ((a, b))
          } else {
            put(store, (a, b) -> version)
            model += (a, b) -> version
          }
        }
        assert(store.commit() == version + 1)
        assert(store.metrics.numKeys == model.size)
        provider.doMaintenance()
        provider.close()
      }
    }

  test("a version is taken back when its batch runs again") {
    val provider = paged(QuickFileSystem.temporaryDirectory())
    val first = provider.getStore(0)
    put(first, (1, 1) -> 1, (1, 2) -> 2)
    first.commit()
    val second = provider.getStore(1)
    put(second, (1, 1) -> 10)
    second.remove(key(1, 2))
    second.commit()
    val again = provider.getStore(1)
    assert(content(again) == Map((1, 1) -> 1, (1, 2) -> 2))
    put(again, (3, 3) -> 3)
    again.commit()
    assert(content(provider.getReadStore(2)) == Map((1, 1) -> 1, (1, 2) -> 2, (3, 3) -> 3))
    assert(content(provider.getReadStore(1)) == Map((1, 1) -> 1, (1, 2) -> 2), "from files")
    assert(provider.getReadStore(0).iterator().isEmpty)
  }

  test("the next run takes the table from memory, if its file is the one that was written") {
    def commit(provider: PagedStateProvider, version: Long, entries: ((Int, Int), Int)*): Unit = {
      val store = provider.getStore(version)
      put(store, entries: _*)
      store.commit()
      ()
    }
    for (isClosed <- Seq(false, true); isReplaced <- Seq(false, true)) {
      val (directory, other) =
        (QuickFileSystem.temporaryDirectory(), QuickFileSystem.temporaryDirectory())
      val kept = Map(KeptFor -> "1min")
      val first = paged(directory, kept)
      commit(first, 0, (1, 1) -> 1)
      commit(first, 1, (1, 2) -> 2)
      if (isClosed) first.close()
      // a file that can't be read, or one that somebody else has written since
      commit(paged(other), 0, (1, 1) -> 1)
      commit(paged(other), 1, (1, 2) -> 3)
      val Seq(written, another) =
        Seq(directory, other).map(files(_).find(_.getName == "2.delta").get)
      val (time, length) = (written.lastModified(), written.length().toInt)
      val bytes =
        if (isReplaced) Files.readAllBytes(another.toPath) else new Array[Byte](length)
      Files.write(written.toPath, bytes)
      written.setLastModified(if (isReplaced) time + 1000 else time)
      val next = paged(directory, kept)
      val inMemory = Map((1, 1) -> 1, (1, 2) -> (if (isReplaced) 3 else 2))
      val store = next.getStore(2)
      assert(content(store) == inMemory)
      put(store, (5, 5) -> 5)
      store.commit()
      // the first run reads the files as soon as it has let its table go, which another thread does
      if (!isClosed && isReplaced) {
        eventually(Timeout(30.seconds))(assert(content(first.getReadStore(2)) == inMemory))
      }
      assert(content(next.getReadStore(3)) == inMemory + ((5, 5) -> 5))
      assert(content(paged(directory).getReadStore(1)) == Map((1, 1) -> 1))
    }
  }

  test("the next run takes a table that is larger than the heap may keep, too") {
    val directory = QuickFileSystem.temporaryDirectory()
    val limit = 2 * (StateMemory.heap.get + (2 << 20))
    val fraction = limit.toDouble / (Runtime.getRuntime.maxMemory - 300 * 1024 * 1024)
    val conf = Map(
      KeptFor -> "1min",
      "spark.sql.streaming.stateStore.pages.heapFraction" -> fraction.toString)
    val first = paged(directory, conf)
    val store = first.getStore(0)
    val entries = (0 until 100000).map(n => (n % 1000, n) -> n)
    put(store, entries: _*)
    store.commit()
    first.close()
    // a file that can't be read, and looks the same
    val written = files(directory).find(_.getName == "1.delta").get
    val time = written.lastModified()
    Files.write(written.toPath, new Array[Byte](written.length().toInt))
    written.setLastModified(time)
    val next = paged(directory, conf)
    val again = next.getStore(1)
    assert(content(again) == entries.toMap)
    assert(again.metrics.customMetrics(PagedStateStore.FileBytes) > 0)
    put(again, (1, 1) -> -1)
    again.commit()
    assert(content(next.getReadStore(2)) == entries.toMap + ((1, 1) -> -1))
  }

  test("a table that is in use, of another version or another layout is not taken") {
    val directory = QuickFileSystem.temporaryDirectory()
    val kept = Map(KeptFor -> "1min")
    val first = paged(directory, kept)
    val store = first.getStore(0)
    put(store, (1, 1) -> 1)
    store.commit()
    val late = first.getStore(1)
    put(late, (1, 1) -> 9)
    val next = paged(directory, kept)
    assert(content(next.getStore(1)) == Map((1, 1) -> 1))
    late.commit()
    assert(next.getReadStore(0).iterator().isEmpty)
  }

  test("what is aborted was never there") {
    val provider = paged(QuickFileSystem.temporaryDirectory())
    val first = provider.getStore(0)
    put(first, (1, 1) -> 1)
    first.commit()
    val aborted = provider.getStore(1)
    put(aborted, (1, 1) -> 2, (2, 2) -> 2)
    aborted.abort()
    assert(intercept[IllegalStateException](put(aborted, (1, 1) -> 3)).getMessage.contains("put"))
    assert(content(provider.getStore(1)) == Map((1, 1) -> 1))
  }

  test("a snapshot is written by maintenance, and old files go") {
    val directory = QuickFileSystem.temporaryDirectory()
    val provider =
      paged(directory, Map("spark.sql.streaming.minBatchesToRetain" -> "2"))
    for (version <- 0 until 60) {
      val store = provider.getStore(version)
      put(store, (1, version) -> version)
      store.commit()
      if (version % 3 == 0) provider.doMaintenance()
    }
    provider.doMaintenance()
    val files = new File(directory, "0/0").list().filterNot(_.startsWith("."))
    assert(files.exists(_.endsWith(".snapshot")))
    assert(files.length < 40, files.mkString(" "))
    val expected = (0 until 60).map(version => (1, version) -> version).toMap
    assert(content(paged(directory).getReadStore(60)) == expected)
  }

  test("without maintenance a snapshot is written in time") {
    val directory = QuickFileSystem.temporaryDirectory()
    val provider =
      paged(directory, Map("spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "1"))
    for (version <- 0 until 15) provider.getStore(version).commit()
    // in the background
    eventually(Timeout(10.seconds)) {
      assert(files(directory).exists(_.getName.endsWith(".snapshot")))
    }
    for (version <- 15 until 60) provider.getStore(version).commit()
    assert(content(paged(directory).getReadStore(60)) == Map.empty)
  }

  test("another attempt waits for the one before it") {
    val provider = paged(QuickFileSystem.temporaryDirectory())
    val first = provider.getStore(0)
    put(first, (1, 1) -> 1)
    @volatile var seen: Model = null
    val other = new Thread(() => seen = content(provider.getStore(0)))
    other.start()
    Thread.sleep(300)
    assert(seen == null)
    first.abort()
    other.join(10000)
    assert(seen == Map.empty)
  }

  test("column families and checkpoint ids are refused as Spark's own provider does") {
    val provider = paged(QuickFileSystem.temporaryDirectory())
    intercept[StateStoreCheckpointIdsNotSupported](provider.getStore(0, Some("id")))
    val store = provider.getStore(0)
    intercept[StateStoreMultipleColumnFamiliesNotSupportedException](
      store.get(key(1, 1), "family"))
    intercept[StateStoreUnsupportedOperationException](store.merge(key(1, 1), value(1)))
  }

  private val everySnapshot = Map("spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "1")

  for (fault <- Seq(AtCreation, Within(10), AtClose, AfterClose))
    test(s"a commit whose snapshot fails ($fault) is a commit") {
      val directory = QuickFileSystem.temporaryDirectory()
      val (here, elsewhere) = (paged(directory, everySnapshot), paged(directory, everySnapshot))
      val first = here.openStore(0, None, forceSnapshotOnCommit = true, loadEmpty = false)
      put(first, (1, 1) -> 1)
      assert(failing("1.snapshot", fault)(first.commit()) == 1)
      first.abort()
      assert(first.hasCommitted && content(here.getReadStore(1)) == Map((1, 1) -> 1))
      // it is not forgotten
      val second = elsewhere.getStore(1)
      put(second, (2, 2) -> 2)
      second.commit()
      put(here.openStore(2, None, forceSnapshotOnCommit = true, loadEmpty = false), (3, 3) -> 3)
      here.openStore(2, None, forceSnapshotOnCommit = true, loadEmpty = false).commit()
      assert(files(directory).exists(_.getName == "3.snapshot"))
      assert(content(here.getReadStore(3)) == Map((1, 1) -> 1, (2, 2) -> 2))
    }

  for (fault <- Seq(AtCreation, Within(10), AtClose, AfterClose))
    test(s"a commit whose delta fails ($fault) leaves the version before") {
      val directory = QuickFileSystem.temporaryDirectory()
      val (here, elsewhere) = (paged(directory), paged(directory))
      put(here.getStore(0), (1, 1) -> 1)
      val failed = here.getStore(0)
      put(failed, (1, 1) -> 1)
      intercept[Exception](failing("1.delta", fault)(failed.commit()))
      intercept[Exception](failed.commit())
      failed.abort()
      failed.abort()
      assert(!failed.hasCommitted)
      Seq(here, elsewhere).foreach { provider =>
        val again = provider.getStore(0)
        assert(content(again).isEmpty)
        put(again, (1, 1) -> 1)
        again.commit()
        assert(content(provider.getReadStore(1)) == Map((1, 1) -> 1))
      }
      put(elsewhere.getStore(1), (9, 9) -> 9)
      assert(content(here.getStore(1)) == Map((1, 1) -> 1))
    }

  test("a snapshot that maintenance can't write is written by the next one") {
    val directory = QuickFileSystem.temporaryDirectory()
    val provider = paged(directory, everySnapshot)
    for (version <- 0 until 3) {
      val store = provider.getStore(version)
      put(store, (1, version) -> version)
      store.commit()
    }
    failing(".snapshot", Within(5))(provider.doMaintenance())
    assert(!files(directory).exists(_.getName.endsWith(".snapshot")))
    provider.doMaintenance()
    assert(files(directory).exists(_.getName.endsWith(".snapshot")))
  }

  test("a snapshot of an attempt that was abandoned is not written, and not read") {
    for (isWritten <- Seq(false, true)) {
      val directory = QuickFileSystem.temporaryDirectory()
      val provider = paged(directory, everySnapshot)
      provider.getStore(0).commit()
      val abandoned =
        provider.openStore(1, None, forceSnapshotOnCommit = isWritten, loadEmpty = false)
      put(abandoned, (1, 1) -> 1)
      abandoned.commit()
      val again = provider.getStore(1)
      put(again, (2, 2) -> 2)
      again.commit()
      provider.doMaintenance()
      assert(content(paged(directory).getReadStore(2)) == Map((2, 2) -> 2))
      assert(content(spark(directory, Map.empty).getReadStore(2, None)) == Map((2, 2) -> 2))
    }
  }

  test("what outlives its task changes nothing any more") {
    val provider = paged(QuickFileSystem.temporaryDirectory())
    @volatile var zombie: StateStore = null
    val task = new Thread(() => zombie = provider.getStore(0))
    task.start()
    task.join()
    put(zombie, (1, 1) -> 1)
    zombie.abort() // as its task's end does, on whatever thread
    val next = provider.getStore(0)
    intercept[IllegalStateException](put(zombie, (1, 1) -> 1))
    intercept[IllegalStateException](zombie.remove(key(1, 1)))
    intercept[Exception](zombie.commit())
    assert(!zombie.hasCommitted)
    put(next, (2, 2) -> 2)
    next.commit()
    zombie.abort()
    assert(content(provider.getReadStore(1)) == Map((2, 2) -> 2))
  }

  test("a provider that is closed while a task goes on still commits what that has done") {
    val directory = QuickFileSystem.temporaryDirectory()
    val provider = paged(directory)
    val store = provider.getStore(0)
    put(store, (1, 1) -> 1)
    provider.close()
    assert(store.commit() == 1)
    assert(content(paged(directory).getReadStore(1)) == Map((1, 1) -> 1))
  }

  test("checkpoint format 2 is refused with a way out") {
    checkError("CHANGELOG_CHECKPOINT_FORMAT_NOT_SUPPORTED", "version" -> "2") {
      paged(
        QuickFileSystem.temporaryDirectory(),
        Map("spark.sql.streaming.stateStore.checkpointFormatVersion" -> "2"))
    }
  }
}
