// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import scala.collection.mutable
import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** Window functions over rows up to a fixed distance, in partitions of several runs. */
class ChangelogNeighborsSuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Quick)

  private lazy val oracle = new Oracle(spark)
  private val feed = Feed("t", "g STRING, n INT, v INT")

  private val functions = Seq(
    "lead(v) OVER (PARTITION BY g ORDER BY n, v)",
    "lag(v, 2, -1) OVER (PARTITION BY g ORDER BY n DESC, v)",
    "sum(v) OVER (PARTITION BY g ORDER BY n, v ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)",
    "lead(n) OVER (ORDER BY n, v)",
    "max(v) OVER (PARTITION BY g ORDER BY n, v ROWS BETWEEN CURRENT ROW AND CURRENT ROW)")

  test("random changes of large partitions, with equal rows") {
    val random = new Random(49)
    val rows = mutable.ArrayBuffer.from(Seq.tabulate(700)(n => s"a ${3 * n} ${n % 7}"))
    val steps = Step(feed, rows.map("+I " + _).toSeq: _*) +: Seq.tabulate(8) { step =>
      val places =
        if (step % 2 == 0) Seq(random.nextInt(2100)) else Seq.fill(4)(random.nextInt(2100))
      val changes = places.flatMap { place =>
        val near = rows.filter(_.split(' ')(1).toInt >= place).take(1 + random.nextInt(3)).toSeq
        val gone = if (random.nextBoolean()) near else near.take(1)
        rows --= gone
        val come =
          Seq.fill(random.nextInt(3))(s"a ${place + random.nextInt(3)} ${random.nextInt(7)}")
        rows ++= come
        gone.map("-D " + _) ++ come.map("+I " + _)
      }
      Step(feed, changes: _*)
    } :+ Step(feed, rows.take(300).map("-D " + _).toSeq :+ "+I b 1 1": _*)
    functions.foreach { function =>
      val program = Program(Seq(feed), s"SELECT *, $function AS f FROM t", steps)
      oracle.check(program)
      oracle.check(program, Variant(restart = true, conf = Variant.RocksDB))
    }
  }

  test("a change of a large partition reads and writes a part of it") {
    val raw = new RawStream(spark, "raw", "g STRING, n INT")
    val query = new RunningChanges(
      spark.sql(
        "SELECT * FROM to_changelog(TABLE(SELECT *, lead(n) OVER (PARTITION BY g ORDER BY n) AS f FROM raw))"),
      QuickFileSystem.temporaryDirectory())
    try {
      raw.add((1 to 1000).map(n => s"a ${2 * n}"): _*)
      query.next()
      raw.add("a 1001")
      assert(
        query.next() == Seq("a 1000 1001 insert", "a 1000 1002 delete", "a 1001 1002 insert"))
      val operator = query.progress.stateOperators.head
      assert(operator.operatorName == "changelogNeighbors")
      assert(operator.customMetrics.get("numOutputRows") < 12)
      assert(operator.numRowsUpdated < 4)
    } finally query.stop()
  }
}
