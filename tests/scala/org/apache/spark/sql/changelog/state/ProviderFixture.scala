// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import java.io.File
import java.util.UUID

import org.scalatest.Suite

import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.internal.SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS
import org.apache.spark.sql.types.{IntegerType, StructType}

import org.apache.spark.sql.changelog.testing.{ChangelogSession, FailingCheckpointFiles}

/** Providers of a small store, ours and Spark's, on files that may fail. */
trait ProviderFixture extends ChangelogSession { this: Suite =>
  protected type Model = Map[(Int, Int), Int]

  /** The setting for how long the state of a query that has ended stays in memory. */
  protected val KeptFor = "spark.sql.streaming.stateStore.pages.keptFor"

  /** Whether this version of Spark knows checksums of rows. */
  protected val hasRowChecksums: Boolean =
    SQLConf.containsConfigKey("spark.sql.streaming.stateStore.rowChecksum.enabled")

  private val keySchema = new StructType().add("a", IntegerType).add("b", IntegerType)
  private val valueSchema = new StructType().add("n", IntegerType)
  private val toKey = UnsafeProjection.create(keySchema)
  private val toValue = UnsafeProjection.create(valueSchema)

  protected def key(a: Int, b: Int): UnsafeRow =
    toKey(new GenericInternalRow(Array[Any](a, b)))

  protected def value(n: Int): UnsafeRow = toValue(new GenericInternalRow(Array[Any](n)))

  protected def start[P <: StateStoreProvider](
      provider: P,
      directory: File,
      conf: Map[String, String]): P = {
    spark.streams.stateStoreCoordinator // whom providers report to
    val sqlConf = new SQLConf
    // what is in files is read, unless a test says otherwise
    (Map(KeptFor -> "0") ++ conf).foreach { case (key, value) =>
      sqlConf.setConfString(key, value)
    }
    val hadoopConf = spark.sessionState.newHadoopConf()
    hadoopConf.set(StreamExecution.RUN_ID_KEY, UUID.randomUUID().toString)
    hadoopConf.set(
      STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key,
      classOf[FailingCheckpointFiles].getName)
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

  protected def paged(
      directory: File,
      conf: Map[String, String] = Map.empty): PagedStateProvider =
    start(new PagedStateProvider, directory, conf)

  protected def spark(directory: File, conf: Map[String, String]): HDFSBackedStateStoreProvider =
    start(new HDFSBackedStateStoreProvider, directory, conf)

  protected def content(store: ReadStateStore): Model = store
    .iterator()
    .map { entry =>
      (entry.key.getInt(0), entry.key.getInt(1)) -> entry.value.getInt(0)
    }
    .toMap

  protected def put(store: StateStore, entries: ((Int, Int), Int)*): Unit =
    entries.foreach { case ((a, b), n) => store.put(key(a, b), value(n)) }

  /** The files of the store. */
  protected def files(directory: File): Seq[File] =
    Option(new File(directory, "0/0").listFiles()).toSeq.flatten
      .filterNot(_.getName.startsWith("."))
}
