// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.apache.spark.sql.classic.SparkSession

/**
 * RefreshPools: the scheduler pools of concurrent refreshes. Under `spark.scheduler.mode=FAIR`, refreshes in different
 * pools share the task slots. In one pool, the first refresh would take all slots that it can use.
 *
 * Spark never removes a pool, so the pools have numbers, and the next refresh takes the lowest free number.
 */
private[views] object RefreshPools {
  private val used = mutable.BitSet.empty

  /** Runs `body` in a free pool. A pool chosen by the calling thread stays: the pool may have a share of its own. */
  def within[T](session: SparkSession)(body: => T): T = {
    val context = session.sparkContext
    if (context.getLocalProperty(SparkContext.SPARK_SCHEDULER_POOL) != null) body
    else {
      val number = take()
      context.setLocalProperty(SparkContext.SPARK_SCHEDULER_POOL, s"changelog-refresh-$number")
      try body
      finally {
        context.setLocalProperty(SparkContext.SPARK_SCHEDULER_POOL, null)
        release(number)
      }
    }
  }

  private def take(): Int = synchronized {
    val number = Iterator.from(1).filterNot(used).next()
    used += number
    number
  }

  private def release(number: Int): Unit = synchronized {
    used -= number
    ()
  }
}
