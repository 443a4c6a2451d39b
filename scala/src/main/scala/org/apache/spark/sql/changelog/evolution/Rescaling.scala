// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.execution.streaming.state.UnsafeRowPair
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Row, SparkSession}

import org.apache.spark.sql.changelog.SqlCommand
import org.apache.spark.sql.changelog.checkpoint.QueryOrigin
import org.apache.spark.sql.changelog.compat._
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.identity.{EntryPlacement, QueryRecordFile}

/**
 * Rescaling: moves the state of a stopped query to another number of partitions.
 *
 * Each entry is read once and written once. The content of an entry is ignored, except for the
 * kinds of rows that share an entry and are shuffled separately. An entry belongs to the
 * partition of the entry's rows. Each operator has recorded the shuffle columns
 * ([[EntryPlacement]]). Every entry is checked: its old partition must agree with the record.
 *
 * Spark's own way (`StreamingCheckpointManager`) supports only Spark's operators, and only
 * RocksDB with column families. For Spark's operators within a query, Spark's code decides about
 * the partition.
 *
 * @param from
 *   the checkpoint of the stopped query
 * @param numPartitions
 *   the new number of partitions
 */
class Rescaling(session: SparkSession, from: Path, numPartitions: Int) {
  private def refused(reason: String) =
    analysis(
      "CHANGELOG_RESCALING_NOT_POSSIBLE",
      "checkpoint" -> from,
      "partitions" -> numPartitions,
      "reason" -> reason)

  private def refuse(reason: String): Nothing = throw refused(reason)

  Rescaling.check(from, numPartitions)
  private val hadoopConf = session.sessionState.newHadoopConf()

  // Tasks may have another default file system.
  private def qualified(path: Path): Path = path.getFileSystem(hadoopConf).makeQualified(path)

  private val stopped = new StoppedQuery(session, qualified(from), refused(_))
  if (stopped.numPartitions == numPartitions) refuse("the state already has as many partitions")

  if (!stopped.hasReadableState)
    refuse(s"only the provider ${stopped.stateProvider} can read the files of the state")

  private val rescaled: LoggedBatch = stopped.offsets
    .inPartitions(numPartitions)
    .getOrElse(refuse(s"the settings of batch ${stopped.batch} are not known"))

  private val state = stopped.state
  private val stored = new StoredOperators(state, hadoopConf)

  private val operators: Seq[MovedOperator] = {
    val all =
      try stored.all(stopped.batch)
      catch { case NonFatal(error) => refuse(s"metadata in $state cannot be read: $error") }
    stopped.record.operators.foreach { operator =>
      if (!operator.ids.forall(id => all.exists(_.id == id)))
        refuse(s"state of ${operator.shown} is missing in $state")
    }
    all.map { operator =>
      val ours = stopped.record.operators.find(_.ids.contains(operator.id))
      ours.fold(ofSpark(operator))(record => ofOurs(operator, record.shown))
    }
  }

  private def ofOurs(operator: StoredOperator, shown: String): MovedOperator = {
    val noted =
      try EntryPlacement.file(state, operator.id, hadoopConf).find().map(EntryPlacement.fromJson)
      catch {
        case NonFatal(error) =>
          refuse(s"the placement of entries of $shown cannot be read: $error")
      }
    val placement =
      noted.getOrElse(refuse(s"the placement of entries of $shown is not recorded in $state"))
    placement.hindrance.foreach(why => refuse(s"for $shown, $why"))
    MovedOperator(
      operator,
      shown,
      placement.form,
      placement.partitionsOf(numPartitions),
      _ => placement.partitionOf(_))
  }

  private def ofSpark(operator: StoredOperator): MovedOperator = {
    def placement(store: StoredStore) = new SparkPlacement(
      operator.name,
      store.name,
      stored.columnsOf(operator, store),
      stopped.offsets.settings)
    if (operator.hasColumnFamilies || !operator.stores.forall(placement(_).isKnown))
      refuse(s"the partitions of entries of Spark's operator ${operator.name} are not known")
    MovedOperator(
      operator,
      operator.name,
      EntryPlacement.Single,
      numPartitions,
      store => {
        val known = placement(store)
        numPartitions => {
          val partitionOf = known.partitionOf(numPartitions)
          entry => partitionOf(entry.key)
        }
      })
  }

  /**
   * Makes the rescaled checkpoint, atomically.
   *
   * @param into
   *   a missing or empty folder
   * @return
   *   the new distribution of each operator's state
   */
  def write(into: Path): Seq[OperatorSpread] = {
    val staged = new StagedCheckpoint(session, stopped.checkpoint, qualified(into))
    staged.make { folder =>
      // The query keeps the id, so sinks still recognize the query's batches.
      val same = Seq("metadata", "sources", "offsets", "commits", QueryOrigin.Place)
      same.foreach(name => staged.copy(name, name))
      val moved = operators.map(move(_, staged, new Path(folder, "state")))
      val settings = stopped.record.settings + (Rescaling.Partitions -> numPartitions.toString)
      new QueryRecordFile(folder, hadoopConf).write(stopped.record.copy(settings = settings))
      writeLast(staged, new StreamLogs(session, folder), moved)
      operators.zip(moved).map { case (operator, stores) =>
        OperatorSpread(operator.shown, operator.partitions, stores.map(_.entries).sum)
      }
    }
  }

  /** Replaces the last batch in both logs. A run takes settings and state from the last batch. */
  private def writeLast(
      staged: StagedCheckpoint,
      logs: StreamLogs,
      moved: Seq[Seq[MovedState.Moved]]): Unit = {
    Seq("offsets", "commits").foreach(log => staged.delete(s"$log/${stopped.batch}"))
    logs.begin(stopped.batch, rescaled)
    val stateIds = stopped.stateIds.map { _ =>
      val ofStores = moved.map(_.map(_.stateIds).transpose)
      operators.map(_.stored.id).zip(ofStores).toMap
    }
    logs.endAs(stopped.batch, stopped.logs, stateIds)
  }

  private def move(
      operator: MovedOperator,
      staged: StagedCheckpoint,
      into: Path): Seq[MovedState.Moved] = {
    val id = operator.stored.id
    val state = new MovedState(session, stopped.stateConf, this.state, into, stopped.batch + 1)
    staged.copy(s"state/$id/_metadata", s"state/$id/_metadata")
    staged.delete(s"state/$id/_metadata/metadata")
    new StoredOperators(into, hadoopConf).write(operator.stored, operator.partitions)
    operator.stored.stores.zipWithIndex.map { case (store, index) =>
      // The schema of the store is beside its first partition.
      val first = stored.folderOf(operator.stored, store)
      staged.copy(s"state/$first/_metadata", s"state/$first/_metadata")
      val stateIds = stopped.stateIds.map(_(id).map(_(index)))
      val moved = state(operator, store, stored.columnsOf(operator.stored, store), stateIds)
      if (moved.misplaced > 0) {
        refuse(
          s"${moved.misplaced} of ${moved.entries} entries of ${operator.shown} are not in the " +
            "partition to which their rows are shuffled")
      }
      moved
    }
  }
}

object Rescaling {

  /** The setting with the number of state partitions for new queries. */
  val Partitions: String = ChangelogConf.STATE_PARTITIONS.key

  /** Rejects an impossible number of partitions. */
  def check(checkpoint: Path, numPartitions: Int): Unit = if (numPartitions < 1) {
    throw analysis(
      "CHANGELOG_RESCALING_NOT_POSSIBLE",
      "checkpoint" -> checkpoint,
      "partitions" -> numPartitions,
      "reason" -> "a query has at least one partition")
  }

  /**
   * `RESCALE CHECKPOINT 'old' INTO 'new' PARTITIONS n`: makes a checkpoint in which the stopped
   * query of `old` continues with another number of partitions.
   */
  def command(from: String, into: String, numPartitions: Int): LogicalPlan =
    SqlCommand("RESCALE CHECKPOINT", from, into, numPartitions)(
      _ => OperatorSpread.columns,
      new Rescaling(_, new Path(from), numPartitions).write(new Path(into)).map(_.toRow))
}

/**
 * An operator whose state is moved.
 *
 * @param shown
 *   the operator, as shown by EXPLAIN
 * @param partitions
 *   the new number of partitions
 * @param placing
 *   for a store and a number of partitions, the function from an entry to its partition
 */
private[evolution] final case class MovedOperator(
    stored: StoredOperator,
    shown: String,
    form: EntryPlacement.Form,
    partitions: Int,
    placing: StoredStore => (Int => UnsafeRowPair => Int))

/**
 * The distribution of an operator's state.
 *
 * @param shown
 *   the operator, as shown by EXPLAIN
 * @param entries
 *   the number of entries
 */
final case class OperatorSpread(shown: String, partitions: Int, entries: Long) {
  def toRow: Row = Row(shown, partitions, entries)
}

object OperatorSpread {

  /** The columns of [[OperatorSpread.toRow]]. */
  def columns: Seq[Attribute] =
    toAttributes(StructType.fromDDL("operator STRING, partitions INT, entries BIGINT"))
}
