// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** Functions of the user over groups of rows, called anew for each group that changes. */
class GroupedMapSuite extends AnyFunSuite with ChangelogSession {
  import GroupedMapSuite._

  private lazy val oracle = new Oracle(spark)
  private val rows = Feed("t", "k INT, v INT")
  private val others = Feed("r", "k INT, w STRING")

  private val steps = Seq(
    Step(rows, "+I 1 10", "+I 1 20", "+I 2 5", "+I NULL 1", "+I 3 7", "+I 3 7"),
    Step(rows, "-D 1 10", "+I 4 1"),
    Step(rows, "-U 2 5", "+U 2 6", "-D 3 7", "+I 5 5", "-D 5 5"),
    Step(rows, "-D 1 20", "-D NULL 1", "+I 2 1"),
    Step(rows, "+I 1 1", "-D 4 1", "-D 2 6", "-D 2 1", "-D 3 7"))

  private def program(view: SparkSession => DataFrame, sql: String = "SELECT * FROM mapped") =
    Program(Seq(rows), sql, steps, Map("mapped" -> view))

  test("a function gives one result for each group") {
    Share.check(oracle, program(totals))
  }

  test("a function gives any number of results, and the same ones several times") {
    val emitted = oracle.check(program(repeated))
    assert(emitted(1).map(_.toString).sorted == Seq("+I 4 1", "-D 1 10"), "only what changes")
  }

  test("results are grouped, joined and mapped again") {
    oracle.check(
      program(totals, "SELECT total % 3 AS m, count(*) AS c FROM mapped GROUP BY 1"),
      Variant(restart = true))
    oracle.check(
      program(totals, "SELECT a.*, b.k AS b FROM mapped a LEFT JOIN mapped b ON a.k = b.total"))
    oracle.check(program(mappedAgain))
  }

  test("a function over the rows of an aggregate, and rows in an order of their own") {
    oracle.check(program(ofCounts))
    oracle.check(program(inOrder))
  }

  test("two inputs are grouped together: a change on either side calls the function") {
    Share.check(
      oracle,
      Program(
        Seq(rows, others),
        "SELECT * FROM mapped",
        Seq(
          Step(rows, "+I 1 10", "+I 1 20", "+I 2 5"),
          Step(others, "+I 1 a", "+I 3 b", "+I NULL c"),
          Step(others, "-U 1 a", "+U 2 a", "-D 3 b"),
          Step(rows, "-D 1 10", "-D 1 20", "+I NULL 4"),
          Step(others, "-D 2 a", "-D NULL c", "+I 1 x", "+I 1 x")),
        Map("mapped" -> both)))
  }

  test("one of two inputs never changes") {
    oracle.check(program(withStatic))
  }

  test("keys that are equal, whatever their bytes") {
    val numbers = Feed("n", "x DOUBLE, v INT")
    oracle.check(
      Program(
        Seq(numbers),
        "SELECT * FROM mapped",
        Seq(
          Step(numbers, "+I 0.0 1", "+I NaN 1", "+I NULL 1"),
          Step(numbers, "+I -0.0 2", "+I NaN 5"),
          Step(numbers, "-D 0.0 1", "-D NaN 1", "-D NULL 1")),
        Map("mapped" -> ofNumbers)))
  }

  test("large groups go to disk, and come back in order") {
    val conf = Map(
      "spark.sql.windowExec.buffer.in.memory.threshold" -> "2",
      "spark.sql.windowExec.buffer.spill.threshold" -> "3")
    oracle.check(program(inOrder), Variant(conf = conf))
  }
}

/** Queries over datasets. Functions look at no order of rows that batch Spark leaves open. */
private object GroupedMapSuite {

  def totals(session: SparkSession): DataFrame = {
    import session.implicits._
    session
      .table("t")
      .as[(Option[Int], Int)]
      .groupByKey(_._1)
      .mapGroups((k, rows) => (k, rows.map(_._2).sum))
      .toDF("k", "total")
  }

  /** As many times as the row's value modulo 3. */
  def repeated(session: SparkSession): DataFrame = {
    import session.implicits._
    session
      .table("t")
      .as[(Option[Int], Int)]
      .groupByKey(_._1)
      .flatMapGroups((k, rows) => rows.flatMap(row => Seq.fill(row._2 % 3)((k, row._2))))
      .toDF("k", "v")
  }

  def mappedAgain(session: SparkSession): DataFrame = {
    import session.implicits._
    session
      .table("t")
      .as[(Option[Int], Int)]
      .groupByKey(_._1)
      .mapGroups((k, rows) => (k, rows.map(_._2).sum))
      .filter(_._2 != 7)
      .map(row => row._2 * 2)
      .groupByKey(_ % 4)
      .mapGroups((k, rows) => (k, rows.max))
      .toDF("k", "most")
  }

  def ofCounts(session: SparkSession): DataFrame = {
    import session.implicits._
    session
      .sql("SELECT k, count(*) AS c FROM t GROUP BY k")
      .as[(Option[Int], Long)]
      .groupByKey(_._2)
      .mapGroups((c, rows) => (c, rows.flatMap(_._1).toSeq.sorted.mkString(",")))
      .toDF("c", "ks")
  }

  def inOrder(session: SparkSession): DataFrame = {
    import session.implicits._
    session
      .table("t")
      .as[(Option[Int], Int)]
      .groupByKey(_._1)
      .flatMapSortedGroups($"v".desc)((k, rows) => Iterator((k, rows.map(_._2).mkString(","))))
      .toDF("k", "vs")
  }

  def both(session: SparkSession): DataFrame = {
    import session.implicits._
    val left = session.table("t").as[(Option[Int], Int)].groupByKey(_._1)
    val right = session.table("r").as[(Option[Int], String)].groupByKey(_._1)
    left
      .cogroup(right) { (k, rows, others) =>
        Iterator(
          (
            k,
            rows.map(_._2).toSeq.sorted.mkString(","),
            others.map(_._2).toSeq.sorted.mkString(",")))
      }
      .toDF("k", "vs", "ws")
  }

  def withStatic(session: SparkSession): DataFrame = {
    import session.implicits._
    val left = session.table("t").as[(Option[Int], Int)].groupByKey(_._1)
    val names = Seq[(Option[Int], String)](Some(1) -> "one", Some(9) -> "nine")
    val right = names.toDS().groupByKey(_._1)
    left
      .cogroup(right)((k, rows, names) => names.map(name => (k, name._2, rows.map(_._2).sum)))
      .toDF("k", "name", "total")
  }

  def ofNumbers(session: SparkSession): DataFrame = {
    import session.implicits._
    session
      .table("n")
      .as[(Option[Double], Int)]
      .groupByKey(_._1)
      .mapGroups((x, rows) => (x.map(_ + 0.0), rows.map(_._2).sum))
      .toDF("x", "total")
  }
}
