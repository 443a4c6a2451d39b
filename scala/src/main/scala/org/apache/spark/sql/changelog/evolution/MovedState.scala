// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.state.{StateStore, StateStoreId, UnsafeRowPair}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.{HashPartitioner, TaskContext}

import org.apache.spark.sql.changelog.compat.{StateStores, StoredStore, WholeStores}
import org.apache.spark.sql.changelog.execution.StateReadFailures
import org.apache.spark.sql.changelog.execution.aggregate.MovedDistinctValues
import org.apache.spark.sql.changelog.execution.time.MovedTimedRows
import org.apache.spark.sql.changelog.identity.EntryPlacement
import org.apache.spark.sql.changelog.state.PagedStateProvider

/**
 * Moves state to another number of partitions, one job per store. Tasks read the old partitions,
 * and other tasks write a version of each new partition.
 *
 * @param conf
 *   the state settings of the query
 * @param from
 *   the folder with the state of all operators
 * @param into
 *   the new folder
 * @param version
 *   the version to read and write
 */
private[evolution] class MovedState(
    session: SparkSession,
    conf: SQLConf,
    from: Path,
    into: Path,
    version: Long) {
  import MovedState._

  // Spark's own provider also reads the files of pages.
  private val whole = WholeStores(session, conf, () => new PagedStateProvider)

  /**
   * Moves a store of an operator.
   *
   * @param stateIds
   *   the id of the valid files of each partition, if each attempt of a task leaves files
   */
  def apply(
      operator: MovedOperator,
      store: StoredStore,
      columns: StateStores.Columns,
      stateIds: Option[Seq[String]]): Moved = {
    // Local copies for the closure of the tasks.
    val (whole, version) = (this.whole, this.version)
    val (before, numPartitions) = (store.numPartitions, operator.partitions)
    val (form, placing) = (operator.form, operator.placing(store))
    def idIn(folder: Path): Int => StateStoreId = {
      val (root, number) = (folder.toString, operator.stored.id)
      StateStoreId(root, number, _, store.name)
    }
    val (source, target) = (idIn(from), idIn(into))
    val entries = session.sparkContext.longAccumulator
    val misplaced = session.sparkContext.longAccumulator
    val written = session.sparkContext
      .parallelize(0 until before, before)
      .flatMap { partition =>
        val id = source(partition)
        val (wasIn, isIn) = (placing(before), placing(numPartitions))
        val entriesBefore =
          StoredEntries(whole, id, version, columns, stateIds.map(_(partition)))
        entriesBefore.flatMap { entry =>
          val moved =
            if (isPlaced(form, entry.key)) {
              entries.add(1)
              val parts = partsOf(form, entry)
              if (parts.exists(wasIn(_) != partition)) misplaced.add(1)
              parts.map(part => isIn(part) -> part)
            } else if (isShared(form, entry.key)) (0 until numPartitions).map(_ -> entry)
            else Nil
          moved.map { case (target, part) =>
            target -> (part.key.copy().getBytes, part.value.copy().getBytes)
          }
        }
      }
      // The hash of a number is the number.
      .partitionBy(new HashPartitioner(numPartitions))
      .mapPartitions { moved =>
        val stateId = whole.write(target(TaskContext.getPartitionId()), version, columns) {
          state =>
            val put = writerOf(form, columns, state)
            val (key, value) =
              (new UnsafeRow(columns.key.size), new UnsafeRow(columns.value.size))
            val entry = new UnsafeRowPair
            moved.foreach { case (_, (keyBytes, valueBytes)) =>
              key.pointTo(keyBytes, keyBytes.length)
              value.pointTo(valueBytes, valueBytes.length)
              put(entry.withRows(key, value))
            }
        }
        Iterator.single(stateId)
      }
      .collect()
    Moved(entries.value, misplaced.value, written.toSeq.flatten)
  }
}

private[evolution] object MovedState {

  /**
   * The result of a move.
   *
   * @param entries
   *   the number of entries read
   * @param misplaced
   *   the number of entries outside their partition
   * @param stateIds
   *   the id of the valid files of each partition, if the format needs ids
   */
  final case class Moved(entries: Long, misplaced: Long, stateIds: Seq[String])

  private def isTimed(form: EntryPlacement.Form): Boolean = form match {
    case EntryPlacement.Timed | EntryPlacement.TimedByRow => true
    case EntryPlacement.Single | _: EntryPlacement.OfKinds => false
  }

  /** Whether an entry, or each part of an entry, belongs to one partition. */
  private def isPlaced(form: EntryPlacement.Form, key: UnsafeRow): Boolean =
    !isTimed(form) || MovedTimedRows.isRow(key)

  /** Whether an entry is copied to all partitions. */
  private def isShared(form: EntryPlacement.Form, key: UnsafeRow): Boolean =
    isTimed(form) && MovedTimedRows.isClock(key)

  /** Returns the parts of an entry that each belong to one partition. */
  private def partsOf(form: EntryPlacement.Form, entry: UnsafeRowPair): Seq[UnsafeRowPair] =
    form match {
      case _: EntryPlacement.OfKinds => MovedDistinctValues.byKind(entry)
      case _ => Seq(entry)
    }

  private def writerOf(
      form: EntryPlacement.Form,
      columns: StateStores.Columns,
      state: StateStore): UnsafeRowPair => Unit = form match {
    case EntryPlacement.Single => entry => state.put(entry.key, entry.value)
    case _: EntryPlacement.OfKinds => MovedDistinctValues.add(_, state)
    case timed =>
      val storesTimes = timed == EntryPlacement.TimedByRow
      new MovedTimedRows(columns.key, state, storesTimes).add(_)
  }
}

/**
 * StoredEntries: all entries in a partition of a store, read by tasks. The iterator may return
 * one mutable object for every entry.
 */
private[evolution] object StoredEntries {

  /**
   * @param stateId
   *   the id of the valid files, if each attempt of a task leaves files
   */
  def apply(
      whole: WholeStores,
      id: StateStoreId,
      version: Long,
      columns: StateStores.Columns,
      stateId: Option[String]): Iterator[UnsafeRowPair] = {
    val failures = new StateReadFailures(id, version, whole.hadoopConf)
    failures.whileReading(failures.whileOpening(whole.read(id, version, columns, stateId)))
  }
}
