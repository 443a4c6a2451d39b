// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.savepoints

import java.sql.Timestamp

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.types.{LongType, StringType, TimestampType}
import org.apache.spark.sql.{Row, SparkSession => AnySession}

/** What has batches that can be kept: a checkpoint, or a view. */
trait HasSavepoints {
  def savepoints(session: SparkSession): Savepoints

  /** Keeps a batch; the last one that is done, if none is named. */
  def keep(session: SparkSession, name: String, batch: Option[Long]): Savepoint
}

/** The checkpoint of a query that runs, or has run. */
case class OfCheckpoint(path: String) extends HasSavepoints {
  override def savepoints(session: SparkSession): Savepoints =
    Savepoints.ofCheckpoint(session, new Path(path))

  override def keep(session: SparkSession, name: String, batch: Option[Long]): Savepoint = {
    val forkable = ForkableCheckpoint(session, new Path(path))
    val checked = forkable.checked(batch)
    savepoints(session).create(name, checked) { folder =>
      forkable.fork(checked, Savepoint.checkpointIn(folder), noted = true)
    }
  }
}

/** A statement about savepoints, which gives those that it is about. */
sealed trait SavepointCommand extends LeafRunnableCommand {
  override val output: Seq[Attribute] = Seq(
    AttributeReference("savepoint", StringType, nullable = false)(),
    AttributeReference("batch", LongType, nullable = false)(),
    AttributeReference("created", TimestampType, nullable = false)(),
    AttributeReference("checkpoint", StringType, nullable = false)())

  final override def run(session: AnySession): Seq[Row] = runIn(castToImpl(session)).map { kept =>
    Row(kept.name, kept.batch, new Timestamp(kept.created), kept.checkpoint.toString)
  }

  protected def runIn(session: SparkSession): Seq[Savepoint]
}

/** `CREATE SAVEPOINT name OF … [AT BATCH n]`: keeps what is needed to go on from a batch. */
case class CreateSavepoint(name: String, of: HasSavepoints, batch: Option[Long])
    extends SavepointCommand {
  override protected def runIn(session: SparkSession): Seq[Savepoint] =
    Seq(of.keep(session, name, batch))
}

/** `SHOW SAVEPOINTS OF …`: the oldest first. */
case class ShowSavepoints(of: HasSavepoints) extends SavepointCommand {
  override protected def runIn(session: SparkSession): Seq[Savepoint] = of.savepoints(session).all
}

/** `DROP SAVEPOINT [IF EXISTS] name OF …`. */
case class DropSavepoint(name: String, of: HasSavepoints, ifExists: Boolean)
    extends SavepointCommand {
  override val output: Seq[Attribute] = Nil

  override protected def runIn(session: SparkSession): Seq[Savepoint] = {
    of.savepoints(session).drop(name, ifExists)
    Nil
  }
}
