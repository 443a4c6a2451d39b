// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

/** In how many processes tests are run, and how these compile and collect. */
object TestProcesses {

  /** Of two, two cores have half of their time left: a test waits as often as it computes. */
  val atOnce = 3

  /** More than at once, so that none has much to do when the others have ended. */
  val inAll = 15

  /** As few rows want it; as many do, where a suite is run over those of a scale factor of TPC-H. */
  def javaOptions: Seq[String] =
    if (sys.env.getOrElse("CHANGELOG_TPCH_SCALE", "").nonEmpty)
      Seq("-Xmx6g", "-XX:+UseParallelGC")
    else
      Seq(
        "-Xmx4g",
        // room from the beginning, else the collector runs again and again before it takes more
        "-Xms1g",
        "-Xmn400m",
        "-XX:MetaspaceSize=300m",
        "-XX:+UseSerialGC", // short runs of ever new code: neither a busy collector ...
        "-XX:TieredStopAtLevel=1" // ... nor much optimization pays off
      )
}
