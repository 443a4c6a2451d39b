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
 * Spreads state over another number of partitions, store by store, each by a job: tasks read the old partitions,
 * others write a version of each of the new ones.
 *
 * @param conf
 *   the settings with which the query keeps state
 * @param from
 *   the folder with the state of all operators
 * @param into
 *   the folder it is to be in
 * @param version
 *   which is read, and written
 */
private[evolution] class MovedState(
    session: SparkSession,
    conf: SQLConf,
    from: Path,
    into: Path,
    version: Long) {
  import MovedState._

  // pages are kept in files that Spark's own provider reads too
  private val whole = WholeStores(session, conf, () => new PagedStateProvider)

  /**
   * Spreads a store of an operator.
   *
   * @param stateIds
   *   which files of each partition count, where each attempt of a task leaves some
   */
  def apply(
      operator: MovedOperator,
      store: StoredStore,
      columns: StateStores.Columns,
      stateIds: Option[Seq[String]]): Moved = {
    // what tasks get
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
      // a number is its own hash
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
   * What has been spread.
   *
   * @param entries
   *   how many entries were read
   * @param misplaced
   *   how many of them were where they are not looked for
   * @param stateIds
   *   which files of each partition count, where that is to be said
   */
  final case class Moved(entries: Long, misplaced: Long, stateIds: Seq[String])

  private def isTimed(form: EntryPlacement.Form): Boolean = form match {
    case EntryPlacement.Timed | EntryPlacement.TimedByRow => true
    case EntryPlacement.Single | _: EntryPlacement.OfKinds => false
  }

  /** Whether an entry, or each part of it, belongs to one partition. */
  private def isPlaced(form: EntryPlacement.Form, key: UnsafeRow): Boolean =
    !isTimed(form) || MovedTimedRows.isRow(key)

  /** Whether all partitions are to have an entry. */
  private def isShared(form: EntryPlacement.Form, key: UnsafeRow): Boolean =
    isTimed(form) && MovedTimedRows.isClock(key)

  /** The part of an entry that belongs to one partition. */
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
      val notesTimes = timed == EntryPlacement.TimedByRow
      new MovedTimedRows(columns.key, state, notesTimes).add(_)
  }
}

/** All that a partition of a store keeps; tasks read it. Each entry may be the same object. */
private[evolution] object StoredEntries {

  /** @param stateId which files count, where each attempt of a task leaves some */
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
