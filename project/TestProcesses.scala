// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

/** In how many processes tests are run, and how these compile and collect. */
object TestProcesses {

  /** Of two, two cores have half of their time left: a test waits as often as it computes. */
  val atOnce = 3

  /**
   * More than at once, so that none has much to do when the others have ended. Views have processes of their
   * own: what Delta and the catalog take at first they take in these only.
   */
  private val ofViews = 5
  private val ofOthers = 8

  /** The suites that take longest, the longest first: a minute and more each. */
  private val longest = Seq(
    "FollowedTables",
    "SavedView",
    "ReshapedTables",
    "Scenario",
    "Evolution",
    "ComparedTables",
    "CheaperRefresh",
    "KeptCheckpoint",
    "Fork",
    "StoredRows",
    "EveryAggregateFunction",
    "ChangelogJoin",
    "ViewNames",
    "DeltaAlteredRows",
    "Recursion",
    "DeltaViews",
    "DeltaRestoredRows",
    "Tpch",
    "Why",
    "ViewTurns",
    "DriverKill",
    "Rescaling",
    "SinkKey",
    "ViewLease",
    "ViewKill",
    "RescaledQueries",
    "RescaledView",
    "DeltaAlteredView",
    "DifferingAttempts",
    "SnapshotViewPipeline",
    "ChangelogTemporalFilter",
    "PostgresDebezium",
    "DeltaViewPipeline",
    "SinkKill",
    "SkewedJoin",
    "ChangedViewQuery",
    "TwoLevelRank",
    "EmitOnClose",
    "Snapshot",
    "DamagedCheckpoint").map(_ + "Suite")

  /** Suites by process: each begins with some of the longest. */
  def deal[T](suites: Seq[T])(name: T => String): Seq[Seq[T]] = {
    val (views, others) = suites.partition(suite => name(suite).contains(".views."))
    dealTo(ofViews, views)(name) ++ dealTo(ofOthers, others)(name)
  }

  private def dealTo[T](processes: Int, suites: Seq[T])(name: T => String): Seq[Seq[T]] = {
    val (long, others) =
      suites.sortBy(name).partition(suite => longest.contains(simple(name(suite))))
    val inOrder = long.sortBy(suite => longest.indexOf(simple(name(suite)))) ++ others
    // there and back, so that who has got a longer one gets a shorter one next
    val numbers = (0 until processes) ++ (0 until processes).reverse
    val dealt = inOrder.zipWithIndex.map { case (suite, index) =>
      numbers(index % numbers.size) -> suite
    }
    (0 until processes).map(number => dealt.collect { case (`number`, suite) => suite })
  }

  private def simple(name: String): String = name.split('.').last

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
