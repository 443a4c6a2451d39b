// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.api.java.function.{FilterFunction, FlatMapFunction, MapFunction}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.{DataFrame, Encoders}

import org.apache.spark.sql.changelog.testing._

/** Functions of typed datasets over rows that come, change and go. */
class CallRowFunctionsSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  import CallRowFunctionsSuite._

  private lazy val oracle = new Oracle(spark)
  private val rows = Feed("t", "k INT, v INT", Seq("k"))

  private val steps = Seq(
    Step(rows, "+I 1 10", "+I 2 5", "+I 3 7", "+I 4 NULL"),
    Step(rows, "-U 1 10", "+U 1 11", "-D 3 7"),
    Step(rows, "-U 2 5", "+U 2 6", "+I 3 7", "-U 4 NULL", "+U 4 1"),
    Step(rows, "-D 1 11", "-D 4 1", "+I 5 8"))

  private def program(view: SparkSession => DataFrame, sql: String = "SELECT * FROM mapped") =
    Program(Seq(rows), sql, steps, Map("mapped" -> view))

  Seq[(String, SparkSession => DataFrame)](
    "map" -> mapped,
    "filter" -> filtered,
    "flatMap" -> repeated,
    "map, filter, flatMap and map again" -> inTurn,
    "functions of one type after those of another" -> ofOtherTypes,
    "functions in Java" -> inJava,
    "functions over rows without types" -> untyped,
    "groups of mapped rows" -> groupsOfMapped,
    "groups by a function of mapped rows, their rows kept" -> rowsOfGroups).foreach {
    case (name, view) =>
      test(s"$name over changing rows is as in batch")(Share.check(oracle, program(view)))
  }

  test("what functions give is joined and grouped again") {
    oracle.check(program(repeated, "SELECT k, count(*) AS c FROM mapped GROUP BY k"))
    oracle.check(program(mapped, "SELECT count(*) AS c FROM mapped"))
    oracle.check(program(mapped, "SELECT a.*, b.v FROM mapped a LEFT JOIN t b ON a._1 = b.v"))
  }

  test("a row that functions make the same of as before emits nothing") {
    val emitted = oracle.check(
      Program(
        Seq(rows),
        "SELECT * FROM mapped",
        Seq(Step(rows, "+I 1 10"), Step(rows, "-U 1 10", "+U 1 11")),
        Map("mapped" -> keysOnly)))
    assert(emitted.last.isEmpty)
  }

  test("functions over rows that only come") {
    val appended = rows.copy(insertOnly = true, key = Nil)
    oracle.check(
      Program(
        Seq(appended),
        "SELECT * FROM mapped",
        Seq(Step(appended, "+I 1 10", "+I 2 5"), Step(appended, "+I 1 3")),
        Map("mapped" -> inTurn)))
  }

  test("a function over whole partitions is refused by name") {
    checkError("CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES", "consumer" -> "MapPartitions") {
      oracle.check(program(inPartitions))
    }
  }
}

private object CallRowFunctionsSuite {

  def mapped(session: SparkSession): DataFrame = {
    import session.implicits._
    session.table("t").as[(Int, Option[Int])].map(row => (row._2, s"no ${row._1}")).toDF()
  }

  def keysOnly(session: SparkSession): DataFrame = {
    import session.implicits._
    session.table("t").as[(Int, Option[Int])].map(row => row._1).toDF()
  }

  def filtered(session: SparkSession): DataFrame = {
    import session.implicits._
    session.table("t").as[(Int, Option[Int])].filter(row => row._2.exists(_ > 5)).toDF()
  }

  def repeated(session: SparkSession): DataFrame = {
    import session.implicits._
    session
      .table("t")
      .as[(Int, Option[Int])]
      .flatMap(row => row._2.map(row._1 -> _))
      .toDF("k", "v")
  }

  def inTurn(session: SparkSession): DataFrame = {
    import session.implicits._
    session
      .table("t")
      .as[(Int, Option[Int])]
      .filter(row => row._1 != 2)
      .map(row => row._2.getOrElse(0))
      .filter(_ > 3)
      .flatMap(v => Seq.fill(v % 4)(v))
      .map(_ + 1)
      .toDF("v")
  }

  def ofOtherTypes(session: SparkSession): DataFrame = {
    import session.implicits._
    session
      .table("t")
      .as[(Int, Option[Int])]
      .map(row => Pair(row._1, row._2))
      .as[(Int, Option[Int])]
      .filter(_._1 < 4)
      .map(row => row._2.map(_ * 2))
      .toDF("v")
  }

  def inJava(session: SparkSession): DataFrame = {
    val twice: MapFunction[Integer, Integer] = v => v * 2
    val large: FilterFunction[Integer] = v => v > 11
    val copies: FlatMapFunction[Integer, Integer] = v =>
      java.util.List.of[Integer](v, v).iterator()
    session
      .sql("SELECT v FROM t WHERE v IS NOT NULL")
      .as(Encoders.INT)
      .map(twice, Encoders.INT)
      .filter(large)
      .flatMap(copies, Encoders.INT)
      .toDF("v")
  }

  def untyped(session: SparkSession): DataFrame = {
    import session.implicits._
    session.table("t").filter(row => !row.isNullAt(1)).map(row => row.getInt(1) % 5).toDF("v")
  }

  def groupsOfMapped(session: SparkSession): DataFrame = {
    import session.implicits._
    session
      .table("t")
      .as[(Int, Option[Int])]
      .map(row => (row._1 % 2, row._2.getOrElse(0)))
      .groupByKey(_._1)
      .mapGroups((odd, rows) => (odd, rows.map(_._2).sum))
      .toDF("odd", "total")
  }

  def rowsOfGroups(session: SparkSession): DataFrame = {
    import session.implicits._
    session
      .table("t")
      .as[(Int, Option[Int])]
      .map(row => Pair(row._1, row._2))
      .groupByKey(pair => s"group ${pair.k % 2}")
      .count()
      .toDF("name", "c")
  }

  def inPartitions(session: SparkSession): DataFrame = {
    import session.implicits._
    session.table("t").as[(Int, Option[Int])].mapPartitions(_.map(_._1)).toDF("k")
  }
}

private final case class Pair(k: Int, v: Option[Int])
