// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.microbatch

import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.config.ChangelogConf

/**
 * The salts among which a query divides rows that one task would have, one for each of as many tasks as
 * work on them: none if there is one partition only.
 *
 * Rows are shuffled by a hash of their salt. So they are not just counted, but chosen such that each is in
 * another partition: 0 to 3 would leave half of four partitions empty.
 */
private[changelog] object SpreadingSalts {

  /** Those the query began with, or those of one that is started now. */
  def apply(session: SparkSession): Seq[Int] = {
    val conf = session.sessionState.conf
    conf.getConf(ChangelogConf.SPREADING_SALTS) match {
      case Some(begun) => begun.split(',').toSeq.filter(_.nonEmpty).map(_.toInt)
      case None =>
        among(AssignStateInfo.numPartitions(session), conf.getConf(ChangelogConf.SKEW_WAYS))
    }
  }

  /** As they are written down. */
  def text(session: SparkSession): String = apply(session).mkString(",")

  private[microbatch] def among(partitions: Int, ways: Int): Seq[Int] =
    if (partitions == 1) Nil
    else {
      val first = Iterator.from(0).distinctBy(partitionOf(_, partitions))
      first.take(math.min(partitions, ways)).toSeq
    }

  private def partitionOf(salt: Int, partitions: Int): Any =
    HashPartitioning(Seq(Literal(salt)), partitions).partitionIdExpression.eval()
}
