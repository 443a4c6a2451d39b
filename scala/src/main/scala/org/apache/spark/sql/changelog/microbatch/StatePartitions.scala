// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.microbatch

import org.apache.spark.SparkContext
import org.apache.spark.internal.config.{CORES_MAX, EXECUTOR_CORES, EXECUTOR_INSTANCES}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.config.ChangelogConf

/**
 * How many partitions a query that is started now has.
 *
 * Spark's default of 200 is meant for large shuffles, and each batch runs a task for each of them, however
 * little has changed. So unless the user has chosen a number there are as many as tasks can run at
 * once; as many as Spark would have where nobody knows, or where executors come and go.
 */
private[changelog] object StatePartitions {

  def apply(session: SparkSession): Int = {
    val conf = session.sessionState.conf
    conf
      .getConf(ChangelogConf.STATE_PARTITIONS)
      .orElse(byCores(session))
      .getOrElse(conf.numShufflePartitions)
  }

  /** The number that suits the application's cores, where the user has chosen none. */
  def byCores(session: SparkSession): Option[Int] = {
    val conf = session.sessionState.conf
    val isChosen = Seq(ChangelogConf.STATE_PARTITIONS, SQLConf.SHUFFLE_PARTITIONS)
      .exists(entry => conf.contains(entry.key))
    if (isChosen) None
    else cores(session.sparkContext).map(math.min(conf.numShufflePartitions, _))
  }

  private def cores(context: SparkContext): Option[Int] = {
    val conf = context.conf
    if (context.isLocal) Some(context.defaultParallelism)
    else if (Utils.isDynamicAllocationEnabled(conf)) None
    else
      conf.get(CORES_MAX).orElse {
        conf.get(EXECUTOR_INSTANCES).map(_ * conf.get(EXECUTOR_CORES))
      }
  }
}
