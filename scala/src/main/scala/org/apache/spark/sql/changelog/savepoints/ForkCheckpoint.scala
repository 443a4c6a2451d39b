// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.savepoints

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.types.LongType
import org.apache.spark.sql.{Row, SparkSession => AnySession}

/**
 * `FORK CHECKPOINT 'from' [AT BATCH n | AT SAVEPOINT s] INTO 'new'`: makes a checkpoint with which the same
 * query goes on a second time from a batch. It gives that batch.
 */
case class ForkCheckpoint(from: String, at: Moment, into: String) extends LeafRunnableCommand {
  override val output: Seq[Attribute] =
    Seq(AttributeReference("batch", LongType, nullable = false)())

  override def run(sparkSession: AnySession): Seq[Row] = {
    val session = castToImpl(sparkSession)
    val (forkable, wanted) = at match {
      case Moment.AtSavepoint(name) =>
        val kept = OfCheckpoint(from).savepoints(session).get(name)
        (ForkableCheckpoint(session, kept.checkpoint), Some(kept.batch))
      case Moment.AtBatch(batch) => (ForkableCheckpoint(session, new Path(from)), Some(batch))
      case Moment.Newest => (ForkableCheckpoint(session, new Path(from)), None)
    }
    val batch = forkable.checked(wanted)
    forkable.fork(batch, new Path(into), noted = true)
    Seq(Row(batch))
  }
}
