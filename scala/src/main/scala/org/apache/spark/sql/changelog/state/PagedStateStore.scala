// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.streaming.state.{
  KeyStateEncoderSpec, StateStore, StateStoreCheckpointInfo, StateStoreCustomMetric,
  StateStoreCustomSizeMetric, StateStoreErrors, StateStoreId, StateStoreIterator,
  StateStoreMetrics, UnsafeRowPair
}
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.compat.SingleValueStateStore

/**
 * The table of a provider while a task changes it from a version to the next.
 *
 * @param version
 *   the version at the start
 * @param finish
 *   called at the end with the store, and whether to commit the changes
 */
private[state] final class PagedStateStore(
    override val id: StateStoreId,
    override val version: Long,
    val table: PagedTable,
    finish: (PagedStateStore, Boolean) => Unit)
    extends SingleValueStateStore {
  import PagedStateStore._

  /** The thread with exclusive use of the table until commit or abort. */
  val owner: Thread = Thread.currentThread()

  // changes from Updating only under the table's lock, so that a zombie task cannot modify the table
  @volatile private var state: Stage = Updating

  Option(TaskContext.get()).foreach(_.addTaskCompletionListener[Unit](_ => abort()))

  override def get(key: UnsafeRow, family: String): UnsafeRow = {
    checkFamily(family)
    table.get(key)
  }

  override def put(key: UnsafeRow, value: UnsafeRow, family: String): Unit = {
    checkFamily(family)
    table.synchronized {
      checkUpdating("put")
      table.put(key, value)
    }
  }

  override def remove(key: UnsafeRow, family: String): Unit = {
    checkFamily(family)
    table.synchronized {
      checkUpdating("remove")
      table.remove(key)
    }
  }

  override def prefixScan(
      prefix: UnsafeRow,
      family: String): StateStoreIterator[UnsafeRowPair] = {
    checkFamily(family)
    new StateStoreIterator(table.entries(prefix))
  }

  override def iterator(family: String): StateStoreIterator[UnsafeRowPair] = {
    checkFamily(family)
    new StateStoreIterator(table.entries())
  }

  override def commit(): Long =
    try {
      table.synchronized {
        checkUpdating("commit")
        state = Committing
      }
      finish(this, true)
      state = Committed
      version + 1
    } catch {
      case e: Throwable =>
        // the provider knows the outcome; a second commit fails
        if (state == Committing) state = Aborted
        throw QueryExecutionErrors.failedToCommitStateFileError(toString, e)
    }

  override def abort(): Unit = {
    val isFirst = table.synchronized {
      val isFirst = state == Updating
      if (isFirst) state = Aborted
      isFirst
    }
    if (isFirst) finish(this, false)
  }

  /** Does nothing, because a store opened for reading has no lock. */
  override def release(): Unit = ()

  override def hasCommitted: Boolean = state == Committed

  override def metrics: StateStoreMetrics = StateStoreMetrics(
    table.size,
    table.numBytes,
    Map(EntryBytes -> table.numEntryBytes, FileBytes -> table.numFileBytes))

  override def getStateStoreCheckpointInfo(): StateStoreCheckpointInfo =
    StateStoreCheckpointInfo(id.partitionId, version + 1, None, None)

  override def removeColFamilyIfExists(family: String): Boolean =
    throw StateStoreErrors.removingColumnFamiliesNotSupported(Name)

  override def createColFamilyIfAbsent(
      family: String,
      keySchema: StructType,
      valueSchema: StructType,
      keyEncoder: KeyStateEncoderSpec,
      useMultipleValuesPerKey: Boolean,
      isInternal: Boolean): Unit = throw StateStoreErrors.multipleColumnFamiliesNotSupported(Name)

  override def toString: String = s"$Name[id=$id, version=$version]"

  private def checkUpdating(operation: String): Unit =
    if (state != Updating) {
      throw new IllegalStateException(s"Cannot $operation after already committed or aborted")
    }

  private def checkFamily(family: String): Unit =
    if ((family ne StateStore.DEFAULT_COL_FAMILY_NAME) &&
      family != StateStore.DEFAULT_COL_FAMILY_NAME) {
      throw StateStoreErrors.multipleColumnFamiliesNotSupported(Name)
    }

  override protected def oneValuePerKey(): Nothing =
    throw StateStoreErrors.unsupportedOperationException("multipleValuesPerKey", Name)
}

private[state] object PagedStateStore {
  val Name = "PagedStateStore"

  /** The metric's name in Spark's in-memory provider. */
  val EntryBytes: StateStoreCustomMetric = StateStoreCustomSizeMetric(
    "stateOnCurrentVersionSizeBytes",
    "estimated size of state only on current version")

  val FileBytes: StateStoreCustomMetric =
    StateStoreCustomSizeMetric("stateInLocalFilesBytes", "size of state in local files")

  private sealed trait Stage
  private case object Updating extends Stage
  private case object Committing extends Stage
  private case object Committed extends Stage
  private case object Aborted extends Stage
}
