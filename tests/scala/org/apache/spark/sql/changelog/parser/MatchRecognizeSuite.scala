// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.parser

import scala.util.{Random, Try}

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.parser.ParseException

import org.apache.spark.sql.changelog.testing._
import org.apache.spark.sql.changelog.views.ViewSession

/** Matches of row patterns, in batch and over rows that come, change and go. */
class MatchRecognizeSuite extends AnyFunSuite with ViewSession with ErrorChecks {

  private def rows(sql: String): Seq[String] = run(sql).map(TextChangelog.format).sorted

  /** A table of one symbol, with a row per price, at equal distances of time. */
  private def ticker(prices: Seq[Int], first: String, seconds: Int): Unit = {
    val values = prices.zipWithIndex.map { case (price, at) =>
      s"('X', TIMESTAMP'$first' + INTERVAL '${at * seconds}' SECOND, $price)"
    }
    run(
      s"CREATE OR REPLACE TEMP VIEW Ticker AS SELECT * FROM VALUES ${values.mkString(", ")} AS t(symbol, rowtime, price)")
  }

  private def inTicker(clauses: String, columns: String = "*"): Seq[String] =
    rows(s"""SELECT $columns FROM Ticker MATCH_RECOGNIZE (
            |  PARTITION BY symbol ORDER BY rowtime $clauses) MR""".stripMargin)

  private def time(column: String) = s"date_format($column, 'HH:mm:ss')"

  // ---- the examples of Flink's page about pattern recognition ----

  test("a period of falling prices") {
    ticker(Seq(12, 17, 19, 21, 25, 18, 15, 14, 24, 25, 19), "2011-04-01 10:00:00", 1)
    val found = inTicker(
      """MEASURES START_ROW.rowtime AS start_tstamp, LAST(PRICE_DOWN.rowtime) AS bottom_tstamp,
        |  LAST(PRICE_UP.rowtime) AS end_tstamp
        |ONE ROW PER MATCH AFTER MATCH SKIP TO LAST PRICE_UP
        |PATTERN (START_ROW PRICE_DOWN+ PRICE_UP)
        |DEFINE
        |  PRICE_DOWN AS (LAST(PRICE_DOWN.price, 1) IS NULL AND PRICE_DOWN.price < START_ROW.price) OR
        |    PRICE_DOWN.price < LAST(PRICE_DOWN.price, 1),
        |  PRICE_UP AS PRICE_UP.price > LAST(PRICE_DOWN.price, 1)""".stripMargin,
      s"symbol, ${time("start_tstamp")}, ${time("bottom_tstamp")}, ${time("end_tstamp")}")
    assert(found == Seq("X 10:00:04 10:00:07 10:00:08"))
  }

  test("the longest periods with an average below a bound") {
    ticker(Seq(12, 17, 13, 16, 25, 2, 4, 10, 15, 25, 25, 30), "2011-04-01 10:00:00", 1)
    val found = inTicker(
      """MEASURES FIRST(A.rowtime) AS start_tstamp, LAST(A.rowtime) AS end_tstamp, AVG(A.price) AS avgPrice
        |ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A+ B)
        |DEFINE A AS AVG(A.price) < 15""".stripMargin,
      s"symbol, ${time("start_tstamp")}, ${time("end_tstamp")}, avgPrice")
    assert(found == Seq("X 10:00:00 10:00:03 14.5", "X 10:00:05 10:00:10 13.5"))
  }

  test("greedy and reluctant quantifiers") {
    ticker(Seq(10, 11, 12, 13, 14, 16), "2018-09-17 10:00:02", 1)
    def last(pattern: String) = inTicker(s"""MEASURES C.price AS lastPrice
        |ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN ($pattern)
        |DEFINE A AS A.price > 10, B AS B.price < 15, C AS C.price > 12""".stripMargin)
    assert(last("A B* C") == Seq("X 16"))
    assert(last("A B*? C") == Seq("X 13", "X 16"))
  }

  test("a time constraint") {
    ticker(Seq(20, 17, 18, 11, 14, 9, 15, 14, 24, 1, 19), "2011-04-01 10:00:00", 1200)
    val found = inTicker(
      """MEASURES C.rowtime AS dropTime, A.price - C.price AS dropDiff
        |ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A B* C) WITHIN INTERVAL '1' HOUR
        |DEFINE B AS B.price > A.price - 10, C AS C.price < A.price - 10""".stripMargin,
      s"symbol, ${time("dropTime")}, dropDiff")
    assert(found == Seq("X 13:00:00 14"))
  }

  test("one row per match, with the partition's columns first") {
    ticker(Seq(10, 12, 13, 11), "2018-09-17 10:00:02", 1)
    val found = inTicker(
      """MEASURES FIRST(A.price) AS startPrice, LAST(A.price) AS topPrice, B.price AS lastPrice
        |ONE ROW PER MATCH PATTERN (A+ B)
        |DEFINE A AS LAST(A.price, 1) IS NULL OR A.price > LAST(A.price, 1),
        |  B AS B.price < LAST(A.price)""".stripMargin)
    assert(found == Seq("X 10 13 11"))
  }

  test("where the search goes on") {
    ticker(Seq(7, 9, 10, 5, 10, 7, 14), "2018-09-17 10:00:01", 1)
    def found(skip: String, c: String) = inTicker(
      s"""MEASURES SUM(A.price) AS sumPrice, FIRST(rowtime) AS startTime, LAST(rowtime) AS endTime
         |ONE ROW PER MATCH AFTER MATCH SKIP $skip PATTERN (A+ C)
         |DEFINE A AS SUM(A.price) < 30 $c""".stripMargin,
      "sumPrice, second(startTime), second(endTime)").sortBy(_.split(' ')(1))
    // As on the page, where a row that can be an A is no C.
    val noA = ", C AS SUM(A.price) + C.price >= 30"
    val documented = Seq("26 1 4", "24 2 5", "25 3 6", "22 4 7", "17 5 7")
    assert(found("PAST LAST ROW", noA) == Seq("26 1 4", "17 5 7"))
    assert(found("TO NEXT ROW", noA) == documented)
    assert(found("TO LAST A", noA) == Seq("26 1 4", "25 3 6", "17 5 7"))
    // By the standard, the last two rows match, too.
    assert(found("PAST LAST ROW", "") == Seq("26 1 4", "17 5 7"))
    assert(found("TO NEXT ROW", "") == documented :+ "7 6 7")
    Seq("TO FIRST A", "TO LAST A", "TO A").foreach { skip =>
      checkError("CHANGELOG_ROW_PATTERN_SKIP", "variable" -> "A")(found(skip, ""))
    }
  }

  // ---- the standard beyond these examples ----

  test("SUBSET, PERMUTE, anchors, CLASSIFIER, MATCH_NUMBER and empty matches") {
    ticker(Seq(1, 2, 3, 2, 1), "2018-09-17 10:00:00", 1)
    def found(measures: String, more: String) = inTicker(s"MEASURES $measures AS m $more", "m")
    assert(
      found("SUM(U.price)", "PATTERN (A B C) SUBSET U = (A, C) DEFINE A AS true") == Seq("4"))
    assert(
      found(
        "concat(CLASSIFIER(), MATCH_NUMBER())",
        "PATTERN (PERMUTE(A, B) | C) DEFINE A AS price = 2, B AS price = 1") ==
        Seq("A1", "B3", "C2"))
    assert(found("COUNT(*)", "PATTERN (^ A+) DEFINE A AS A.price < 3") == Seq("2"))
    assert(found("COUNT(*)", "PATTERN (A+ $) DEFINE A AS A.price < 3") == Seq("2"))
    assert(found("COUNT(A.*)", "PATTERN (A*) DEFINE A AS A.price > 1") == Seq("0", "0", "3"))
    assert(found("COUNT(*)", "PATTERN (() A{2} () | A) DEFINE A AS A.price > 1") == Seq("1", "2"))
  }

  test("expressions of neighbors, of several rows, and of Spark's functions") {
    run("""CREATE OR REPLACE TEMP VIEW e AS SELECT * FROM VALUES
          |  (1, 'a', 2, map('k', 1)), (2, 'b', NULL, map('k', 2)), (3, 'c', 5, NULL) AS t(at, name, n, m)""".stripMargin)
    def found(measures: String) = rows(
      s"SELECT * FROM match_recognize(TABLE(e), 'ORDER BY at MEASURES $measures PATTERN (A B+) DEFINE A AS true')")
    val cases = Seq(
      "LAST(B.name) AS x, FIRST(name) AS y" -> "c a",
      "PREV(B.name, 2) AS x, PREV(FIRST(B.name)) AS y, NEXT(A.name) AS z" -> "a a b",
      "NEXT(B.name) AS x, coalesce(PREV(A.name), ''-'') AS y" -> "NULL -",
      "LAST(coalesce(n, 7) * 10, 1) AS x, FIRST(coalesce(B.n, 7), 5) AS y" -> "70 NULL",
      "COUNT(n) AS x, COUNT(*) AS y, SUM(B.n) AS z, MAX(B.name) AS w" -> "2 3 5 c",
      "AVG(n) AS x, MIN(coalesce(n, 0)) AS y, count_if(n > 1) AS z, stddev_pop(n) AS w" -> "3.5 0 2 1.5",
      "B.m AS x, A.m[''k''] AS y, exists(array(1, 2), i -> i = A.n) AS z" -> "NULL 1 true",
      "CAST(SUM(n) AS DECIMAL(10, 2)) / COUNT(*) AS x" -> "2.333333333333",
      "max_by(name, n) AS x, regr_count(n, at) AS y" -> "c 2")
    cases.foreach { case (measures, expected) =>
      assert(
        Try(found(measures.replace("''", "\\'"))).map(_.mkString(";")).get.startsWith(expected),
        measures)
    }
  }

  test("tables, queries, calls and several clauses in one statement") {
    run("CREATE OR REPLACE TEMP VIEW e AS SELECT * FROM VALUES (1), (2), (3) AS t(at)")
    val clauses =
      "(ORDER BY at MEASURES LAST(at) AS last PATTERN (A+) DEFINE A AS A.at < 3 -- a comment 'x\n)"
    Seq(
      s"SELECT last FROM e MATCH_RECOGNIZE $clauses",
      s"SELECT m.last FROM `e` match_recognize $clauses AS m WHERE m.last > 1",
      s"SELECT m.last FROM (SELECT * FROM e WHERE at > 0) MATCH_RECOGNIZE $clauses m",
      s"SELECT last FROM history(TABLE(SELECT 1 AS k, at FROM e), key => 'k', history_by => 'at') MATCH_RECOGNIZE $clauses",
      s"SELECT a.last FROM e MATCH_RECOGNIZE $clauses a JOIN e MATCH_RECOGNIZE $clauses b ON a.last = b.last",
      s"SELECT last FROM (SELECT last AS at FROM e MATCH_RECOGNIZE $clauses) MATCH_RECOGNIZE $clauses",
      s"WITH w AS (SELECT * FROM e MATCH_RECOGNIZE $clauses) SELECT last FROM w").foreach { sql =>
      assert(rows(sql) == Seq("2"), sql)
    }
    intercept[ParseException](run("SELECT * FROM match_recognize(TABLE(e), '') WHERE )"))
  }

  // ---- random patterns ----

  test("random patterns equal a plain matcher") {
    (1 to 60).foreach { seed =>
      val random = new Random(seed)
      val partitions = (0 until 12).map { _ =>
        Seq
          .fill(random.nextInt(8))((1 + random.nextInt(9), random.nextInt(6)))
          .scanLeft((0, 0)) { case ((at, _), (price, gap)) => (at + gap, price) }
          .tail
      }
      val values = for {
        (partition, g) <- partitions.zipWithIndex
        (at, price) <- random.shuffle(partition)
      } yield s"($g, timestamp_seconds($at), $at, $price)"
      val all = if (values.isEmpty) Seq("(0, timestamp_seconds(1), 1, 1)") else values
      run(
        s"CREATE OR REPLACE TEMP VIEW r AS SELECT * FROM VALUES ${all.mkString(", ")} AS t(g, ts, at, price)")
      val pattern = RandomPattern(random)
      val sorted = partitions.map(_.sorted)
      val expected = Try(sorted.zipWithIndex.flatMap { case (rows, g) =>
        pattern
          .matches(rows)
          .map(measures =>
            (g +: measures).map(value => if (value == null) "NULL" else value).mkString(" "))
      }.sorted)
      val sql =
        s"SELECT * FROM r MATCH_RECOGNIZE (${pattern.clauses("PARTITION BY g ORDER BY ts")})"
      withClue(s"seed $seed: $sql") {
        if (values.isEmpty) ()
        else if (expected.isFailure) checkError("CHANGELOG_ROW_PATTERN_SKIP")(run(sql))
        else assert(rows(sql) == expected.get)
      }
    }
  }

  test("ten thousand rows in a partition") {
    run("CREATE OR REPLACE TEMP VIEW many AS SELECT id, id % 7 AS n FROM range(10000)")
    def count(clauses: String) =
      rows(
        s"SELECT count(*), max(c) FROM many MATCH_RECOGNIZE (ORDER BY id MEASURES COUNT(*) AS c $clauses)")
    assert(count("PATTERN (A+ B+ C) DEFINE C AS C.n < 0") == Seq("0 NULL"))
    assert(
      count("PATTERN ((A | B)* C) DEFINE A AS A.n >= 0, C AS C.n > PREV(C.n, 3)") == Seq(
        "1 10000"))
    assert(count("PATTERN (A+ B+ C) DEFINE A AS SUM(A.n) > 0, B AS B.n = 0") == Seq("1 9997"))
    assert(
      count("AFTER MATCH SKIP TO NEXT ROW PATTERN (A B{3} C) DEFINE C AS C.n < A.n") == Seq(
        "5712 5"))
    checkError("CHANGELOG_ROW_PATTERN_TOO_LONG", "rows" -> "20") {
      run("""SELECT * FROM (SELECT * FROM many WHERE id < 20) MATCH_RECOGNIZE (ORDER BY id MEASURES COUNT(*) AS c
            |  PATTERN ((A | B)* C) DEFINE A AS SUM(A.n) >= 0, B AS SUM(B.n) >= 0, C AS C.n < 0)""".stripMargin)
    }
  }

  // ---- changing rows ----

  private lazy val oracle = new Oracle(spark)

  private val falling =
    """PARTITION BY g ORDER BY at MEASURES FIRST(id) AS a, LAST(id) AS z, SUM(DOWN.v) AS s
      |AFTER MATCH SKIP TO LAST DOWN PATTERN (START DOWN+ UP?) DEFINE DOWN AS v < PREV(v), UP AS UP.v > 5""".stripMargin

  private val queries = Seq(
    s"SELECT * FROM t MATCH_RECOGNIZE ($falling)",
    s"SELECT g, count(*) AS c, max(s) AS m FROM t MATCH_RECOGNIZE ($falling) GROUP BY g",
    """SELECT * FROM t MATCH_RECOGNIZE (ORDER BY at DESC, v MEASURES MATCH_NUMBER() AS n, COUNT(*) AS c, A.v AS v
      |PATTERN (A+? B) DEFINE A AS SUM(A.v) < 12, B AS B.v > A.v)""".stripMargin)

  test("changing rows equal batch Spark after every batch") {
    val columns = "id INT, g STRING, at INT, v INT"
    queries.zipWithIndex.foreach { case (sql, number) =>
      val random = new Random(number)
      val keyed = Feed("t", columns, Seq("id"))
      var table = Map.empty[Int, String]
      def row(id: Int) = s"$id g${random.nextInt(2)} ${random.nextInt(6)} ${random.nextInt(9)}"
      val steps = (1 to 5).map { _ =>
        val changes = random.shuffle((1 to 12).toSeq).take(1 + random.nextInt(6)).flatMap { id =>
          val next = Option.when(random.nextInt(4) > 0)(row(id))
          val old = table.get(id)
          table = next.fold(table - id)(text => table + (id -> text))
          (old, next) match {
            case (Some(before), Some(after)) => Seq(s"-U $before", s"+U $after")
            case _ => old.map("-D " + _).toSeq ++ next.map("+I " + _)
          }
        }
        Step(keyed, changes: _*)
      }
      Share.check(oracle, Program(Seq(keyed), sql, steps))
      val appended = Feed("t", columns, insertOnly = true)
      val appends = (1 to 4).map(batch =>
        Step(
          appended,
          Seq.fill(1 + random.nextInt(4))("+I " + row(batch * 10 + random.nextInt(5))): _*))
      Share.check(oracle, Program(Seq(appended), sql, appends))
    }
  }

  test("a view of matches follows inserts, updates and deletes") {
    run("CREATE TABLE prices (id INT, g STRING, at INT, v INT) USING delta")
    try {
      run(
        "INSERT INTO prices VALUES (1, 'a', 1, 9), (2, 'a', 2, 7), (3, 'b', 1, 5), (4, 'b', 2, 6)")
      val query = s"SELECT g, a, z, s FROM prices MATCH_RECOGNIZE ($falling)"
      run(s"CREATE MATERIALIZED VIEW falls USING parquet AS $query")
      assert(rows("SELECT * FROM falls") == Seq("a 1 2 7"))
      run("INSERT INTO prices VALUES (5, 'a', 3, 3), (6, 'b', 3, 1)")
      run("REFRESH MATERIALIZED VIEW falls INCREMENTAL STRICT")
      assert(rows("SELECT * FROM falls") == Seq("a 1 5 10", "b 4 6 1"))
      run("UPDATE prices SET v = 8 WHERE id = 2")
      run("DELETE FROM prices WHERE id IN (3, 4, 5)")
      run("REFRESH MATERIALIZED VIEW falls INCREMENTAL STRICT")
      assert(rows("SELECT * FROM falls") == Seq("a 1 2 8"))
      assert(run("VERIFY MATERIALIZED VIEW falls").isEmpty)
    } finally {
      run("DROP MATERIALIZED VIEW IF EXISTS falls")
      run("DROP TABLE prices")
    }
  }

  // ---- errors ----

  test("mistakes and what is not supported fail by name") {
    ticker(Seq(1, 2), "2018-09-17 10:00:00", 1)
    def fails(condition: String, clauses: String): Unit = withClue(clauses) {
      checkError(condition)(run(s"SELECT * FROM Ticker MATCH_RECOGNIZE ($clauses)"))
    }
    val (order, define) = ("ORDER BY rowtime", "DEFINE A AS true")
    val measure = "MEASURES A.price AS p"
    Seq(
      s"$measure PATTERN (A) $define",
      s"$order PATTERN (A) $define",
      s"$order $measure $define",
      s"$order $measure PATTERN (A)",
      s"$order $measure PATTERN (A $define)",
      s"$order $measure PATTERN (A |) $define",
      s"$order $measure PATTERN (A{3,2}) $define",
      s"$order $measure PATTERN (A{,}) $define",
      s"$order $measure PATTERN (A) DEFINE B AS true",
      s"$order $measure PATTERN (A) DEFINE A AS true, a AS false",
      s"$order $measure PATTERN (A) DEFINE A AS A.price",
      s"$order $measure PATTERN (A) DEFINE A AS A.prize > 1",
      s"$order $measure PATTERN (A) DEFINE A AS A.price >",
      s"$order $measure PATTERN (A) DEFINE A AS rand() > 1",
      s"$order $measure PATTERN (A) DEFINE A AS A.price IN (SELECT 1)",
      s"$order $measure PATTERN (A) SUBSET A = (A) $define",
      s"$order $measure PATTERN (A) SUBSET U = (B) $define",
      s"$order $measure PATTERN (A) WITHIN 5 $define",
      s"$order DESC $measure PATTERN (A) WITHIN INTERVAL '1' HOUR $define",
      s"ORDER BY price $measure PATTERN (A) WITHIN INTERVAL '1' HOUR $define",
      s"ORDER BY map(1, 2) $measure PATTERN (A) $define",
      s"ORDER BY rowtime LIMIT 1 $measure PATTERN (A) $define",
      s"$order MEASURES A.price PATTERN (A) $define",
      s"$order MEASURES explode(array(1)) AS p PATTERN (A) $define",
      s"$order MEASURES LAST(A.price, -1) AS p PATTERN (A) $define",
      s"$order $measure AFTER MATCH SKIP AT A PATTERN (A) $define",
      s"$order $measure AFTER MATCH SKIP TO FIRST B PATTERN (A) $define",
      s"$order $measure PATTERN (A) $define ORDER BY 1").foreach(
      fails("CHANGELOG_ROW_PATTERN_INVALID", _))
    Seq(
      s"$order $measure ALL ROWS PER MATCH PATTERN (A) $define",
      s"$order $measure PATTERN ({- A -} B) $define",
      s"$order $measure PATTERN (A{1001}) $define",
      s"$order $measure PATTERN (PERMUTE(A, B, C, D, E, F)) $define",
      s"$order MEASURES SUM(DISTINCT A.price) AS p PATTERN (A) $define",
      s"$order MEASURES SUM(A.price * B.price) AS p PATTERN (A B) $define",
      s"$order MEASURES LAST(A.price * B.price) AS p PATTERN (A B) $define",
      s"$order MEASURES SUM(PREV(A.price)) AS p PATTERN (A) $define",
      s"$order MEASURES collect_list(A.price) AS p PATTERN (A) $define").foreach(
      fails("CHANGELOG_ROW_PATTERN_NOT_SUPPORTED", _))
    checkError("CHANGELOG_ARGUMENT_INVALID", "argument" -> "clauses")(
      run("SELECT * FROM match_recognize(TABLE(Ticker))"))
  }
}

/** A random pattern, as text and as a plain matcher. */
private final case class RandomPattern(
    pattern: RandomPattern.P,
    conditions: Map[Int, RandomPattern.Condition],
    skip: String,
    seconds: Option[Int]) {
  import RandomPattern._

  private val used = pattern.variables.distinct.sorted

  def clauses(head: String): String = {
    val counts = used.flatMap { v =>
      val name = Names(v)
      Seq(s"COUNT($name.*) AS c$name", s"SUM($name.at) AS s$name", s"LAST($name.price) AS l$name")
    }
    val measures =
      Seq("MATCH_NUMBER() AS n", "FIRST(at) AS f", "CLASSIFIER() AS c", "COUNT(*) AS k") ++ counts
    val defined =
      used.flatMap(v => conditions.get(v).map(c => s"${Names(v)} AS ${c.text(Names(v))}"))
    val definitions = if (defined.isEmpty) Seq(s"${Names(used.head)} AS true") else defined
    val within = seconds.fold("")(n => s"WITHIN INTERVAL '$n' SECOND")
    s"$head MEASURES ${measures.mkString(", ")} AFTER MATCH SKIP $skip PATTERN ($pattern) $within " +
      s"DEFINE ${definitions.mkString(", ")}"
  }

  /** Returns the measures of all matches among sorted rows, each a time and a price. */
  def matches(rows: Seq[Row]): Seq[Seq[Any]] = {
    def holds(start: Int, path: Path) = {
      val at = start + path.size - 1
      at < rows.size && seconds.forall(rows(at)._1 - rows(start)._1 <= _) &&
      conditions.get(path.last).forall(_.holds(rows, start, path))
    }
    def find(p: P, start: Int, path: Path, next: Path => Option[Path]): Option[Path] = p match {
      case V(v) => Some(path :+ v).filter(holds(start, _)).flatMap(next)
      case Cat(a, b) => find(a, start, path, find(b, start, _, next))
      case Alt(a, b) => find(a, start, path, next).orElse(find(b, start, path, next))
      case Opt(a, greedy) =>
        if (greedy) find(a, start, path, next).orElse(next(path))
        else next(path).orElse(find(a, start, path, next))
      case Plus(a, greedy) =>
        find(
          a,
          start,
          path,
          after =>
            if (after.size == path.size) next(after)
            else find(Opt(p, greedy), start, after, next))
      case _ => find(p.plain, start, path, next)
    }
    def from(start: Int, number: Int): Seq[Seq[Any]] = if (start >= rows.size) Nil
    else
      find(pattern, start, Vector.empty, Some(_)) match {
        case None => from(start + 1, number)
        case Some(path) =>
          def of(v: Int) = path.indices.filter(path(_) == v).map(start + _)
          def target(found: Option[Int]) =
            found.filter(_ > start).getOrElse(throw new IllegalStateException)
          val next = skip match {
            case _ if path.isEmpty => start + 1
            case "PAST LAST ROW" => start + path.size
            case "TO NEXT ROW" => start + 1
            case to if to.startsWith("TO FIRST") =>
              target(of(Names.indexOf(to.last.toString)).headOption)
            case to => target(of(Names.indexOf(to.last.toString)).lastOption)
          }
          val measures = Seq[Any](
            number,
            if (path.isEmpty) null else rows(start)._1,
            path.lastOption.map(Names(_)).orNull,
            path.size) ++ used.flatMap { v =>
            val some = of(v).map(rows)
            if (some.isEmpty) Seq[Any](0, null, null)
            else Seq[Any](some.size, some.map(_._1).sum, some.last._2)
          }
          measures +: from(next, number + 1)
      }
    from(0, 1)
  }
}

private object RandomPattern {
  type Row = (Int, Int)
  type Path = Vector[Int]
  val Names: Seq[String] = Seq("A", "B", "C")

  sealed trait P {
    def variables: Seq[Int]
    def plain: P = this
  }
  final case class V(v: Int) extends P {
    def variables: Seq[Int] = Seq(v)
    override def toString: String = Names(v)
  }
  final case class Cat(a: P, b: P) extends P {
    def variables: Seq[Int] = a.variables ++ b.variables
    override def toString: String = s"($a $b)"
  }
  final case class Alt(a: P, b: P) extends P {
    def variables: Seq[Int] = a.variables ++ b.variables
    override def toString: String = s"($a | $b)"
  }
  final case class Opt(a: P, greedy: Boolean) extends P {
    def variables: Seq[Int] = a.variables
    override def toString: String = s"($a)?${if (greedy) "" else "?"}"
  }
  final case class Plus(a: P, greedy: Boolean) extends P {
    def variables: Seq[Int] = a.variables
    override def toString: String = s"($a)+${if (greedy) "" else "?"}"
  }

  /** From `n` up to `m` times, written in one of several ways, and matched as optional parts within each other. */
  final case class Repeated(a: P, n: Int, m: Option[Int], greedy: Boolean) extends P {
    def variables: Seq[Int] = a.variables
    override def plain: P = {
      val more = m match {
        case None => if (n == 0) Some(Opt(Plus(a, greedy), greedy)) else Some(Plus(a, greedy))
        case Some(most) =>
          (n until most).foldLeft(Option.empty[P])((inner, _) =>
            Some(Opt(inner.fold(a)(Cat(a, _)), greedy)))
      }
      val first = Seq.fill(if (m.isEmpty && n > 0) n - 1 else n)(a)
      (first ++ more).reduceRight(Cat(_, _))
    }
    override def toString: String = {
      val count = (n, m) match {
        case (0, None) => "*"
        case (_, None) => s"{$n,}"
        case (_, Some(most)) if most == n => s"{$n}"
        case (0, Some(most)) => s"{,$most}"
        case (_, Some(most)) => s"{$n, $most}"
      }
      s"($a)$count${if (greedy) "" else "?"}"
    }
  }

  /** A condition of a variable's name, and over the rows with the path up to the tested row. */
  final case class Condition(text: String => String, holds: (Seq[Row], Int, Path) => Boolean)

  private def prices(rows: Seq[Row], start: Int, path: Path, v: Int) =
    path.indices.filter(path(_) == v).map(at => rows(start + at)._2)

  private def price(rows: Seq[Row], at: Int) = rows.lift(at).map(_._2)

  private val Conditions = Seq(
    Condition(v => s"$v.price > 4", (rows, start, path) => rows(start + path.size - 1)._2 > 4),
    Condition(
      v => s"$v.price < PREV($v.price)",
      (rows, start, path) => {
        val at = start + path.size - 1
        price(rows, at - 1).exists(rows(at)._2 < _)
      }),
    Condition(
      v => s"$v.price >= NEXT(price)",
      (rows, start, path) => {
        val at = start + path.size - 1
        price(rows, at + 1).exists(rows(at)._2 >= _)
      }),
    Condition(
      v => s"SUM($v.price) < 12",
      (rows, start, path) => prices(rows, start, path, path.last).sum < 12),
    Condition(
      v => s"$v.price > FIRST(A.price)",
      (rows, start, path) =>
        prices(rows, start, path, 0).headOption.exists(rows(start + path.size - 1)._2 > _)),
    Condition(
      _ => "price <> LAST(price, 1)",
      (rows, start, path) =>
        path.size > 1 && rows(start + path.size - 1)._2 != rows(start + path.size - 2)._2),
    Condition(_ => "COUNT(*) <= 4", (_, _, path) => path.size <= 4),
    Condition(
      v => s"LAST($v.price, 1) IS NULL OR $v.price > LAST($v.price, 1)",
      (rows, start, path) => {
        val own = prices(rows, start, path, path.last)
        own.size < 2 || own.last > own(own.size - 2)
      }))

  private def draw(random: Random, depth: Int): P =
    random.nextInt(if (depth == 0) 2 else 10) match {
      case 0 | 1 => V(random.nextInt(3))
      case 2 | 3 | 4 => Cat(draw(random, depth - 1), draw(random, depth - 1))
      case 5 | 6 => Alt(draw(random, depth - 1), draw(random, depth - 1))
      case 7 => Opt(draw(random, depth - 1), random.nextBoolean())
      case 8 => Plus(draw(random, depth - 1), random.nextBoolean())
      case _ =>
        val least = random.nextInt(3)
        val most = Option.when(random.nextInt(3) > 0)(math.max(1, least + random.nextInt(3)))
        Repeated(draw(random, depth - 1), least, most, random.nextBoolean())
    }

  def apply(random: Random): RandomPattern = {
    val pattern = Cat(draw(random, 3), draw(random, 2))
    val used = pattern.variables.distinct
    // A condition that reads A's rows needs an A.
    val usable = if (used.contains(0)) Conditions else Conditions.patch(4, Nil, 1)
    val conditions =
      used.filter(_ => random.nextInt(4) > 0).map(_ -> usable(random.nextInt(usable.size))).toMap
    val variable = Names(used(random.nextInt(used.size)))
    val skips = Seq(
      "PAST LAST ROW",
      "TO NEXT ROW",
      s"TO FIRST $variable",
      s"TO LAST $variable",
      "PAST LAST ROW")
    RandomPattern(
      pattern,
      conditions,
      skips(random.nextInt(skips.size)),
      Option.when(random.nextInt(4) == 0)(random.nextInt(9)))
  }
}
