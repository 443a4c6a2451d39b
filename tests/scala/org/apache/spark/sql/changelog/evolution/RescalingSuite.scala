// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.commons.io.FileUtils
import org.json4s.JsonAST.JArray
import org.json4s.jackson.JsonMethods
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.functions.expr

import org.apache.spark.sql.changelog.testing._

/** A query goes on with its state in another number of partitions. */
class RescalingSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Interpreted)

  private val t = Feed("t", "id INT, g STRING, k INT, v INT")
  private val u = Feed("u", "id INT, g STRING, w INT")
  private val e = Feed("e", "g STRING, k INT, v INT", insertOnly = true)
  private val sums = "SELECT g, sum(v) AS s FROM t GROUP BY g"

  private def life(): QueryLife = {
    val life = new QueryLife(spark, t, u, e)
    life.add(t, "+I 1 a 1 10", "+I 2 a 2 NULL", "+I 3 b 1 7", "+I 4 NULL 3 5", "+I 4 NULL 3 5")
    life.add(u, "+I 1 a 10", "+I 2 b 20", "+I 3 a 30")
    life.add(e, "+I a 1 10", "+I a 2 NULL", "+I b 1 7", "+I NULL 3 5", "+I a 3 10", "+I b 2 5")
    life
  }

  private val later = Seq(
    Seq("-U 1 a 1 10", "+U 1 b 2 12", "-D 3 b 1 7", "+I 5 c 1 1", "+I 6 A 4 9"),
    Seq("-D 6 A 4 9", "+I 7 B 1 3", "+I 8 a 2 10", "+I 9 c 7 10"),
    Seq("-D 7 B 1 3", "-D 4 NULL 3 5", "+I 3 b 1 7"))

  /** Values that a group has, or has under another condition, among others. */
  private val laterEvents = Seq(
    Seq("+I a 2 10", "+I b 3 7", "+I a 1 9", "+I NULL 1 5"),
    Seq("+I a 3 9", "+I b 1 5", "+I b 2 8", "+I NULL 2 NULL"),
    Seq("+I b 3 8", "+I a 1 5", "+I a 2 9", "+I c 3 5"))

  private def rescale(life: QueryLife, partitions: Int): Unit = {
    val into = life.anotherCheckpoint()
    spark
      .sql(s"RESCALE CHECKPOINT '${life.checkpoint}' INTO '$into' PARTITIONS $partitions")
      .collect()
    life.checkpoint = into
  }

  /** Runs a query, and between runs lets it have other numbers of partitions. */
  private def check(sql: String, conf: Map[String, String] = Map.empty): QueryLife = {
    val query = life()
    query.run(query.changes(sql, conf))
    assert(query.result == query.expected(sql))
    for (((partitions, changes), events) <- Seq(5, 1, 3).zip(later).zip(laterEvents)) {
      rescale(query, partitions)
      query.add(t, changes: _*)
      query.add(e, events: _*)
      query.run(query.changes(sql, conf))
      assert(query.result == query.expected(sql), s"in $partitions partitions")
    }
    query
  }

  private def filesOf(folder: Path): Map[String, Seq[Byte]] = {
    val files = Files.walk(folder)
    try
      files
        .iterator()
        .asScala
        .filter(Files.isRegularFile(_))
        .map(file => folder.relativize(file).toString -> Files.readAllBytes(file).toSeq)
        .toMap
    finally files.close()
  }

  test("values that are spread over partitions") {
    val split = Map("spark.sql.changelog.aggregate.distinctSplit.enabled" -> "true")
    val queries = Seq(
      "SELECT g, count(DISTINCT v) AS c FROM t GROUP BY g",
      "SELECT count(DISTINCT v) AS c FROM t",
      "SELECT g, count(DISTINCT v) AS c, sum(DISTINCT k) AS s, min(id) AS l FROM t GROUP BY g",
      "SELECT g, count(DISTINCT v, k) AS c, count(DISTINCT CAST(k AS STRING)) AS s FROM t GROUP BY g",
      "SELECT k, count(DISTINCT g COLLATE UTF8_LCASE) AS c FROM t GROUP BY k")
    Share.of(queries, oneIn = 2).foreach(sql => withClue(sql)(check(sql, split)))
  }

  for ((provider, conf) <- Variant.Providers)
    test(s"values of DISTINCT with several FILTERs, spread over partitions, state in $provider") {
      val split = conf + ("spark.sql.changelog.aggregate.distinctSplit.enabled" -> "true")
      val ofGroups =
        "SELECT g, count(DISTINCT v) AS a, count(DISTINCT v) FILTER (WHERE k > 1) AS b, " +
          "sum(DISTINCT v) FILTER (WHERE k = 3) AS c FROM e GROUP BY g"
      check(ofGroups, split)
      // also where values are told apart before they are shuffled, and where their entries are stamped
      check(ofGroups, split + ("spark.sql.changelog.twoPhase.enabled" -> "false"))
      check(ofGroups, split + ("spark.sql.changelog.state.ttl" -> "1h"))
      check(
        "SELECT count(DISTINCT v) FILTER (WHERE k > 1) AS a, count(DISTINCT v) FILTER (WHERE k < 3) AS b, " +
          "count(DISTINCT g) AS c, count(DISTINCT g) FILTER (WHERE v > 7) AS d, " +
          "count(DISTINCT k, g) AS e, sum(v) AS s FROM e",
        split)
    }

  test("keys that are texts with a collation, times, numbers and rows") {
    val queries = Seq(
      "SELECT g COLLATE UTF8_LCASE AS c, sum(v) AS s FROM t GROUP BY g COLLATE UTF8_LCASE",
      "SELECT lower(min(g)) AS l, count(*) AS c, k FROM (SELECT g COLLATE UNICODE_CI AS g, k FROM t) GROUP BY g, k",
      "SELECT t.id, u.w FROM t JOIN u ON t.g COLLATE UTF8_LCASE = u.g COLLATE UTF8_LCASE",
      "SELECT id, v FROM (SELECT id, v, row_number() OVER (PARTITION BY g COLLATE UTF8_LCASE ORDER BY v, id) AS r FROM t) WHERE r <= 2",
      "SELECT id, sum(v) OVER (PARTITION BY g COLLATE UTF8_LCASE) AS s FROM t",
      "SELECT sum(v) AS s, CAST(k AS DOUBLE) / 3 AS d FROM t GROUP BY CAST(k AS DOUBLE) / 3",
      "SELECT sum(v) AS s, st FROM (SELECT v, struct(g, k) AS st FROM t) GROUP BY st",
      "SELECT count(*) AS c, a FROM (SELECT array(k, id) AS a FROM t) GROUP BY a",
      "SELECT count(*) AS c, at FROM (SELECT timestamp_seconds(k) AS at FROM t) GROUP BY at")
    Share.of(queries, oneIn = 3).foreach(sql => withClue(sql)(check(sql)))
  }

  test("entries that nothing changes for long still go") {
    check(sums, Map("spark.sql.changelog.state.ttl" -> "1h"))
  }

  for ((provider, conf) <- Variant.Providers) test(s"state in $provider, with checksums") {
    check(sums, conf + ("spark.sql.streaming.stateStore.rowChecksum.enabled" -> "true"))
    check(
      "SELECT t.id, u.w FROM t LEFT JOIN u ON t.g = u.g",
      conf + ("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled" -> "true"))
  }

  test("the number of partitions is the new one, and stays") {
    val query = check(sums)
    val session = spark.newSession()
    val metadata = session.read.format("state-metadata").load(query.checkpoint.toString)
    assert(metadata.select("numPartitions").head().getInt(0) == 3)
    val log = Files.readString(query.checkpoint.resolve("offsets/3"))
    assert(log.contains(""""spark.sql.shuffle.partitions":"3""""), log)
    val plan = Files.readString(query.checkpoint.resolve("changelog/plan.json"))
    assert(plan.contains(""""spark.sql.changelog.state.partitions" : "3""""), plan)
  }

  test("batches go on from the last one, as those of the same query") {
    val query = life()
    query.run(query.changes(sums))
    val identity = Files.readString(query.checkpoint.resolve("metadata"))
    val before = filesOf(query.checkpoint)
    val old = query.checkpoint
    rescale(query, 5)
    assert(filesOf(old) == before)
    assert(Files.readString(query.checkpoint.resolve("metadata")) == identity)
    query.add(t, later.head: _*)
    query.run(query.changes(sums))
    assert(Files.exists(query.checkpoint.resolve("commits/1")))
  }

  test("operators of Spark's go along") {
    assume(
      !ChangelogSession.isSpark41,
      "Spark 4.1 does not say by what rows of its own operators are shuffled")
    val query = life()
    def run(): Unit = {
      val session = query.session()
      val raw = session.table("t_changes")
      raw
        .withColumn("at", expr("timestamp_seconds(id)"))
        .withWatermark("at", "1 hour")
        .dropDuplicates("id", "at")
        .createOrReplaceTempView("first")
      val other = session
        .table("u_changes")
        .selectExpr("id AS other", "g AS h", "w", "timestamp_seconds(id) AS then")
        .withWatermark("then", "1 hour")
      session
        .table("first")
        .join(other, expr("g = h AND at <= then + INTERVAL 1 HOUR"))
        .selectExpr("id", "w", "k")
        .createOrReplaceTempView("pairs")
      query.run(
        session.sql("SELECT * FROM to_changelog(TABLE(SELECT k, count(*) AS c, sum(w) AS s " +
          "FROM from_changelog(TABLE(pairs)) GROUP BY k))"))
    }
    run()
    Seq(5, 3).zip(later).foreach { case (partitions, changes) =>
      rescale(query, partitions)
      query.add(t, changes.filter(_.startsWith("+I")): _*)
      query.add(u, s"+I ${10 + partitions} c 1")
      run()
    }
    assert(query.result == RowMultiset.of(plainPairs(query).collect()))
  }

  /** The same without streams. */
  private def plainPairs(query: QueryLife): DataFrame = {
    val session = spark.newSession()
    def read(feed: Feed) =
      session.read.schema(s"_op STRING, ${feed.columns}").csv(query.folder(feed).toString)
    read(t).dropDuplicates("id").createOrReplaceTempView("a")
    read(u).createOrReplaceTempView("b")
    session.sql("SELECT k, count(*) AS c, sum(w) AS s FROM a JOIN b ON a.g = b.g GROUP BY k")
  }

  test("wherever the process ends, there is the old checkpoint, or the new one too") {
    val query = life()
    query.run(query.changes(sums))
    val session = spark.newSession()
    EndingFileSystem.conf.foreach { case (key, value) => session.conf.set(key, value) }
    val into = query.anotherCheckpoint()
    def rescale(): Unit = {
      session.sql(s"RESCALE CHECKPOINT '${query.checkpoint}' INTO '$into' PARTITIONS 5")
      ()
    }
    val (_, numChanges) = EndingFileSystem.within(Int.MaxValue)(rescale())
    FileUtils.deleteDirectory(into.toFile)
    // not where it would be tidied up in the end
    val points = if (Share.isAll) 12 else 5
    for (changes <- 0 until numChanges - 1 by math.max(1, numChanges / points)) {
      assert(Try(EndingFileSystem.within(changes)(rescale())).isFailure, s"$changes changes")
      assert(!Files.exists(into))
    }
    query.add(t, later.head: _*)
    query.run(query.changes(sums))
    assert(query.result == query.expected(sums))
    rescale()
    query.checkpoint = into
    query.add(t, later(1): _*)
    query.run(query.changes(sums))
    assert(query.result == query.expected(sums))
  }

  private def refused(query: QueryLife, reason: String, partitions: Int = 5): Unit = {
    val into = query.anotherCheckpoint()
    val error = checkError("CHANGELOG_RESCALING_NOT_POSSIBLE") {
      spark.sql(s"RESCALE CHECKPOINT '${query.checkpoint}' INTO '$into' PARTITIONS $partitions")
    }
    assert(error.getMessage.contains(reason))
    assert(!Files.exists(into))
    val left = into.getParent.toFile.list().filter(_.startsWith(s".${into.getFileName}"))
    assert(left.isEmpty, "something is left behind")
  }

  test("what can't go on in other partitions is refused, and nothing is made") {
    val query = life()
    refused(query, "no batch of the query is done")
    val running = query.start(query.changes(sums))
    running.processAllAvailable()
    refused(query, "is running")
    running.stop()
    refused(query, "already has as many", partitions = 2)
    refused(query, "at least one partition", partitions = 0)
    val placement = query.checkpoint.resolve("state/0/_metadata/placement")
    val text = Files.readString(placement)
    Files.writeString(placement, "{")
    refused(query, "cannot be read")
    Files.delete(placement)
    refused(query, "is not recorded in")
    query.add(t, later.head: _*)
    query.run(query.changes(sums))
    assert(Files.readString(placement) == text)

    val metadata = query.checkpoint.resolve("state/0/_metadata/metadata")
    val kept = Files.readAllBytes(metadata)
    Files.delete(metadata)
    refused(query, "metadata in")
    Files.write(metadata, kept)
    val commit = query.checkpoint.resolve("commits/1")
    val done = Files.readAllBytes(commit)
    Files.delete(commit)
    refused(query, "batch 1 has started and is not done")
    Files.write(commit, done)

    val taken = Files.createDirectories(query.anotherCheckpoint().resolve("some")).getParent
    checkError("CHANGELOG_CHECKPOINT_EXISTS") {
      spark.sql(s"RESCALE CHECKPOINT '${query.checkpoint}' INTO '$taken' PARTITIONS 5")
    }
    rescale(query, 5)
  }

  test("an entry that is not where it is looked for is noticed") {
    val query = life()
    query.run(query.changes("SELECT k, g, sum(v) AS s FROM t GROUP BY k, g"))
    val placement = query.checkpoint.resolve("state/0/_metadata/placement")
    val text = Files.readString(placement)
    // as if rows were shuffled by the first of the columns alone
    val first = JsonMethods.parse(text).transformField { case ("by", JArray(by)) =>
      "by" -> JArray(by.take(1))
    }
    Files.writeString(placement, JsonMethods.compact(first))
    Files.deleteIfExists(placement.resolveSibling(".placement.crc"))
    refused(query, "are not in the partition")
  }

  test("state of other stores is refused") {
    val provider = "spark.sql.streaming.stateStore.providerClass"
    val others = life()
    others.run(others.changes(sums))
    val log = others.checkpoint.resolve("offsets/0")
    val text = Files.readString(log)
    val kept = "\"spark.sql.streaming.stateStore.providerClass\":\"[^\"]*\"".r
    Files.writeString(log, kept.replaceFirstIn(text, s""""$provider":"com.example.Store""""))
    Files.deleteIfExists(log.resolveSibling(".0.crc"))
    refused(others, "com.example.Store")
  }

  test("files of state that can't be read are named, and nothing is made") {
    val query = life()
    query.run(query.changes(sums))
    val files = Files.walk(query.checkpoint.resolve("state/0/0"))
    val delta = files.iterator().asScala.find(_.toString.endsWith("1.delta")).get
    files.close()
    Files.delete(delta)
    val into = query.anotherCheckpoint()
    val error = intercept[Exception] {
      spark.sql(s"RESCALE CHECKPOINT '${query.checkpoint}' INTO '$into' PARTITIONS 5")
    }
    val causes = Iterator.iterate[Throwable](error)(_.getCause).takeWhile(_ != null).toSeq
    assert(causes.exists(_.getMessage.contains("CHANGELOG_CHECKPOINT_FILE_MISSING")), error)
    assert(causes.exists(_.getMessage.contains("1.delta")), error)
    assert(!Files.exists(into))
  }
}
