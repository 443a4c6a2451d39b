// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.locks.ReentrantLock

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.SparkSession

/**
 * Lets statements that write a view take turns in this process: each meets it as the one before has
 * left it. Spark would end the query of the first when the second begins, and the first would be taken
 * for done.
 */
object ViewTurns {
  private val locks = new ConcurrentHashMap[Path, ReentrantLock]()

  /** Hands the view of that name to `write` as soon as no other statement writes it. */
  def apply[T](session: SparkSession, name: Seq[String])(write: KeptView => T): T = {
    val catalog = new ViewCatalog(session)
    val lock = of(catalog.get(name))
    lock.lockInterruptibly()
    try write(catalog.get(name))
    finally lock.unlock()
  }

  /** Whether a statement waits for another. */
  private[views] def isAwaited(view: KeptView): Boolean = of(view).hasQueuedThreads

  private def of(view: KeptView): ReentrantLock =
    locks.computeIfAbsent(view.definition.home, _ => new ReentrantLock)
}
