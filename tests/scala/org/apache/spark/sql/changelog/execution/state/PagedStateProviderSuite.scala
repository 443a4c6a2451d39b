// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.state

import java.io.File
import java.util.UUID

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{IntegerType, StructType}

import org.apache.spark.sql.changelog.testing.{ChangelogSession, QuickFileSystem}

/** Versions in memory and in files, and Spark's own provider on the same files. */
class PagedStateProviderSuite extends AnyFunSuite with ChangelogSession {
  private val keySchema = new StructType().add("a", IntegerType).add("b", IntegerType)
  private val valueSchema = new StructType().add("n", IntegerType)
  private val toKey = UnsafeProjection.create(keySchema)
  private val toValue = UnsafeProjection.create(valueSchema)

  private def key(a: Int, b: Int): UnsafeRow = toKey(new GenericInternalRow(Array[Any](a, b)))

  private def value(n: Int): UnsafeRow = toValue(new GenericInternalRow(Array[Any](n)))

  private type Model = Map[(Int, Int), Int]

  private def start[P <: StateStoreProvider](
      provider: P,
      directory: File,
      conf: Map[String, String]): P = {
    spark.streams.stateStoreCoordinator // whom providers report to
    val sqlConf = new SQLConf
    conf.foreach { case (key, value) => sqlConf.setConfString(key, value) }
    val hadoopConf = spark.sessionState.newHadoopConf()
    hadoopConf.set(StreamExecution.RUN_ID_KEY, UUID.randomUUID().toString)
    provider.init(
      StateStoreId(directory.getPath, 0, 0),
      keySchema,
      valueSchema,
      PrefixKeyScanStateEncoderSpec(keySchema, 1),
      useColumnFamilies = false,
      new StateStoreConf(sqlConf),
      hadoopConf)
    provider
  }

  private def paged(directory: File, conf: Map[String, String] = Map.empty) =
    start(new PagedStateProvider, directory, conf)

  private def spark(directory: File, conf: Map[String, String]) =
    start(new HDFSBackedStateStoreProvider, directory, conf)

  private def content(store: ReadStateStore): Model = store
    .iterator()
    .map { entry =>
      (entry.key.getInt(0), entry.key.getInt(1)) -> entry.value.getInt(0)
    }
    .toMap

  private def put(store: StateStore, entries: ((Int, Int), Int)*): Unit =
    entries.foreach { case ((a, b), n) => store.put(key(a, b), value(n)) }

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
    for (version <- 0 until 30) provider.getStore(version).commit()
    assert(new File(directory, "0/0").list().exists(_.endsWith(".snapshot")))
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
}
