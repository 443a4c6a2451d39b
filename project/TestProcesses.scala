// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

import sbt._

/** In how many processes tests are run, and how these compile and collect. */
object TestProcesses {

  /** Of two, two cores have half of their time left: a test waits as often as it computes. */
  val atOnce = 3

  /** Twice as many as at once, so that none has much to do when the others have ended. */
  private val processes = 6

  /** What a suite takes of which nothing is known yet. */
  private val unknown = 10.0

  /** With `CHANGELOG_TEST_SHARD=2/8` only the second eighth of the suites is run. */
  private val shard = sys.env.get("CHANGELOG_TEST_SHARD").map(_.split('/').map(_.toInt))

  /**
   * Suites by process, longest first.
   *
   * @param figures
   *   the seconds of each suite in an earlier run, and of how many of its tests a run takes one: see the object Share
   */
  def deal[T](suites: Seq[T], figures: File)(name: T => String): Seq[Seq[T]] = {
    val known =
      IO.readLines(figures)
        .map(_.split('\t'))
        .map { case Array(name, seconds, oneIn) => name -> (seconds.toDouble -> oneIn.toInt) }
        .toMap
    val isAll = sys.env.contains("CHANGELOG_TEST_ALL")
    def cost(suite: T): Double = {
      val (seconds, oneIn) = known.getOrElse(name(suite).split('.').last, unknown -> 1)
      if (isAll) seconds else seconds / oneIn
    }
    // the longest that is left goes to where there is the least to do
    def dealTo(number: Int, suites: Seq[T]) =
      suites
        .sortBy(suite => (-cost(suite), name(suite)))
        .foldLeft(Vector.fill(number)(Vector.empty[T])) { (dealt, suite) =>
          val least = dealt.indices.minBy(dealt(_).map(cost).sum)
          dealt.updated(least, dealt(least) :+ suite)
        }
    val ours = shard.fold(suites) { case Array(number, of) => dealTo(of, suites)(number - 1) }
    dealTo(processes, ours)
  }

  /** As few rows want it; as many do, where a suite is run over those of a scale factor of TPC-H. */
  def javaOptions: Seq[String] =
    if (sys.env.getOrElse("CHANGELOG_TPCH_SCALE", "").nonEmpty)
      Seq("-Xmx6g", "-XX:+UseParallelGC")
    else
      Seq(
        "-Xmx4g",
        // room from the beginning, else the collector runs again and again before it takes more
        "-Xms1600m",
        "-Xmn800m",
        "-XX:MetaspaceSize=300m",
        "-XX:+UseSerialGC", // short runs of ever new code: neither a busy collector ...
        "-XX:TieredStopAtLevel=1" // ... nor much optimization pays off
      )
}
