// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.cost

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.sources.tables.TableSize
import org.apache.spark.sql.changelog.views.history.{
  RefreshEstimate, RefreshReason, RefreshRecord
}

/** What refreshes are expected to take, by what earlier ones took. */
class RefreshCostsSuite extends AnyFunSuite {
  private val all = 1000L

  private def refresh(seconds: Double, changed: Option[Long], mode: String = "incremental") =
    RefreshRecord(
      started = 0,
      asOf = 0,
      finished = (seconds * 1000).toLong,
      mode = mode,
      reason = "",
      estimate = Some(RefreshEstimate(all, changed)))

  private val first = refresh(10, None).copy(reason = RefreshReason.New)

  /** Seconds of an incremental refresh and of a full one; the earlier refreshes are the oldest first. */
  private def expected(
      earlier: RefreshRecord*)(changed: Long, inAll: Long = all): (Double, Double) = {
    val estimate = new RefreshCosts(earlier.reverse)(TableSize(inAll, changed))
    (estimate.incrementalSeconds.get, estimate.fullSeconds.get)
  }

  private def near(found: (Double, Double), incremental: Double, full: Double): Unit = {
    assert(math.abs(found._1 - incremental) < 0.05 * incremental, found)
    assert(math.abs(found._2 - full) < 0.05 * full, found)
  }

  test("without a refresh that read all nothing is expected") {
    val estimate = new RefreshCosts(Seq(refresh(1, Some(10))))(TableSize(all, 10))
    assert(estimate == RefreshEstimate(all, Some(10)))
    val failed = first.copy(error = Some("failed"))
    assert(new RefreshCosts(Seq(failed))(TableSize(all, 10)).fullSeconds.isEmpty)
  }

  test("at first a byte that has changed costs what one of all does") {
    near(expected(first)(100), 1, 10)
    near(expected(first)(100, inAll = 2 * all), 1, 20)
  }

  test("small refreshes tell what each takes") {
    val small = refresh(2, Some(1))
    val slow = refresh(30, Some(1))
    near(expected(first, small, small, slow)(500), 2 + 8 * 0.5, 10)
    near(expected(first, small)(1, inAll = 2 * all), 2, 2 + 2 * 8)
  }

  test("large refreshes tell what a byte takes") {
    val small = refresh(2, Some(1))
    val (cheap, _) = expected(first, small, refresh(3, Some(500)))(500)
    assert(cheap > 3 && cheap < 3.5)
    val (dear, _) = expected(first, small, refresh(12, Some(500)))(500)
    assert(dear > 11.5 && dear < 12)
    val (unchanged, _) = expected(first, small, refresh(2.1, Some(15)))(500)
    assert(math.abs(unchanged - 6) < 0.5)
  }

  test("a full refresh tells what the next one takes, and is remembered by estimates") {
    val full = refresh(6, Some(700), mode = "full")
    near(expected(first, full)(100), 0.6, 6)
    val later =
      refresh(1, Some(1)).copy(estimate = Some(RefreshEstimate(all, Some(1), Some(1), Some(7))))
    near(expected(first +: Seq.fill(RefreshCosts.Last)(later): _*)(1), 1, 7)
  }

  test("a refresh that was slow for another reason is forgotten") {
    val slow = refresh(100, Some(500))
    assert(expected(first, slow)(500)._1 > 90)
    val later =
      refresh(6, Some(700), mode = "full").copy(estimate = Some(RefreshEstimate(all, Some(700))))
    near(expected(Seq(first, slow) ++ Seq.fill(RefreshCosts.Last)(later): _*)(500), 3, 6)
  }

  test("what another query took does not count") {
    val replaced =
      refresh(1, None, mode = "full").copy(reason = RefreshReason.Replaced)
    near(expected(first, refresh(9, Some(100)), replaced)(100), 0.1, 1)
  }
}
