// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.cost

import org.apache.spark.sql.changelog.sources.tables.TableSize
import org.apache.spark.sql.changelog.views.TouchedPartitions
import org.apache.spark.sql.changelog.views.history.{
  RefreshEstimate,
  RefreshReason,
  RefreshRecord
}

/**
 * Says what a refresh will take, by what earlier ones of the same query took.
 *
 * {{{
 *   incremental   fixed + perByte * bytes that have changed
 *   full          fixed + (what the last one took - fixed) * bytes in all / bytes in all then
 * }}}
 * Small refreshes tell what is fixed. A byte that has changed is at first taken for as dear as one of
 * all; refreshes in which much had changed tell better, the more the more it was. A full refresh that
 * also computes the state has that in its time. One that computes the state first, or recomputes partitions, tells nothing of others.
 *
 * Only the last refreshes count: one that was slow for another reason is forgotten after a while, and
 * what it kept from being tried is tried again.
 *
 * @param records
 *   the refreshes of a view, the newest first
 */
class RefreshCosts(records: Seq[RefreshRecord]) {
  import RefreshCosts._

  private val known: Seq[Known] = {
    val last = records.take(Last)
    val replaced = last.indexWhere(_.reason == RefreshReason.Replaced)
    val ofThisQuery = if (replaced < 0) last else last.take(replaced + 1)
    for {
      record <- ofThisQuery
      if record.succeeded && record.reason != RefreshReason.StateMissing &&
        record.mode != TouchedPartitions.Mode
      estimate <- record.estimate if estimate.bytesInAll > 0
    } yield Known(record, estimate)
  }

  /** Seconds and bytes of the last full refresh, or of what comes next to one. */
  private val full: Option[(Double, Long)] = {
    val all = known.find(_.readsAll).map(last => (last.seconds, last.inAll))
    def expected =
      known.flatMap(last => last.estimate.fullSeconds.map((_, last.inAll))).headOption
    // as after a view was made of empty tables
    def filled = known.find(last => last.changed.exists(_ >= last.inAll))
    all.orElse(expected).orElse(filled.map(last => (last.seconds, last.inAll)))
  }

  /** Bytes that had changed, and seconds. */
  private val changes: Seq[(Long, Double)] =
    known
      .filterNot(_.readsAll)
      .flatMap(last => last.changed.map((_, last.seconds)))
      .filter(_._1 > 0)

  def apply(size: TableSize): RefreshEstimate = {
    val estimate = RefreshEstimate(size.inAll, Some(size.changed))
    full.fold(estimate) { case (seconds, bytes) =>
      val fixed = math.min(seconds, fixedOf(seconds, bytes))
      val ofOne = (seconds - fixed) / bytes
      estimate.copy(
        incrementalSeconds = Some(fixed + perByte(fixed, ofOne, bytes) * size.changed),
        fullSeconds = Some(fixed + ofOne * size.inAll))
    }
  }

  /** What the median small refresh took, or what is left of larger ones. */
  private def fixedOf(seconds: Double, bytes: Long): Double = {
    val small = changes.filter(_._1 <= Small * bytes).map(_._2).sorted
    def left = changes.map { case (changed, took) => took - seconds * changed / bytes }
    small.lift(small.size / 2).orElse(left.minOption).fold(0.0)(math.max(_, 0.0))
  }

  /** The slope of a line through what larger refreshes took, which they have to pull there. */
  private def perByte(fixed: Double, ofOne: Double, bytes: Long): Double = {
    val weight = math.pow(Weight * bytes, 2)
    val large = changes.filter(_._1 > Small * bytes)
    val pulled = large.map { case (changed, took) => changed * (took - fixed) }.sum
    val weights = large.map { case (changed, _) => math.pow(changed.toDouble, 2) }.sum
    math.max(0.0, (pulled + weight * ofOne) / (weights + weight))
  }
}

object RefreshCosts {

  /** How many refreshes count. */
  val Last = 20

  /** So much of all has to have changed in a refresh that it tells as much as what is taken at first. */
  private val Weight = 0.1

  /** Of refreshes in which no more than this part has changed, time is what each takes. */
  private val Small = 0.01

  private case class Known(record: RefreshRecord, estimate: RefreshEstimate) {
    def seconds: Double = record.millis / 1000.0
    def inAll: Long = estimate.bytesInAll
    def changed: Option[Long] = estimate.bytesChanged
    def readsAll: Boolean = record.mode == "full" || changed.isEmpty
  }
}
