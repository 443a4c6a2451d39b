// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import java.io.File
import java.nio.file.{Files, Paths}

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.commons.io.FileUtils
import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.functions.lit

import org.apache.spark.sql.changelog.testing._

/** A query is changed, and goes on with what it has kept. */
class EvolutionSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Interpreted)

  private val t = Feed("t", "id INT, g STRING, k INT, v INT")
  private val u = Feed("u", "id INT, g STRING, w INT")
  private val keyed = Feed("keyed", "id INT, g STRING, v INT", key = Seq("id"), upsert = true)

  private def life(): QueryLife = {
    val life = new QueryLife(spark, t, u, keyed)
    life.add(t, "+I 1 a 1 10", "+I 2 a 2 NULL", "+I 3 b 1 7", "+I 4 NULL 3 5", "+I 4 NULL 3 5")
    life.add(u, "+I 1 a 10", "+I 2 b 20", "+I 3 a 30")
    life.add(keyed, "+I 1 a 1", "+I 2 a 2", "+I 3 b 3")
    life
  }

  private def more(life: QueryLife): Unit = {
    life.add(t, "-U 1 a 1 10", "+U 1 b 2 12", "-D 3 b 1 7", "+I 5 c 1 1", "+I 6 a 4 9")
    life.add(u, "-D 2 b 20", "+I 3 b 5", "+I 4 c 5")
    life.add(keyed, "-U 1 a 1", "+U 1 b 4", "-D 2 a 2", "+I 4 c 1")
  }

  private def evolution(life: QueryLife, changes: org.apache.spark.sql.DataFrame): Evolution = {
    val plan = changes.asInstanceOf[DataFrame].queryExecution.analyzed
    new Evolution(
      changes.sparkSession.asInstanceOf[SparkSession],
      new Path(life.checkpoint.toUri),
      plan)
  }

  /**
   * Runs a query, changes it, and compares with batch Spark, at once and later.
   *
   * @param kept
   *   how many nodes with state keep it
   * @param target
   *   whether the changed query's first batch is to tell what differs from the rows there are
   */
  private def check(
      first: String,
      second: String,
      kept: Int,
      conf: Map[String, String] = Map.empty,
      target: Boolean = false): Seq[StatePlan] = withClue(s"$first\n-> $second $conf:\n") {
    val query = life()
    query.run(query.changes(first, conf))
    more(query)
    query.run(query.changes(first, conf))
    assert(query.result == query.expected(first))

    val changes = query.changes(second, conf)
    val evolved = evolution(query, changes)
    val fates = evolved.operators
    assert(fates.count(_.state == "kept") == kept, fates.mkString("\n"))
    val into = query.anotherCheckpoint()
    val held = if (target) Some(heldRows(query, first)) else None
    evolved.prepare(new Path(into.toUri), held)
    query.checkpoint = into
    query.result = held.fold(new RowMultiset)(inColumns(_, query.expectedColumns(second)))
    query.run(changes)
    assert(query.result == query.expected(second))
    query.add(t, "-D 6 a 4 9", "+I 7 b 1 3")
    query.add(u, "+I 5 b 8")
    query.add(keyed, "-D 3 b 3", "-U 4 c 1", "+U 4 d 2")
    query.run(query.changes(second, conf))
    assert(query.result == query.expected(second))
    fates
  }

  private def heldRows(query: QueryLife, sql: String): DataFrame = {
    val schema = DataTypeUtils.fromAttributes(
      query.changes(sql).asInstanceOf[DataFrame].queryExecution.analyzed.output.init)
    val rows = query.result.contents.toSeq.flatMap { case (row, count) =>
      Seq.fill(count)(Row.fromSeq(row))
    }
    spark.createDataFrame(java.util.List.of(rows: _*), schema)
  }

  /** The rows of a target that has got the columns of another query: NULL, where it had none of the name. */
  private def inColumns(held: DataFrame, columns: Seq[String]): RowMultiset = {
    val values = columns.map { name =>
      if (held.columns.contains(name)) held.col(name) else lit(null).as(name)
    }
    RowMultiset.of(held.select(values: _*).collect())
  }

  private val sums = "SELECT g, sum(v) AS s FROM t GROUP BY g"
  private val joined =
    "SELECT t.g, u.w, sum(t.v) AS s FROM t JOIN u ON t.g = u.g GROUP BY t.g, u.w"

  private val pairs = Seq(
    (
      "SELECT t.id, t.v, u.w FROM t LEFT JOIN u ON t.g = u.g",
      "SELECT t.id, t.v, u.w FROM t LEFT JOIN u ON t.g = u.g WHERE t.v > 0 OR u.w IS NULL",
      0),
    (
      "SELECT id FROM t WHERE g IN (SELECT g FROM u)",
      "SELECT id, count(*) AS c FROM (SELECT id FROM t WHERE g IN (SELECT g FROM u)) GROUP BY id",
      1),
    (
      "SELECT g, min(v) AS l, max(v) AS m FROM t GROUP BY g",
      "SELECT l, max(m) AS m FROM (SELECT g, min(v) AS l, max(v) AS m FROM t GROUP BY g) GROUP BY l",
      1),
    (
      "SELECT g, count(DISTINCT v) AS c FROM t GROUP BY g",
      "SELECT c, count(*) AS n FROM (SELECT g, count(DISTINCT v) AS c FROM t GROUP BY g) GROUP BY c",
      1),
    (
      "SELECT * FROM (SELECT id, g, v, row_number() OVER (PARTITION BY g ORDER BY v DESC, id) AS r FROM t) WHERE r <= 2",
      "SELECT g, sum(v) AS s FROM (SELECT id, g, v, row_number() OVER (PARTITION BY g ORDER BY v DESC, id) AS r FROM t) WHERE r <= 2 GROUP BY g",
      0),
    (
      "SELECT id, g, v, r FROM (SELECT id, g, v, row_number() OVER (PARTITION BY g ORDER BY v DESC, id) AS r FROM t) WHERE r <= 2",
      "SELECT id, g, v, r FROM (SELECT id, g, v, row_number() OVER (PARTITION BY g ORDER BY v DESC, id) AS r FROM t) WHERE r <= 2 AND v <> 12",
      1),
    (
      "SELECT g, sum(v) AS s FROM keyed GROUP BY g",
      "SELECT g, sum(v) AS s, max(v) AS m FROM keyed GROUP BY g",
      1),
    (
      "SELECT a.g, a.s, b.c FROM (SELECT g, sum(v) AS s FROM t GROUP BY g) a JOIN (SELECT g, count(*) AS c FROM u GROUP BY g) b ON a.g = b.g",
      "SELECT a.g, a.s, b.c FROM (SELECT g, sum(v) AS s FROM t GROUP BY g) a LEFT JOIN (SELECT g, count(*) AS c FROM u GROUP BY g) b ON a.g = b.g",
      1),
    (
      "SELECT count(*) AS c, sum(v) AS s FROM t",
      "SELECT c + s AS x FROM (SELECT count(*) AS c, sum(v) AS s FROM t)",
      1))

  private val largest =
    "SELECT g, s FROM (SELECT g, sum(v) AS s FROM t GROUP BY g) ORDER BY s DESC LIMIT 1"
  private val twice =
    s"WITH a AS ($sums) SELECT a.g, b.s FROM a LEFT JOIN a b ON a.s = b.s AND a.g <> b.g"

  private val best =
    "SELECT * FROM (SELECT id, v, row_number() OVER (PARTITION BY g ORDER BY v DESC, id) AS r FROM keyed) WHERE r <= 2"
  private val matched = "SELECT k.id, k.g, k.v, u.w FROM keyed k JOIN u ON k.g = u.g"

  private val sumsOfItems =
    "SELECT HINT a.g, a.s, u.w FROM (SELECT g, sum(v) AS s FROM t GROUP BY g) a JOIN u ON a.g = u.g"

  private def skewed(hint: String): String = sumsOfItems.replace("HINT", hint)

  /** Something above a query that reads all its columns. */
  private def summed(sql: String, by: String, others: String*): String =
    s"SELECT $by, count(*) AS n${others.map(column => s", max($column) AS $column").mkString} FROM ($sql) GROUP BY $by"

  private val shares =
    "SELECT id, g, v, sum(v) OVER (PARTITION BY g) AS s, row_number() OVER (PARTITION BY g ORDER BY v, id) AS r FROM t"
  private val running = "SELECT id, g, v, sum(v) OVER (ORDER BY v, id) AS s FROM t"
  private val medians = "SELECT g, median(v) AS m FROM t GROUP BY g"
  private val several =
    "SELECT t.id, t.v, u.w, k.id AS k FROM t JOIN u ON t.g = u.g JOIN keyed k ON t.g = k.g AND k.v < u.w"

  // what keeps rows to compute something of them computes it of what it has kept
  private val replayedPairs = Seq(
    (shares, s"SELECT * FROM ($shares) WHERE s > 12", 1),
    (shares, summed(shares, "s", "id", "g", "v", "r"), 1),
    (running, s"SELECT * FROM ($running) ORDER BY s DESC, id LIMIT 2", 1),
    (medians, summed(medians, "m"), 1),
    ("SELECT median(v) AS m FROM t", "SELECT m + 1 AS m FROM (SELECT median(v) AS m FROM t)", 1),
    (
      "SELECT median(w) AS m FROM u WHERE w < 0",
      "SELECT count(m) AS m FROM (SELECT median(w) AS m FROM u WHERE w < 0)",
      1),
    (several, summed(several, "w", "id", "v", "k"), 3),
    (several, s"SELECT *, v + k AS x FROM ($several)", 3))

  private val morePairs = Seq(
    // rows of a join are spread otherwise, and what stands below it goes on
    (skewed(""), skewed("/*+ SKEW('u', 'g', 'a') */"), 1),
    (skewed("/*+ SKEW('u', 'g', 'a') */"), skewed("/*+ SKEW('u', 'g', ('a', 'b')) */"), 1),
    (skewed("/*+ SKEW('u', 'g', 'a') */"), skewed(""), 1),
    ("SELECT id, v FROM t", "SELECT id, v, k + 1 AS n FROM t", 0),
    (
      "SELECT g, count(*) AS c FROM t WHERE date_from_unix_date(v) > DATE'1970-01-06' GROUP BY g",
      "SELECT g, count(*) AS c FROM t WHERE date_from_unix_date(v) > DATE'1970-01-09' GROUP BY g",
      0),
    // what is computed once for two readers goes on with both, or is what they begin with
    (twice, s"SELECT * FROM ($twice) UNION ALL SELECT g, w FROM u", 1),
    (twice, sums, 1),
    (sums, twice, 1))

  for ((first, second, kept) <- Share.of(pairs ++ replayedPairs ++ morePairs, oneIn = 2))
    test(s"$first -> $second") {
      check(first, second, kept)
    }

  private val summedItems = s"SELECT a.g, a.s, u.w FROM ($sums) a JOIN u ON a.g = u.g"
  private val shareOfGroup = "SELECT id, sum(v) OVER (PARTITION BY g) AS s FROM keyed"
  private val onlyInT = "SELECT g, v FROM t EXCEPT ALL SELECT g, w FROM u"
  private val inBoth = "SELECT g, v FROM t INTERSECT ALL SELECT g, w FROM u"
  private val ofBoth =
    "SELECT g, sum(v) AS s FROM (SELECT g, v FROM t WHERE k > 0 UNION ALL SELECT g, w FROM u) GROUP BY g"
  private val numValues = "SELECT g, count(DISTINCT v) AS c FROM t GROUP BY g"

  /**
   * The rows of the table of what can be changed, each with queries before and after, how many of their
   * nodes keep their state, and whether any is rebuilt of sources alone.
   */
  private val documented: Map[String, Seq[(String, String, Int, Boolean)]] = Map(
    "a column computed from other columns, a filter or `HAVING` above an aggregate" -> Seq(
      (sums, sums.replace("AS s", "AS s, upper(g) AS h"), 1, false),
      (sums, s"SELECT * FROM ($sums) WHERE s > 8", 1, false),
      (sums, s"$sums HAVING sum(v) > 8", 1, false),
      (ofBoth, s"SELECT *, upper(g) AS h FROM ($ofBoth)", 1, false),
      (onlyInT, s"SELECT *, upper(g) AS h FROM ($onlyInT)", 1, false),
      (inBoth, s"SELECT *, upper(g) AS h FROM ($inBoth)", 1, false)),
    "an aggregate, join, `ORDER BY … LIMIT` or rank on top" -> Seq(
      (sums, s"SELECT s, count(*) AS c FROM ($sums) GROUP BY s", 1, false),
      (sums, s"SELECT a.g, a.s, u.w FROM ($sums) a LEFT JOIN u ON a.g = u.g", 1, false),
      (sums, largest, 1, false),
      (
        sums,
        s"SELECT g, s FROM (SELECT *, rank() OVER (PARTITION BY s ORDER BY g) AS r FROM ($sums)) WHERE r = 1",
        1,
        false)),
    "a further aggregate function" -> Seq(
      (joined, joined.replace("AS s", "AS s, count(*) AS c"), 1, false),
      (sums, sums.replace("AS s", "AS s, count(*) AS c"), 0, true)),
    "a condition that Spark moves below a join or an aggregate" -> Seq(
      (joined, s"SELECT * FROM ($joined) WHERE w > 10", 0, true),
      (summedItems, s"SELECT * FROM ($summedItems) WHERE w > 10", 1, false)),
    "a source column read for the first time" -> Seq(
      (summedItems, summedItems.replace("u.w", "u.w, u.id"), 1, false)),
    "another bound or order of a rank, another key of a join" -> Seq(
      (largest, largest.replace("LIMIT 1", "LIMIT 2"), 1, false),
      (best, best.replace("DESC", "ASC"), 1, false),
      (matched, matched.replace("k.g = u.g", "k.v = u.w"), 1, false)),
    "a further source, by `UNION ALL` or a join" -> Seq(
      (sums, s"$sums UNION ALL SELECT g, w FROM u", 1, false)),
    "another window function, `DISTINCT` on another column" -> Seq(
      (
        shareOfGroup,
        shareOfGroup.replace("AS s", "AS s, count(*) OVER (PARTITION BY g) AS c"),
        1,
        false),
      (numValues, numValues.replace("DISTINCT v", "DISTINCT k"), 0, true)),
    "a renamed column of the result; a removed column, either computed from other columns or a grouping column" -> Seq(
      (sums, sums.replace("AS s", "AS total"), 1, false),
      (joined, s"SELECT g, s FROM ($joined)", 2, false),
      (onlyInT, s"SELECT v AS x FROM ($onlyInT)", 1, false)),
    "a removed aggregate function" -> Seq(
      (s"$sums HAVING count(*) > 1", sums, 0, true),
      (joined.replace("AS s", "AS s, count(*) AS c"), joined, 1, false)),
    "a source column no longer read" -> Seq(
      (summedItems.replace("u.w", "u.w, u.id"), summedItems, 1, false)))

  for {
    (change, queries) <- documented
    (first, second, kept, fromSources) <- queries
  } test(s"$change: $first -> $second") {
    val fates = check(first, second, kept)
    assert(
      fates.exists(_.from == "the sources, from their beginning") == fromSources,
      fates.mkString("\n"))
  }

  test("each row of the documented table is tried") {
    val lines = Files
      .readAllLines(Paths.get(sys.props("spark.changelog.test.home"), "docs/changing-a-query.md"))
      .asScala
    val rows = lines.dropWhile(_ != "## Supported changes and their cost")
    val table = rows.dropWhile(!_.startsWith("|")).takeWhile(_.startsWith("|")).drop(2)
    assert(table.map(_.split('|')(1).trim).toSet == documented.keySet)
  }

  private val providers = Variant.Providers :+ ("RocksDB, by attempt" -> Variant.PerAttempt)

  for ((provider, conf) <- Share.of(providers, oneIn = 2)) test(s"state in $provider") {
    check(joined, joined.replace("AS s", "AS s, count(*) AS c"), 1, conf)
    check(
      sums,
      "SELECT s, count(*) AS c FROM (SELECT g, sum(v) AS s FROM t GROUP BY g) GROUP BY s",
      1,
      conf)
    check(shares, summed(shares, "s", "id", "g", "v", "r"), 1, conf)
    check(several, summed(several, "w", "id", "v", "k"), 3, conf)
  }

  test("a source that is read once more, apart, has been read as far as before") {
    val query = life()
    query.run(query.changes(sums))
    more(query)
    query.run(query.changes(sums))
    def both(table: String) = s"SELECT g, CAST(v AS BIGINT) AS s FROM $table UNION ALL $sums"
    def changed() = {
      val session = query.session()
      session.readStream
        .schema(s"_op STRING, ${t.columns}")
        .csv(query.folder(t).toString)
        .createOrReplaceTempView("again_changes")
      session.sql(t.read("again_changes", "_op")).createOrReplaceTempView("again")
      session.sql(s"SELECT * FROM to_changelog(TABLE(${both("again")}))")
    }
    val into = query.anotherCheckpoint()
    evolution(query, changed()).prepare(new Path(into.toUri), None)
    query.checkpoint = into
    query.result = new RowMultiset
    query.run(changed())
    assert(query.result == query.expected(both("t")))
    query.add(t, "-D 6 a 4 9", "+I 7 b 1 3")
    query.run(changed())
    assert(query.result == query.expected(both("t")))
  }

  test("what the target holds is changed, not filled anew") {
    check(sums, s"$sums HAVING sum(v) > 8", 1, target = true)
    check(sums, "SELECT g, max(v) AS s FROM t GROUP BY g", 0, target = true)
    check("SELECT id, v FROM t WHERE v > 5", "SELECT id, v FROM t WHERE v > 3", 0, target = true)
  }

  test(
    "a target that has got a column is changed, and one that has lost one, or calls it otherwise") {
    check(sums, sums.replace("AS s", "AS s, max(v) AS m"), 0, target = true)
    // which is never NULL in the query
    check(sums, sums.replace("AS s", "AS s, count(*) AS c"), 0, target = true)
    check(sums, sums.replace("AS s", "AS s, upper(g) AS h"), 1, target = true)
    check(joined, s"SELECT g, s FROM ($joined)", 2, target = true)
    check(sums, sums.replace("AS s", "AS total"), 1, target = true)
  }

  for ((provider, conf) <- Share.ofWays(Variant.Providers, "end")) {
    test(
      s"a process that ends on the way leaves the checkpoint before, or a whole one, $provider") {
      val query = life()
      val second = s"$joined HAVING sum(t.v) > 5"
      query.run(query.changes(joined, conf))
      val into = new Path(query.anotherCheckpoint().toUri)
      def prepare(): Unit =
        evolution(query, query.changes(second, conf ++ EndingFileSystem.conf)).prepare(into, None)
      val (_, numChanges) = EndingFileSystem.within(Int.MaxValue)(prepare())
      FileUtils.deleteDirectory(new File(into.toUri))
      // not where it would be tidied up in the end
      for (changes <- 0 until numChanges - 1 by math.max(
          1,
          if (Share.isAll) numChanges / 12 else numChanges / 5)) {
        assert(Try(EndingFileSystem.within(changes)(prepare())).isFailure, s"$changes changes")
        assert(!new File(into.toUri).exists)
      }
      // the query before goes on
      more(query)
      query.run(query.changes(joined, conf))
      assert(query.result == query.expected(joined))
      prepare()
      query.checkpoint = Paths.get(into.toUri)
      query.result = new RowMultiset
      query.run(query.changes(second, conf))
      assert(query.result == query.expected(second))
    }
  }

  test("what can't go on is refused, and nothing is made") {
    val query = life()
    val changes = query.changes(s"$sums HAVING sum(v) > 8")
    def refused(reason: String): Unit = {
      val into = query.anotherCheckpoint()
      val error = checkError("CHANGELOG_EVOLUTION_NOT_POSSIBLE") {
        evolution(query, changes).prepare(new Path(into.toUri), None)
      }
      assert(error.getMessageParameters.get("reason").startsWith(reason))
      assert(!Files.exists(into))
    }
    refused("no batch of the query is done")
    val running = query.start(query.changes(sums))
    running.processAllAvailable()
    refused("the query is running")
    running.stop()
    val (done, begun) =
      (query.checkpoint.resolve("offsets/0"), query.checkpoint.resolve("offsets/1"))
    Files.copy(done, begun)
    refused("batch 1 has started")
    Files.delete(begun)
    val home = new Path(query.checkpoint.toUri)
    checkError("CHANGELOG_CHECKPOINT_EXISTS") {
      evolution(query, changes).prepare(home, None)
    }
    Files.delete(query.checkpoint.resolve("changelog/plan.json"))
    checkError("CHANGELOG_QUERY_RECORD_MISSING")(evolution(query, changes))
  }

  private def refused(
      life: QueryLife,
      changes: org.apache.spark.sql.DataFrame,
      held: Option[DataFrame] = None)(reason: String): Unit = {
    val into = life.anotherCheckpoint()
    val error = checkError("CHANGELOG_EVOLUTION_NOT_POSSIBLE") {
      evolution(life, changes).prepare(new Path(into.toUri), held)
    }
    assert(error.getMessageParameters.get("reason").contains(reason), error)
    assert(!Files.exists(into))
  }

  test("nothing begins anew above a watermark") {
    val timed = Feed("timed", "id INT, g STRING, at TIMESTAMP")
    val life = new QueryLife(spark, timed)
    life.add(timed, "+I 1 a 2024-01-01T00:00:00", "+I 2 b 2024-01-01T00:10:00")
    def changes(sql: String): DataFrame = {
      val session = life.session()
      session
        .table("timed_changes")
        .withWatermark("at", "1 minute")
        .createOrReplaceTempView("timed_changes")
      session.sql(timed.read("timed_changes", "_op")).createOrReplaceTempView("timed")
      session.sql(s"SELECT * FROM to_changelog(TABLE($sql))")
    }
    val counts = "SELECT g, count(*) AS n FROM timed GROUP BY g"
    life.run(changes(counts))
    refused(life, changes(counts.replace("AS n", "AS n, max(id) AS m")))(
      "state older than the watermark is gone")
    assert(
      evolution(life, changes(counts.replace("AS n", "+ 1 AS n"))).operators.forall(_.isKept))
  }

  /** A query that has run. */
  private def begun(first: String, conf: Map[String, String] = Map.empty): QueryLife = {
    val query = life()
    query.run(query.changes(first, conf))
    query
  }

  private val rowsOfT = "from_changelog(TABLE(t_changes)) o"
  private val looked =
    s"SELECT o.id, r.w FROM $rowsOfT JOIN lookup(TABLE(SELECT * FROM u)) r ON o.g = r.g"

  test("rows that were joined by lookup are not joined once more") {
    val query = begun(looked)
    val further = looked.replace("r.w", "r.w, o.v")
    Seq(further, s"SELECT w, count(*) AS n FROM ($looked) GROUP BY w").foreach { changed =>
      refused(query, query.changes(changed))("ChangelogLookupJoin")
      refused(query, query.changes(changed))("with the current table of lookup")
    }
    val held = spark.sql("SELECT 1 AS id, 10 AS w")
    refused(query, query.changes(further), Some(held))("would start again")

    // the state of a query with lookup is not known for that of another
    val counts = s"SELECT w, count(*) AS n FROM ($looked) GROUP BY w"
    val grouped = begun(counts)
    refused(grouped, grouped.changes(s"$counts HAVING count(*) > 1"))("ChangelogLookupJoin")

    // one that is new joins what has come
    val rows = begun(s"SELECT o.id, o.g FROM $rowsOfT")
    assert(evolution(rows, rows.changes(looked)).operators.map(_.state) == Seq("rebuilt"))
  }

  test("rows that have left by ROW_TTL don't come back") {
    val counts = "SELECT /*+ ROW_TTL(t, '3 days') */ g, count(*) AS n FROM t GROUP BY g"
    val query = begun(counts)
    val most = query.changes(counts.replace("AS n", "AS n, max(v) AS m"))
    refused(query, most)("ChangelogRowTtl")
    refused(query, most)("rows deleted by ROW_TTL would return")
    val large = query.changes(s"$counts HAVING count(*) > 1")
    assert(evolution(query, large).operators.map(_.state) == Seq("kept", "kept"))

    // the hint can be left out, and rows can have it from now on
    val without = counts.replace("/*+ ROW_TTL(t, '3 days') */ ", "")
    assert(evolution(query, query.changes(without)).operators.map(_.state).head == "rebuilt")
    val plain = begun(without)
    assert(
      evolution(plain, plain.changes(counts)).operators.map(_.state).toSet ==
        Set("rebuilt", "dropped"))
  }

  test("what was forgotten by a TTL doesn't come back") {
    val conf = Map("spark.sql.changelog.state.ttl" -> "36h")
    val query = begun(sums, conf)
    refused(query, query.changes(sums.replace("AS s", "AS s, max(v) AS m"), conf))(
      "rows forgotten by a TTL would return")
    val without = query.changes(s"$sums HAVING sum(v) > 8")
    assert(evolution(query, without).operators.exists(_.state == "rebuilt"))
    val plain = begun(sums)
    assert(evolution(plain, plain.changes(sums, conf)).operators.nonEmpty)
  }

  test("rows that have met a table which is not followed don't meet it once more") {
    spark.sql("CREATE TABLE names (g STRING, name STRING) USING parquet")
    spark.sql("INSERT INTO names VALUES ('a', 'Ada'), ('b', 'Ben')")
    try {
      val named = "SELECT t.id, d.name FROM t JOIN names d ON t.g = d.g"
      val last = "SELECT id, (SELECT max(name) FROM names) AS last FROM t"
      Seq(named, last).foreach { sql =>
        val query = begun(sql)
        val further = query.changes(sql.replace("id,", "id, v,"))
        refused(query, further)("names")
        refused(query, further)("would join the current rows of")
      }
      val counts = s"SELECT name, count(*) AS n FROM ($named) GROUP BY name"
      val query = begun(counts)
      val large = query.changes(s"SELECT * FROM ($counts) WHERE n > 1")
      assert(evolution(query, large).operators.map(_.state) == Seq("kept"))
      refused(query, query.changes(counts.replace("AS n", "AS n, max(id) AS m")))("names")
      // it stands above what is kept, and rows meet it there
      val above = s"SELECT a.g, a.s, d.name FROM ($sums) a LEFT JOIN names d ON a.g = d.g"
      val joined = begun(above)
      refused(joined, joined.changes(above.replace("a.s,", "a.s, a.s + 1 AS x,")))("names")
      // one that is new, and rows that stay as they are
      val plain = begun(sums)
      assert(evolution(plain, plain.changes(above)).operators.map(_.state) == Seq("kept"))
      val values =
        "SELECT t.id, d.name FROM t JOIN VALUES ('a', 'Ada') AS d(g, name) ON t.g = d.g"
      val ofValues = begun(values)
      assert(evolution(ofValues, ofValues.changes(s"$values WHERE t.id > 1")).operators.isEmpty)
    } finally spark.sql("DROP TABLE names")
  }

  test("so it is with a table of a connector of Spark's second kind") {
    val folder = QuickFileSystem.temporaryDirectory().getPath + "/names"
    spark.sql("SELECT 'a' AS g, 'Ada' AS name").write.parquet(folder)
    val query = life()
    def changes(columns: String): DataFrame = {
      val session = query.session(Map("spark.sql.sources.useV1SourceList" -> ""))
      session.read.parquet(folder).createOrReplaceTempView("names")
      session.sql(
        s"SELECT * FROM to_changelog(TABLE(SELECT $columns FROM t JOIN names d ON t.g = d.g))")
    }
    query.run(changes("id, name"))
    refused(query, changes("id, v, name"))("would join the current rows of")
  }

  test("a target that only takes inserts can't go on") {
    val query = life()
    def changes(sql: String): DataFrame = query
      .session()
      .sql(s"SELECT * FROM to_changelog(TABLE($sql), mode => 'append')")
    val rows = "SELECT id, g FROM from_changelog(TABLE(t_changes))"
    query.run(changes(rows))
    val held = spark.sql("SELECT 1 AS id, 'a' AS g")
    refused(query, changes(s"$rows WHERE id > 1"), Some(held))("takes inserts only")
  }

  test("sources with names of their own can't go on") {
    assume(!ChangelogSession.isSpark41)
    val query = life()
    val conf = Map(
      "spark.sql.streaming.queryEvolution.enableSourceEvolution" -> "true",
      "spark.sql.streaming.offsetLog.formatVersion" -> "2")
    spark.sql(
      s"CREATE TABLE named (_op STRING, ${t.columns}) USING csv LOCATION '${query.folder(t)}'")
    try {
      def changes(columns: String): DataFrame = {
        val session = spark.newSession()
        conf.foreach { case (key, value) => session.conf.set(key, value) }
        session.sql(
          s"SELECT * FROM to_changelog(TABLE(SELECT $columns FROM from_changelog(TABLE(" +
            "SELECT * FROM STREAM named IDENTIFIED BY feed_one), '_op')))")
      }
      query.run(changes("id, v"))
      refused(query, changes("id, v, k"))("a source of the query has a name of its own")
    } finally spark.sql("DROP TABLE named")
  }
}
