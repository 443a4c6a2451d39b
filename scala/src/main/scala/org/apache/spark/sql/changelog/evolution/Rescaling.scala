// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.execution.streaming.state.UnsafeRowPair
import org.apache.spark.sql.types.{IntegerType, LongType, StringType}
import org.apache.spark.sql.{Row, SparkSession => AnySession}

import org.apache.spark.sql.changelog.checkpoint.QueryOrigin
import org.apache.spark.sql.changelog.compat._
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.errors.EvolutionErrors
import org.apache.spark.sql.changelog.identity.{EntryPlacement, QueryRecordFile}

/**
 * A query that goes on with its state spread over another number of partitions.
 *
 * Each entry is read once and written once. What it says is not looked at, but for the kinds of rows that share it,
 * where those are shuffled by themselves. It belongs to the partition to which a shuffle sends its rows, and each
 * operator has noted what they are shuffled by ([[EntryPlacement]]). Whether all entries are where that says, among
 * as many partitions as there were, is checked for each of them.
 *
 * Spark's own way (`StreamingCheckpointManager`) knows Spark's operators only, and metadata of operators as of
 * RocksDB with several tables. Of Spark's operators in a query it is asked where their entries belong.
 *
 * @param from
 *   the checkpoint of the query, which has been stopped
 * @param numPartitions
 *   how many there are to be
 */
class Rescaling(session: SparkSession, from: Path, numPartitions: Int) {
  private def refused(reason: String) =
    EvolutionErrors.notRescaled(from.toString, numPartitions, reason)

  private def refuse(reason: String): Nothing = throw refused(reason)

  Rescaling.check(from, numPartitions)
  private val hadoopConf = session.sessionState.newHadoopConf()

  // it means the same to tasks
  private def qualified(path: Path): Path = path.getFileSystem(hadoopConf).makeQualified(path)

  private val begun = new StoppedQuery(session, qualified(from), refused(_))
  if (begun.numPartitions == numPartitions) refuse("it has so many already")

  if (!begun.hasReadableState)
    refuse(s"its state is kept by ${begun.stateProvider}, whose files only that knows")

  private val rescaled: LoggedBatch = begun.offsets
    .inPartitions(numPartitions)
    .getOrElse(refuse(s"the settings of batch ${begun.batch} aren't known"))

  private val state = begun.state
  private val stored = new StoredOperators(state, hadoopConf)

  private val operators: Seq[MovedOperator] = {
    val all =
      try stored.all(begun.batch)
      catch { case NonFatal(error) => refuse(s"metadata in $state can't be read: $error") }
    begun.record.operators.foreach { operator =>
      if (!operator.ids.forall(id => all.exists(_.id == id)))
        refuse(s"state of ${operator.shown} is missing in $state")
    }
    all.map { operator =>
      val ours = begun.record.operators.find(_.ids.contains(operator.id))
      ours.fold(ofSpark(operator))(record => ofOurs(operator, record.shown))
    }
  }

  private def ofOurs(operator: StoredOperator, shown: String): MovedOperator = {
    val noted =
      try EntryPlacement.file(state, operator.id, hadoopConf).find().map(EntryPlacement.fromJson)
      catch {
        case NonFatal(error) => refuse(s"what is said of entries of $shown can't be read: $error")
      }
    val placement =
      noted.getOrElse(refuse(s"nothing tells where entries of $shown belong in $state"))
    placement.hindrance.foreach(why => refuse(s"of $shown, $why"))
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
      begun.offsets.settings)
    if (operator.hasColumnFamilies || !operator.stores.forall(placement(_).isKnown))
      refuse(s"Spark does not say where entries of its operator ${operator.name} belong")
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
   * Makes the checkpoint with which the query goes on, at once.
   *
   * @param into
   *   a folder that is not there yet, or is empty
   * @return
   *   over what the state of each operator is spread then
   */
  def write(into: Path): Seq[OperatorSpread] = {
    val staged = new StagedCheckpoint(session, begun.checkpoint, qualified(into))
    staged.make { folder =>
      // it is the same query: sinks know which of its batches they have
      val same = Seq("metadata", "sources", "offsets", "commits", QueryOrigin.Place)
      same.foreach(name => staged.copy(name, name))
      val moved = operators.map(move(_, staged, new Path(folder, "state")))
      val settings = begun.record.settings + (Rescaling.Partitions -> numPartitions.toString)
      new QueryRecordFile(folder, hadoopConf).write(begun.record.copy(settings = settings))
      writeLast(staged, new StreamLogs(session, folder), moved)
      operators.zip(moved).map { case (operator, stores) =>
        OperatorSpread(operator.shown, operator.partitions, stores.map(_.entries).sum)
      }
    }
  }

  /** A run has the settings of the last batch, and begins with the state that it has left. */
  private def writeLast(
      staged: StagedCheckpoint,
      logs: StreamLogs,
      moved: Seq[Seq[MovedState.Moved]]): Unit = {
    Seq("offsets", "commits").foreach(log => staged.delete(s"$log/${begun.batch}"))
    logs.begin(begun.batch, rescaled)
    val stateIds = begun.stateIds.map { _ =>
      val ofStores = moved.map(_.map(_.stateIds).transpose)
      operators.map(_.stored.id).zip(ofStores).toMap
    }
    logs.endAs(begun.batch, begun.logs, stateIds)
  }

  private def move(
      operator: MovedOperator,
      staged: StagedCheckpoint,
      into: Path): Seq[MovedState.Moved] = {
    val id = operator.stored.id
    val state = new MovedState(session, begun.stateConf, this.state, into, begun.batch + 1)
    staged.copy(s"state/$id/_metadata", s"state/$id/_metadata")
    staged.delete(s"state/$id/_metadata/metadata")
    new StoredOperators(into, hadoopConf).write(operator.stored, operator.partitions)
    operator.stored.stores.zipWithIndex.map { case (store, index) =>
      // what is known of its columns stands beside its first partition
      val first = stored.folderOf(operator.stored, store)
      staged.copy(s"state/$first/_metadata", s"state/$first/_metadata")
      val stateIds = begun.stateIds.map(_(id).map(_(index)))
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

  /** The setting that says how many partitions a query has which begins. */
  val Partitions: String = ChangelogConf.STATE_PARTITIONS.key

  /** Refuses a number that no query can have. */
  def check(checkpoint: Path, numPartitions: Int): Unit = if (numPartitions < 1) {
    throw EvolutionErrors.notRescaled(
      checkpoint.toString,
      numPartitions,
      "a query has one at least")
  }
}

/**
 * An operator whose state is spread over other partitions.
 *
 * @param shown
 *   what it is called, as EXPLAIN shows it
 * @param partitions
 *   how many it is to have
 * @param placing
 *   for a store gives for a number of partitions the one that an entry belongs to
 */
private[evolution] final case class MovedOperator(
    stored: StoredOperator,
    shown: String,
    form: EntryPlacement.Form,
    partitions: Int,
    placing: StoredStore => (Int => UnsafeRowPair => Int))

/**
 * `RESCALE CHECKPOINT 'old' INTO 'new' PARTITIONS n`: makes a checkpoint with which the query of `old`, which has been
 * stopped, goes on with its state in another number of partitions.
 */
case class RescaleCheckpoint(from: String, into: String, numPartitions: Int)
    extends LeafRunnableCommand {

  override val output: Seq[Attribute] = OperatorSpread.columns

  override def run(sparkSession: AnySession): Seq[Row] =
    new Rescaling(castToImpl(sparkSession), new Path(from), numPartitions)
      .write(new Path(into))
      .map(_.toRow)
}

/**
 * Over what the state of an operator is spread.
 *
 * @param shown
 *   the operator, as EXPLAIN shows it
 * @param entries
 *   how many it has
 */
final case class OperatorSpread(shown: String, partitions: Int, entries: Long) {
  def toRow: Row = Row(shown, partitions, entries)
}

object OperatorSpread {

  /** The columns of [[OperatorSpread.toRow]]. */
  def columns: Seq[Attribute] = Seq(
    AttributeReference("operator", StringType)(),
    AttributeReference("partitions", IntegerType)(),
    AttributeReference("entries", LongType)())
}
