// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.{Row, SparkSession}

/**
 * `RESCALE CHECKPOINT 'old' INTO 'new' PARTITIONS n`: makes a checkpoint with which the query of `old`, which has been
 * stopped, goes on with its state in another number of partitions.
 */
case class RescaleCheckpoint(from: String, into: String, numPartitions: Int)
    extends LeafRunnableCommand {

  override val output: Seq[Attribute] = OperatorSpread.columns

  override def run(sparkSession: SparkSession): Seq[Row] =
    new Rescaling(castToImpl(sparkSession), new Path(from), numPartitions)
      .write(new Path(into))
      .map(_.toRow)
}
