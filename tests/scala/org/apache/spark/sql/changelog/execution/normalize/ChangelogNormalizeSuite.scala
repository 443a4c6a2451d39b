// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.normalize

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

class ChangelogNormalizeSuite extends AnyFunSuite with ChangelogSession {
  private lazy val oracle = new Oracle(spark)
  private val feed = Feed("t", "id INT, v STRING, n INT", Seq("id"), upsert = true)
  private val sequenced = feed.copy(sequence = Seq("n"))

  private def run(feed: Feed, sql: String = "SELECT * FROM t", variant: Variant = Variant())(
      steps: Seq[String]*): Seq[Seq[String]] = {
    val program = Program(Seq(feed), sql, steps.map(changes => Step(feed, changes: _*)))
    oracle.check(program, variant).map(_.map(_.toString).sorted)
  }

  test("an update without its old row gets one") {
    assert(
      run(feed)(Seq("+I 1 a 1"), Seq("+U 1 b 1"), Seq("+I 1 c 1")) ==
        Seq(Seq("+I 1 a 1"), Seq("+U 1 b 1", "-U 1 a 1"), Seq("+U 1 c 1", "-U 1 b 1")))
  }

  test("a repeated row emits nothing") {
    assert(
      run(feed)(Seq("+I 1 a 1", "+I 2 NULL NULL"), Seq("+U 1 a 1", "+I 2 NULL NULL")) ==
        Seq(Seq("+I 1 a 1", "+I 2 NULL NULL"), Nil))
  }

  test("a delete needs the key only, and gives the row that goes") {
    assert(
      run(feed)(Seq("+I 1 a 1", "+I 2 b 2"), Seq("-D 1 NULL NULL", "-D 2 stale 9")) ==
        Seq(Seq("+I 1 a 1", "+I 2 b 2"), Seq("-D 1 a 1", "-D 2 b 2")))
  }

  test("deleting what is not there emits nothing") {
    assert(
      run(feed)(Seq("-D 1 a 1"), Seq("+I 1 a 1"), Seq("-D 1 a 1"), Seq("-D 1 a 1")) ==
        Seq(Nil, Seq("+I 1 a 1"), Seq("-D 1 a 1"), Nil))
  }

  test("a delete of what came in the same batch is matched") {
    val strict = Variant(conf = Map("spark.sql.changelog.unmatchedRetraction" -> "fail"))
    Seq(feed, sequenced).foreach { feed =>
      assert(
        run(feed, variant = strict)(Seq("+I 1 a 1", "-D 1 a 2"), Seq("+U 1 b 3", "-D 1 b 4")) ==
          Seq(Nil, Nil))
    }
    val unmatched = intercept[Exception](run(feed, variant = strict)(Seq("-D 1 a 1")))
    assert(unmatched.getMessage.contains("CHANGELOG_UNMATCHED_RETRACTION"))
  }

  test("of several changes of a key in a batch the last to arrive counts") {
    assert(
      run(feed)(
        Seq("+I 1 a 9", "+U 1 b 1", "+I 2 x 1", "-D 2 x 1", "-D 3 x 1", "+I 3 x 1"),
        Seq("-D 1 a 1", "+I 1 c 1", "+U 3 y 1", "+U 3 x 1")) ==
        Seq(Seq("+I 1 b 1", "+I 3 x 1"), Seq("+U 1 c 1", "-U 1 b 1")))
  }

  test("an update may carry its old row, before the new one") {
    assert(
      run(feed)(Seq("+I 1 a 1"), Seq("-U 1 a 1", "+U 1 b 1"), Seq("-U 1 stale 7", "+U 1 c 1")) ==
        Seq(Seq("+I 1 a 1"), Seq("+U 1 b 1", "-U 1 a 1"), Seq("+U 1 c 1", "-U 1 b 1")))
  }

  test("an update that changes the key takes the old row away") {
    assert(
      run(feed)(Seq("+I 1 a 1"), Seq("-U 1 a 1", "+U 2 a 1")) ==
        Seq(Seq("+I 1 a 1"), Seq("+I 2 a 1", "-D 1 a 1")))
  }

  test("an update that changes the key is right within one batch too") {
    assert(run(feed)(Seq("+I 1 a 1", "-U 1 a 1", "+U 2 a 1")) == Seq(Seq("+I 2 a 1")))
  }

  test("a sequence decides within a batch, whatever arrives first") {
    assert(
      run(sequenced)(Seq("+U 1 c 3", "+I 1 a 1", "+U 1 b 2", "-D 2 NULL 9", "+I 2 x 8")) ==
        Seq(Seq("+I 1 c 3")))
  }

  test("changes older than the stored row are ignored, also after a delete") {
    assert(
      run(sequenced, variant = Variant(restart = true, conf = Variant.RocksDB))(
        Seq("+I 1 a 5", "+I 2 x 5"),
        Seq("+U 1 late 4", "-D 2 NULL 6"),
        Seq("+I 2 late 5", "-D 1 NULL 3"),
        Seq("+I 2 y 7", "+U 1 b 6")) ==
        Seq(
          Seq("+I 1 a 5", "+I 2 x 5"),
          Seq("-D 2 x 5"),
          Nil,
          Seq("+I 2 y 7", "+U 1 b 6", "-U 1 a 5")))
  }

  test("a delete of an unknown key still outlives older inserts") {
    assert(
      run(sequenced)(Seq("-D 1 NULL 5"), Seq("+I 1 a 4"), Seq("+I 1 b 5")) ==
        Seq(Nil, Nil, Seq("+I 1 b 5")))
  }

  test("of equal sequences the last to arrive counts, an update's old row never") {
    assert(
      run(sequenced)(
        Seq("+U 1 b 5", "-U 1 a 5"),
        Seq("-U 1 a 5"),
        Seq("+U 1 c 5"),
        Seq("-D 1 NULL 5"),
        Seq("-U 1 c 5", "+U 1 d 5")) ==
        Seq(Seq("+I 1 b 5"), Nil, Seq("+U 1 c 5", "-U 1 b 5"), Seq("-D 1 c 5"), Seq("+I 1 d 5")))
  }

  test("without change types every row is an upsert") {
    val rows = feed.copy(insertOnly = true)
    assert(
      run(rows)(Seq("+I 1 a 1", "+I 1 b 1"), Seq("+I 1 c 1", "+I 2 d 1")) ==
        Seq(Seq("+I 1 b 1"), Seq("+I 2 d 1", "+U 1 c 1", "-U 1 b 1")))
  }

  test("aggregates above take the restored rows back") {
    val sql = "SELECT v, count(*), sum(n), min(n), max(n) FROM t GROUP BY v"
    assert(
      run(feed, sql)(
        Seq("+I 1 a 1", "+I 2 a 2"),
        Seq("+U 1 b 7"),
        Seq("-D 2 NULL NULL", "+U 1 b 8")) ==
        Seq(
          Seq("+I a 2 3 1 2"),
          Seq("+I b 1 7 7 7", "+U a 1 2 2 2", "-U a 2 3 1 2"),
          Seq("+U b 1 8 8 8", "-D a 1 2 2 2", "-U b 1 7 7 7")))
  }

  test("only the columns a query reads are kept and compared") {
    assert(
      run(feed, "SELECT id, v FROM t")(Seq("+I 1 a 1"), Seq("+U 1 a 2"), Seq("+U 1 b 2")) ==
        Seq(Seq("+I 1 a"), Nil, Seq("+U 1 b", "-U 1 a")))
  }

  test("a projection that drops the key gives plain deletes and inserts") {
    assert(
      run(feed, "SELECT v FROM t")(
        Seq("+I 1 a 1", "+I 2 a 1"),
        Seq("+U 1 b 1"),
        Seq("+U 2 b 1", "+U 1 a 1")) ==
        Seq(Seq("+I a", "+I a"), Seq("+I b", "-D a"), Nil))
  }

  test("keys of several columns and of floating point are compared as SQL does") {
    val double = Feed("t", "a DOUBLE, b STRING, v INT", Seq("a", "b"), upsert = true)
    assert(
      run(double)(
        Seq("+I NaN x 1", "+I 0.0 x 1"),
        Seq("+U NaN x 2", "-D -0.0 x 0"),
        Seq("+I -0.0 x 3")) ==
        Seq(
          Seq("+I 0.0 x 1", "+I NaN x 1"),
          Seq("+U NaN x 2", "-D 0.0 x 1", "-U NaN x 1"),
          Seq("+I 0.0 x 3")))
  }

  test("in upsert mode only new rows and deletes are sent") {
    val program = Program(
      Seq(feed),
      "SELECT * FROM t WHERE n > 0",
      Seq(
        Step(feed, "+I 1 a 1", "+I 2 b 0", "+I 3 c 1"),
        Step(feed, "+U 1 b 1", "+U 2 b 1", "+U 3 c 0"),
        Step(feed, "+U 1 b 1", "-D 2 b 1", "-D 3 c 0")))
    val emitted = oracle.check(program, Variant(mode = "upsert", key = Seq("id")))
    assert(
      emitted.map(_.map(_.toString).sorted) == Seq(
        Seq("+I 1 a 1", "+I 3 c 1"),
        Seq("+I 2 b 1", "+U 1 b 1", "-D 3 c 1"),
        Seq("-D 2 b 1")))
  }
}
