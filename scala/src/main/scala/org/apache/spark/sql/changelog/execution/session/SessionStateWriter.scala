// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.session

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.execution.streaming.state.StateStore

import org.apache.spark.sql.changelog.execution.UnaryChangelogStateWriter

/** An operator whose state holds sessions that a watermark ends. */
private[execution] trait SessionStateWriter extends UnaryChangelogStateWriter {

  /** Whether changes that could reach a session that has ended come too late. */
  def dropsLate: Boolean

  /** Tells of a row's key whether it could reach a session that has ended, and counts it then. */
  protected def lateSessions(sessions: SessionState): UnsafeRow => Boolean =
    eventTimeBound.flatMap(_.late).filter(_ => dropsLate) match {
      case Some(late) =>
        val watermark = DateTimeUtils.millisToMicros(late)
        val numDropped = longMetric("numRowsDroppedByWatermark")
        key => {
          val isLate = sessions.isLate(key, watermark)
          if (isLate) numDropped += 1
          isLate
        }
      case None => _ => false
    }

  /** Removes what is kept of the sessions that no further change can reach. */
  protected def removeEnded(
      store: StateStore,
      sessions: SessionState): Iterator[SessionState.Entry] =
    eventTimeBound.flatMap(_.moved) match {
      case Some(moved) =>
        sessions.removeEnded(entriesDue(store, moved), DateTimeUtils.millisToMicros(moved))
      case None => Iterator.empty
    }
}
