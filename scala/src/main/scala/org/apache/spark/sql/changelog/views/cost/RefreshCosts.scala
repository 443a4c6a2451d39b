// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.cost

import org.apache.spark.sql.changelog.sources.tables.TableSize
import org.apache.spark.sql.changelog.views.TouchedPartitions
import org.apache.spark.sql.changelog.views.history.{
  RefreshEstimate, RefreshReason, RefreshRecord
}

/**
 * RefreshCosts: estimates the costs of a refresh from earlier refreshes of the same query.
 *
 * {{{
 *   incremental   fixed + perByte * changed bytes
 *   full          fixed + (time of the last full refresh - fixed) * bytes in all / bytes in all then
 * }}}
 * Small refreshes determine the fixed part. At first, a changed byte costs as much as a byte of a full refresh.
 * Refreshes with many changes correct the cost, by weight of their changes. If a full refresh also computes the state,
 * the time includes the state. The estimate ignores refreshes that first compute the state, and refreshes of
 * partitions.
 *
 * Only recent refreshes count. After a while, the estimate thus forgets a refresh slow for another reason, and tries
 * the avoided way again.
 *
 * @param records
 *   the refreshes of a view, newest first
 */
class RefreshCosts(records: Seq[RefreshRecord]) {
  import RefreshCosts._

  private val known: Seq[PastRefresh] = {
    val last = records.take(Last)
    val replaced = last.indexWhere(_.reason == RefreshReason.Replaced)
    val ofThisQuery = if (replaced < 0) last else last.take(replaced + 1)
    for {
      record <- ofThisQuery
      if record.succeeded && record.reason != RefreshReason.StateMissing &&
        record.mode != TouchedPartitions.Mode
      estimate <- record.estimate if estimate.bytesInAll > 0
    } yield PastRefresh(record, estimate)
  }

  /** Seconds and bytes of the last full refresh, or of the most similar refresh. */
  private val full: Option[(Double, Long)] = {
    val all = known.find(_.readsAll).map(last => (last.seconds, last.inAll))
    def expected =
      known.flatMap(last => last.estimate.fullSeconds.map((_, last.inAll))).headOption
    // For example, the first refresh of a view created over empty tables.
    def filled = known.find(last => last.changed.exists(_ >= last.inAll))
    all.orElse(expected).orElse(filled.map(last => (last.seconds, last.inAll)))
  }

  /** Changed bytes and seconds of incremental refreshes. */
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

  /**
   * Returns the time of the median small refresh. Without small refreshes, subtracts the variable cost of larger
   * refreshes.
   */
  private def fixedOf(seconds: Double, bytes: Long): Double = {
    val small = changes.filter(_._1 <= Small * bytes).map(_._2).sorted
    def left = changes.map { case (changed, took) => took - seconds * changed / bytes }
    small.lift(small.size / 2).orElse(left.minOption).fold(0.0)(math.max(_, 0.0))
  }

  /** Returns the slope of a line through the larger refreshes, pulled towards the cost of a full refresh. */
  private def perByte(fixed: Double, ofOne: Double, bytes: Long): Double = {
    val weight = math.pow(Weight * bytes, 2)
    val large = changes.filter(_._1 > Small * bytes)
    val pulled = large.map { case (changed, took) => changed * (took - fixed) }.sum
    val weights = large.map { case (changed, _) => math.pow(changed.toDouble, 2) }.sum
    math.max(0.0, (pulled + weight * ofOne) / (weights + weight))
  }
}

object RefreshCosts {

  /** The number of refreshes that count. */
  val Last = 20

  /** The share of changed bytes that gives a refresh the weight of the initial assumption. */
  private val Weight = 0.1

  /** The share of changed bytes up to which only the fixed cost counts. */
  private val Small = 0.01

  private case class PastRefresh(record: RefreshRecord, estimate: RefreshEstimate) {
    def seconds: Double = record.millis / 1000.0
    def inAll: Long = estimate.bytesInAll
    def changed: Option[Long] = estimate.bytesChanged
    def readsAll: Boolean = record.mode == "full" || changed.isEmpty
  }
}
