// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.changelog.inference.{AnnotatedPlan, InferenceTest}
import org.apache.spark.sql.changelog.plans.{InputMode, StateTable}

class JoinInferenceSuite extends InferenceTest {

  private def declareTables(): Unit = {
    changelog("users", "uid INT, city STRING", All, key = Seq("uid"))
    changelog("orders", "oid INT, uid INT, amount INT", All, key = Seq("oid"))
    changelog("parts", "oid INT, uid INT, nr INT", All, key = Seq("uid", "nr"))
    changelog("bag", "uid INT, amount INT", All)
    appends("clicks", "uid INT, page STRING")
    appends("views", "uid INT, page STRING")
  }

  private def join(sql: String): AnnotatedPlan = {
    declareTables()
    find(infer(sql), "ChangelogJoin")
  }

  private def modeOf(sql: String): String = join(sql).mode.toString

  private val on = "ON clicks.uid = views.uid"

  test("inner and semi joins of new rows only insert, every other join takes rows back") {
    declareTables()
    Seq("JOIN", "LEFT SEMI JOIN").foreach { kind =>
      assert(
        modes(infer(s"SELECT clicks.* FROM clicks $kind views $on", Append))
          .startsWith("Join[I]"))
    }
    Seq("LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT ANTI JOIN").foreach { kind =>
      assert(modeOf(s"SELECT clicks.* FROM clicks $kind views $on") == "[I,UB,UA,D]")
    }
    assert(
      modeOf("SELECT *, uid IN (SELECT uid FROM views) AS seen FROM clicks") == "[I,UB,UA,D]")
  }

  test("operators above rows that wait for matches have the watermark later") {
    changelog("a", "id INT, ts TIMESTAMP", All, watermark = Some("ts"))
    changelog("b", "id INT, ts TIMESTAMP", All, watermark = Some("ts"))
    def waits(condition: String) = {
      val root = infer(s"SELECT * FROM a JOIN b ON a.id = b.id AND $condition")
      find(root, "ChangelogJoin").reasons.filter(_.startsWith("rows wait"))
    }
    assert(
      waits("b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR") ==
        Seq("rows wait for matches: operators above get the watermark 1.00 h later"))
    assert(waits("b.ts = a.ts").isEmpty)
    assert(waits("b.ts > DATE '2020-01-01'").isEmpty)
  }

  test("an inner join does what its inputs do") {
    assert(modeOf("SELECT * FROM clicks JOIN users ON clicks.uid = users.uid") == "[I,UB,UA,D]")
    val sums = "(SELECT uid, count(*) AS n FROM views GROUP BY uid)"
    assert(modeOf(s"SELECT * FROM clicks JOIN $sums s ON clicks.uid = s.uid") == "[I,UB,UA]")
  }

  test("a semi join only loses rows where right rows change or go") {
    assert(
      modeOf("SELECT * FROM clicks LEFT SEMI JOIN users ON clicks.uid = users.uid") == "[I,D]")
    val sums = "(SELECT count(*) AS n FROM views GROUP BY uid)"
    assert(modeOf(s"SELECT * FROM clicks LEFT SEMI JOIN $sums s ON clicks.uid = s.n") == "[I,D]")
  }

  test("old rows are left out where the join key is a key of both sides") {
    declareTables()
    val sql = "SELECT l.uid, l.city, r.city AS was FROM users l JOIN users r ON l.uid = r.uid"
    assert(modes(infer(sql, Upsert)) == "Join[I,UA,D](Source[I,UA,D]; Source[I,UA,D])")
  }

  test("old rows are left out where a key holds the join key and more") {
    declareTables()
    val sql = "SELECT parts.uid, nr, city FROM parts LEFT JOIN users ON parts.uid = users.uid"
    assert(modes(infer(sql, Upsert)) == "Join[I,UA,D](Source[I,UA,D]; Source[I,UA,D])")
  }

  test("old rows are needed where an update can change the join key, even if it holds a key") {
    declareTables()
    val byOther = "SELECT oid, city FROM orders JOIN users ON orders.uid = users.uid"
    val root = infer(byOther, Upsert)
    assert(modes(root) == "Join[I,UB,UA,D](Source[I,UB,UA,D]; Source[I,UB,UA,D])")
    assert(find(root, "ChangelogJoin").reasons.head ==
      "sends -U because an update can move a row of ChangelogJoin Inner to another join key (uid)")
    val byMore =
      "SELECT l.oid, r.amount FROM orders l JOIN orders r ON l.oid = r.oid AND l.uid = r.uid"
    assert(modes(infer(byMore, Upsert)).startsWith("Join[I,UB,UA,D]"))
  }

  test("feeds without before images are joined by key without sending old rows") {
    declareTables()
    changelog("a", "k INT, x INT", All, key = Seq("k"), input = InputMode.Upsert)
    changelog("b", "k INT, y INT", All, key = Seq("k"), input = InputMode.Upsert)
    Seq("LEFT", "RIGHT").zip(Seq("a", "b")).foreach { case (kind, kept) =>
      val root = infer(s"SELECT $kept.k, x, y FROM a $kind JOIN b ON a.k = b.k", Upsert)
      assert(modes(root) == "Join[I,UA,D](Normalize[I,UA,D]; Normalize[I,UA,D])")
    }
  }

  test("a further condition on other columns needs old rows if rows never go by themselves") {
    declareTables()
    val sums = "(SELECT uid, count(*) AS n FROM views GROUP BY uid)"
    val sql = s"SELECT l.uid, l.n FROM $sums l JOIN $sums r ON l.uid = r.uid"
    assert(modes(infer(sql, Upsert)).startsWith("Join[I,UA]"))
    val root = infer(s"$sql AND l.n > r.n", Upsert)
    assert(modes(root).startsWith("Join[I,UB,UA]"))
    assert(root.mode.toString == "[I,UA,D]")
  }

  test(
    "a side is kept as its keys allow: a row per join key, a row per key, counted or listed rows") {
    assert(
      join("SELECT oid, city FROM orders JOIN users ON orders.uid = users.uid").state == Seq(
        StateTable("left rows", Seq("uid", "oid"), "row", "unbounded"),
        StateTable("right rows", Seq("uid"), "row", "unbounded")))
    val counted = join("SELECT * FROM bag JOIN clicks ON bag.uid = clicks.uid")
    assert(counted.strategy.contains("left row count, right rows by batch"))
    assert(counted.state.map(_.value) == Seq("count", "rows"))
  }

  test("of the right side of a semi or anti join only a count per key is kept") {
    for (kind <- Seq("SEMI", "ANTI"); right <- Seq("bag", "users")) {
      val node = join(s"SELECT * FROM orders LEFT $kind JOIN $right r ON orders.uid = r.uid")
      assert(node.strategy.contains("left row by key, right key count"))
      assert(node.state.last == StateTable("right counts", Seq("uid"), "count", "unbounded"))
    }
  }

  test("padding is kept track of by the other side's rows, or per row under a condition") {
    val plain = join("SELECT * FROM orders LEFT JOIN bag ON orders.uid = bag.uid")
    assert(plain.state.map(_.value) == Seq("row", "count"))
    val conditional = join(
      "SELECT * FROM orders LEFT JOIN bag ON orders.uid = bag.uid AND orders.amount > bag.amount")
    assert(conditional.strategy.contains("left row by key with matches, right row count"))
    assert(conditional.state.map(_.value) == Seq("row, matches", "count"))
    val full = join(
      "SELECT * FROM users FULL JOIN bag ON users.uid = bag.uid AND length(city) < bag.amount")
    assert(full.state.map(_.value) == Seq("row, matches", "count"))
  }

  test("matches are not counted where there can be only one, which is at hand") {
    val node = join(
      "SELECT * FROM orders LEFT JOIN users ON orders.uid = users.uid AND oid > length(city)")
    assert(node.strategy.contains("left row by key, right one row per join key"))
  }

  test("rows that are only counted are taken back, and need no key") {
    declareTables()
    val sql = "SELECT uid, city FROM users WHERE uid IN (SELECT uid FROM orders)"
    assert(modes(infer(sql, Upsert)).startsWith("Join[I,UA,D](Source[I,UA,D]; Source[I,UB,UA,D]"))
  }

  test("where old rows are left out rows are kept by the key by which they are replaced") {
    changelog("p", "k INT, a INT, b INT, v STRING", All, key = Seq("k"))
    changelog("q", "k INT, w STRING", All, key = Seq("k"))
    val sql = "SELECT p.k, v, w FROM p LEFT JOIN q ON p.k = q.k"
    val node = find(infer(sql, Upsert), "ChangelogJoin")
    assert(node.strategy.contains("left one row per join key, right one row per join key"))
  }

  test("a semi join with a further condition counts matches per left row and keeps right rows") {
    val node = join("""SELECT * FROM orders LEFT SEMI JOIN bag
        |ON orders.uid = bag.uid AND orders.amount > bag.amount""".stripMargin)
    assert(node.strategy.contains("left row by key with matches, right row count"))
  }

  test("without equality all rows meet in one partition, and EXPLAIN says so") {
    val node = join("SELECT * FROM users JOIN bag ON users.uid > bag.amount")
    assert(node.reasons.last == "no equality between the sides: all rows meet in one partition")
    declareTables()
    val notIn = infer("SELECT * FROM orders WHERE uid NOT IN (SELECT uid FROM users)", Upsert)
    assert(modes(notIn) == "Join[I,UA,D](Source[I,UA,D]; Source[I,UA,D])")
  }

  test("an append reader refuses a join that takes rows back") {
    declareTables()
    checkRefused(
      "CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES",
      Map("kinds" -> "update and delete", "producer" -> "ChangelogJoin LeftAnti")) {
      infer(s"SELECT * FROM clicks LEFT ANTI JOIN views $on", Append)
    }
  }
}
