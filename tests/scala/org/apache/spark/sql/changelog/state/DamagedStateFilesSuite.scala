// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import java.io.{File, FilterInputStream, InputStream}
import java.nio.file.Files
import java.util.concurrent.atomic.AtomicInteger

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.SparkConf
import org.apache.spark.io.ZStdCompressionCodec
import org.apache.spark.sql.execution.streaming.state.StateStoreProvider

import org.apache.spark.sql.changelog.testing.{ErrorChecks, QuickFileSystem}

/** State files that are no longer what was written give the right rows, or an error with their name. */
class DamagedStateFilesSuite extends AnyFunSuite with ProviderFixture with ErrorChecks {
  private val expected: Model =
    (for (version <- 1 to 4; index <- 0 until 8 if index != version)
      yield (version, index) -> index).toMap

  /** Lets maintenance write a snapshot of whatever there is. */
  private val snapshots = Map("spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "1")

  private def conf(codec: String, rowChecksums: Boolean) = snapshots ++ Map(
    "spark.sql.streaming.stateStore.compression.codec" -> codec,
    "spark.sql.streaming.stateStore.rowChecksum.enabled" -> rowChecksums.toString)

  /** Versions 1 to 4, each of which adds entries and removes one; a snapshot of 2. */
  private def write(provider: StateStoreProvider): Unit = {
    for (version <- 1 to 4) {
      val store = provider.getStore(version - 1)
      (0 until 8).foreach(index => put(store, (version, index) -> index))
      if (version > 1) store.remove(key(version - 1, version - 1))
      if (version == 4) store.remove(key(4, 4))
      store.commit()
      if (version == 2) provider.doMaintenance()
    }
    provider.close()
  }

  private def check(directory: File, conf: Map[String, String], damaged: File): Unit =
    try {
      val found = content(paged(directory, conf).getReadStore(4))
      assert(found == expected, damaged)
    } catch {
      case error: Exception =>
        val ours = changelogError(throw error)
        assert(ours.getMessage.contains(damaged.getName), error)
        assert(ours.getMessage.contains("new checkpoint"), error)
    }

  // what Spark's provider writes has a checksum only of its codec or of its rows
  private val cases =
    ((for (codec <- Seq("lz4", "zstd", "snappy", "lzf"); rows <- Seq(false, true))
      yield ("paged", codec, rows)) ++ Seq(("spark", "lz4", false), ("spark", "zstd", true)))
      .filter { case (_, _, rows) => !rows || hasRowChecksums }

  for ((writer, codec, rows) <- cases)
    test(s"bits flipped and files cut short, by $writer with $codec, row checksums $rows") {
      val directory = QuickFileSystem.temporaryDirectory()
      val settings = conf(codec, rows)
      write(if (writer == "paged") paged(directory, settings) else spark(directory, settings))
      assert(content(paged(directory, settings).getReadStore(4)) == expected)
      for (name <- Seq("2.snapshot", "3.delta", "4.delta")) {
        val file = new File(directory, s"0/0/$name")
        val bytes = Files.readAllBytes(file.toPath)
        // all of them where only our checksum tells, else a part
        val step = if (codec == "lzf" && !rows) 1 else 7
        for (place <- bytes.indices by step) {
          Files.write(
            file.toPath,
            bytes.updated(place, (bytes(place) ^ (1 << (place % 8))).toByte))
          withClue(s"$name, byte $place flipped: ")(check(directory, settings, file))
        }
        for (length <- bytes.indices by step) {
          Files.write(file.toPath, bytes.take(length))
          withClue(s"$name, $length of ${bytes.length} bytes: ")(check(directory, settings, file))
        }
        Files.write(file.toPath, bytes)
      }
    }

  test("the streams of a codec are closed, of damaged files too") {
    val directory = QuickFileSystem.temporaryDirectory()
    val settings = conf(classOf[CountedStreams].getName, rowChecksums = false)
    write(paged(directory, settings))
    CountedStreams.open.set(0)
    CountedStreams.all.set(0)
    assert(content(paged(directory, settings).getReadStore(4)) == expected)
    val file = new File(directory, "0/0/4.delta")
    Files.write(file.toPath, Files.readAllBytes(file.toPath).dropRight(5))
    check(directory, settings, file)
    assert(CountedStreams.all.get > 0)
    assert(CountedStreams.open.get == 0)
  }

  test("a snapshot that can't be read is passed over, if there are the deltas") {
    val directory = QuickFileSystem.temporaryDirectory()
    write(paged(directory, snapshots))
    val file = new File(directory, "0/0/2.snapshot")
    Files.write(file.toPath, Array[Byte](1, 2, 3))
    assert(content(paged(directory).getReadStore(4)) == expected)
    new File(directory, "0/0/1.delta").delete()
    checkError("CHANGELOG_CHECKPOINT_FILE_DAMAGED")(paged(directory).getReadStore(4))
    file.delete()
    checkError("CHANGELOG_CHECKPOINT_FILE_MISSING", "version" -> "4")(
      paged(directory).getReadStore(4))
  }

  test("a delta that is missing is named") {
    for (version <- 3 to 4) {
      val directory = QuickFileSystem.temporaryDirectory()
      write(paged(directory, snapshots))
      val file = new File(directory, s"0/0/$version.delta")
      assert(file.delete())
      val error = checkError("CHANGELOG_CHECKPOINT_FILE_MISSING")(paged(directory).getStore(4))
      assert(error.getMessage.contains(s"$version.delta"))
      assert(error.getMessage.contains("new checkpoint"))
    }
  }

  test("row checksums that were switched on or off are refused, not misread") {
    assume(hasRowChecksums)
    for (writes <- Seq(false, true)) {
      val directory = QuickFileSystem.temporaryDirectory()
      write(paged(directory, conf("lz4", writes)))
      val error = checkError("CHANGELOG_CHECKPOINT_FILE_DAMAGED")(
        paged(directory, conf("lz4", !writes)).getStore(4))
      assert(error.getMessage.contains("rowChecksum.enabled"), error)
    }
  }
}

/** zstd, whose streams hold native memory until they are closed. */
class CountedStreams(conf: SparkConf) extends ZStdCompressionCodec(conf) {
  override def compressedInputStream(in: InputStream): InputStream = {
    CountedStreams.all.incrementAndGet()
    CountedStreams.open.incrementAndGet()
    new FilterInputStream(super.compressedInputStream(in)) {
      private var isOpen = true
      override def close(): Unit = {
        if (isOpen) CountedStreams.open.decrementAndGet()
        isOpen = false
        super.close()
      }
    }
  }
}

private object CountedStreams {
  val all = new AtomicInteger
  val open = new AtomicInteger
}
