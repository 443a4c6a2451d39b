// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** Window functions, computed anew for each partition that changes. */
class ReplayedWindowSuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Quick)

  private lazy val oracle = new Oracle(spark)
  private val variants = Seq(Variant(), Variant(restart = true, conf = Variant.RocksDB))
  private val bag = Feed("t", "id INT, g STRING, v INT")
  private val keyed = bag.copy(key = Seq("id"))

  private def texts(changes: Seq[Seq[Change]]): Seq[Seq[String]] =
    changes.map(_.map(_.toString))

  private def steps(feed: Feed) = Seq(
    Step(feed, "+I 1 a 10", "+I 2 a 20", "+I 3 a 20", "+I 4 b 5", "+I 5 b NULL"),
    Step(feed, "-D 2 a 20", "+I 6 c 1"),
    Step(feed, "-U 4 b 5", "+U 4 a 5", "+I 7 a 30", "-D 6 c 1"),
    Step(feed, "+I 8 NULL 1", "+I 9 b 2", "-D 9 b 2"),
    Step(feed, "-D 1 a 10", "-D 3 a 20", "-D 4 a 5", "-D 7 a 30", "-U 5 b NULL", "+U 5 b 1"))

  private def checkAll(functions: String*): Unit = {
    val calls = functions.zipWithIndex.map { case (call, index) => s"$call AS c$index" }
    val sql = s"SELECT *, ${calls.mkString(", ")} FROM t"
    Share.check(oracle, Program(Seq(bag), sql, steps(bag)), variants)
    Share.check(oracle, Program(Seq(keyed), sql, steps(keyed)), Seq(Variant()))
  }

  test("ranks") {
    checkAll(
      Seq("row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "ntile(2)")
        .map(call => s"$call OVER (PARTITION BY g ORDER BY v DESC, id)"): _*)
  }

  test("values of other rows") {
    checkAll(
      Seq(
        "lag(v)",
        "lead(v, 2, -1)",
        "nth_value(v, 2)",
        "first_value(v) IGNORE NULLS",
        "last_value(id)").map(call => s"$call OVER (PARTITION BY g ORDER BY id)"): _*)
  }

  test("aggregates over frames") {
    checkAll(
      "sum(v) OVER (PARTITION BY g)",
      "sum(v) OVER (PARTITION BY g ORDER BY v)",
      "avg(v) OVER (PARTITION BY g ORDER BY v, id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
      "count(*) OVER (PARTITION BY g ORDER BY v RANGE BETWEEN 5 PRECEDING AND 5 FOLLOWING)",
      "min(v) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)",
      "collect_list(v) OVER (PARTITION BY g ORDER BY id)")
  }

  test("windows over different partitions, over one of all rows, over expressions") {
    checkAll(
      "sum(v) OVER (PARTITION BY g)",
      "max(v) OVER (PARTITION BY id % 2)",
      "count(*) OVER ()",
      "row_number() OVER (ORDER BY id)",
      "count(*) OVER (PARTITION BY CAST(v AS DOUBLE))")
  }

  test("a change emits the rows it affects, paired by the table's key") {
    val program = Program(
      Seq(keyed),
      "SELECT id, g, sum(v) OVER (PARTITION BY g ORDER BY id) AS s FROM t",
      Seq(
        Step(keyed, "+I 1 a 1", "+I 2 a 2", "+I 3 a 3", "+I 4 b 1"),
        Step(keyed, "-U 2 a 2", "+U 2 a 5"),
        Step(keyed, "-U 1 a 1", "+U 1 b 1")))
    assert(
      texts(oracle.check(program)).tail.map(_.toSet) == Seq(
        Set("-U 2 a 3", "+U 2 a 6", "-U 3 a 6", "+U 3 a 9"),
        Set("-U 1 a 1", "+U 1 b 1", "-U 2 a 6", "+U 2 a 5", "-U 3 a 9", "+U 3 a 8") ++
          Set("-U 4 b 1", "+U 4 b 2")))
    Share.check(oracle, program, variants)
    val upsert = Variant(mode = "upsert", key = Seq("id"))
    assert(texts(oracle.check(program, upsert))(1).toSet == Set("+U 2 a 6", "+U 3 a 9"))
  }

  test("ties are settled by the other columns, in every batch and in every window") {
    val rows = for (v <- 1 to 40; id <- 1 to 3) yield s"$id a ${v % 4}"
    val program = Program(
      Seq(bag),
      """SELECT *, row_number() OVER (PARTITION BY g ORDER BY v) AS up,
        |  row_number() OVER (PARTITION BY g ORDER BY v DESC) AS down,
        |  lag(id) OVER (PARTITION BY g ORDER BY 'no order') AS before
        |FROM t""".stripMargin,
      Seq(
        Step(bag, rows.reverse.map("+I " + _): _*),
        Step(bag, "+I 9 a 9"),
        Step(bag, rows.take(50).map("-D " + _): _*)))
    Seq(Variant(), Variant(restart = true, conf = Variant.RocksDB)).foreach { variant =>
      val emitted = oracle.run(program, variant)
      val expected = rows
        .map(_.split(" a "))
        .sortBy(row => (row(1), row(0)))
        .zipWithIndex
        .map { case (row, index) => s"${row(0)} ${row(1)} ${index + 1}" }
      val actual = emitted.head.map(change => change.row).map { row =>
        s"${row.getInt(0)} ${row.getInt(2)} ${row.getInt(3)}"
      }
      assert(actual.sorted == expected.sorted)
      // the highest value comes last: where rows are counted up, only that row is new
      assert(emitted(1).map(_.row.getInt(3)).toSet.size == emitted(1).size / 2 + 1)
    }
  }

  test("an aggregate and a filter over windows, a window over an aggregate") {
    val program = Program(
      Seq(keyed),
      """SELECT r, count(*), sum(total) FROM (
        |  SELECT *, ntile(2) OVER (PARTITION BY g ORDER BY v, id) AS r,
        |    sum(v) OVER (PARTITION BY g) AS total FROM t)
        |WHERE total > 5 GROUP BY r""".stripMargin,
      steps(keyed))
    Share.check(oracle, program, variants)
    Share.check(
      oracle,
      program.copy(sql =
        "SELECT g, sum(v) AS s, sum(sum(v)) OVER (ORDER BY g) AS running FROM t GROUP BY g"),
      variants)
  }

  test("partitions of texts that a collation finds equal, and rows with such texts") {
    val names = Feed("names", "id INT, name STRING")
    val rows = "(SELECT id, name COLLATE UTF8_LCASE AS name FROM names)"
    val steps = Seq(
      Step(names, "+I 1 a", "+I 2 A", "+I 3 b"),
      Step(names, "+I 4 B", "-D 1 a"),
      Step(names, "-D 2 A", "+I 5 a"))
    Seq(
      s"SELECT id, count(*) OVER (PARTITION BY name) AS c FROM $rows",
      s"SELECT id, row_number() OVER (PARTITION BY name ORDER BY id) AS r FROM $rows",
      s"SELECT id % 2 AS odd, median(id), count(DISTINCT name) FROM $rows GROUP BY id % 2",
      s"SELECT lower(name), median(id) FROM $rows GROUP BY name")
      .foreach(sql => Share.check(oracle, Program(Seq(names), sql, steps), variants))
  }
}
