// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.savepoints

import java.nio.file.{Files, Path}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.commons.io.FileUtils
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.{DataFrame, Row}

import org.apache.spark.sql.changelog.testing._

/** A query goes on a second time from one of its batches, beside the first. */
class ForkSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  private val t = Feed("t", "id INT, g STRING, k INT, v INT")
  private val u = Feed("u", "id INT, g STRING, w INT")
  private val joined =
    "SELECT t.g, u.w, sum(t.v) AS s, count(DISTINCT t.k) AS d FROM t JOIN u ON t.g = u.g GROUP BY t.g, u.w"

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    ChangelogSession.DeltaConf ++ ChangelogSession.Interpreted ++ EndingFileSystem.conf ++ Map(
      "spark.sql.warehouse.dir" -> QuickFileSystem.temporaryDirectory().getPath))

  /** A query, what its checkpoints hold, and how it came there. */
  private class Forks(sql: String, conf: Map[String, String]) {
    val life = new QueryLife(spark, t, u)
    val original: Path = life.checkpoint

    /** What had been emitted after each batch. */
    val after = mutable.Buffer.empty[RowMultiset]
    private val results = mutable.Map(original -> new RowMultiset)
    private var numSteps = 0

    def arrive(): Unit = {
      numSteps += 1
      life.add(t, s"+I $numSteps a $numSteps 10", s"+I ${numSteps + 100} b 1 $numSteps")
      if (numSteps > 2) life.add(t, s"-D ${numSteps - 2} a ${numSteps - 2} 10")
      life.add(u, s"+I $numSteps ${if (numSteps % 2 == 0) "a" else "b"} $numSteps")
    }

    /** Lets a checkpoint's query read all that has arrived, and compares. */
    def run(checkpoint: Path): Unit = {
      life.checkpoint = checkpoint
      life.result = results(checkpoint)
      life.run(life.changes(sql, conf))
      assert(life.result == life.expected(sql), checkpoint)
      if (checkpoint == original) after += copy(life.result)
    }

    /** One batch more of the original. */
    def step(): Unit = {
      arrive()
      run(original)
    }

    /** Runs a statement in which `from` and `into` stand for checkpoints. */
    def fork(at: String, batch: Int, from: Path = original): Path = {
      val into = life.anotherCheckpoint()
      val done = life.session(conf).sql(s"FORK CHECKPOINT '$from' $at INTO '$into'").collect()
      assert(done.toSeq == Seq(Row(batch.toLong)))
      adopt(into, batch)
      into
    }

    /** A checkpoint is there that goes on after a batch of the original. */
    def adopt(checkpoint: Path, batch: Int): Unit = results(checkpoint) = copy(after(batch))

    private def copy(rows: RowMultiset): RowMultiset = {
      val copied = new RowMultiset
      rows.contents.foreach { case (row, count) => copied.add(Row.fromSeq(row), count) }
      copied
    }
  }

  for {
    (provider, conf) <-
      Share.of(("RocksDB, by attempt" -> Variant.PerAttempt) +: Variant.Providers, oneIn = 2)
  }
    test(s"forks go on beside, state in $provider") {
      val forks = new Forks(joined, conf)
      (0 to 3).foreach(_ => forks.step())
      val made = Seq(0, 1, 3).map(batch => forks.fork(s"AT BATCH $batch", batch))
      val newest = forks.fork("", 3)
      forks.arrive()
      (forks.original +: newest +: made).foreach(forks.run)
      forks.arrive()
      (made :+ forks.original).foreach(forks.run)
      // a fork has batches of its own
      val session = forks.life.session(conf)
      val again = forks.life.anotherCheckpoint()
      session.sql(s"FORK CHECKPOINT '${made.head}' AT BATCH 1 INTO '$again'").collect()
      checkError("CHANGELOG_BATCH_GONE", "batch" -> "0", "possible" -> "batch 1") {
        session.sql(s"FORK CHECKPOINT '$again' AT BATCH 0 INTO '$again-2'").collect()
      }
    }

  for ((provider, conf) <- Share.of(Variant.Providers, oneIn = 3))
    test(s"a running query is forked, state in $provider") {
      val forks = new Forks(joined, conf)
      forks.step()
      forks.step()
      forks.life.checkpoint = forks.original
      val running = forks.life.start(forks.life.changes(joined, conf))
      val fork =
        try {
          running.processAllAvailable()
          val fork = forks.fork("AT BATCH 1", 1)
          forks.arrive()
          running.processAllAvailable()
          fork
        } finally running.stop()
      forks.run(fork)
    }

  for ((provider, conf) <- Share.ofWays(Variant.Providers, "savepoint"))
    test(s"a savepoint stays when its batch is forgotten, state in $provider") {
      val kept = conf + ("spark.sql.streaming.minBatchesToRetain" -> "2")
      val forks = new Forks(joined, kept)
      forks.step()
      forks.step()
      val session = forks.life.session(kept)
      val of = s"OF CHECKPOINT '${forks.original}'"
      session.sql(s"CREATE SAVEPOINT before $of AT BATCH 0").collect()
      session.sql(s"CREATE SAVEPOINT newest $of").collect()
      (2 to 6).foreach(_ => forks.step())
      val listed = session.sql(s"SHOW SAVEPOINTS $of").select("savepoint", "batch").collect()
      assert(listed.toSeq == Seq(Row("before", 0L), Row("newest", 1L)))

      val gone = checkError("CHANGELOG_BATCH_GONE", "batch" -> "0") {
        forks.fork("AT BATCH 0", 0)
      }
      assert(gone.getMessageParameters.get("possible").endsWith("to batch 6"))
      val fork = forks.fork("AT SAVEPOINT before", 0)
      forks.run(fork)
      forks.run(forks.fork("AT SAVEPOINT newest", 1))
      checkError("CHANGELOG_SAVEPOINT_EXISTS", "savepoint" -> "newest") {
        session.sql(s"CREATE SAVEPOINT newest $of").collect()
      }
      session.sql(s"DROP SAVEPOINT before $of").collect()
      checkError("CHANGELOG_SAVEPOINT_NOT_FOUND", "known" -> "newest") {
        forks.fork("AT SAVEPOINT before", 0)
      }
      checkError("CHANGELOG_SAVEPOINT_NOT_FOUND")(
        session.sql(s"DROP SAVEPOINT before $of").collect())
      session.sql(s"DROP SAVEPOINT IF EXISTS before $of").collect()
      session.sql(s"CREATE SAVEPOINT before $of").collect()
      forks.arrive()
      forks.run(fork)
    }

  test("a batch whose state is gone is refused, with those that are possible") {
    val forks = new Forks(joined, Variant.Paged)
    (0 to 2).foreach(_ => forks.step())
    Files.delete(forks.original.resolve("state/0/0/1.delta"))
    Files.delete(forks.original.resolve("commits/1"))
    val error = checkError("CHANGELOG_BATCH_GONE", "batch" -> "0", "possible" -> "no batch") {
      forks.fork("AT BATCH 0", 0)
    }
    assert(error.getMessageParameters.get("reason").startsWith("Files of the state in "))
    checkError(
      "CHANGELOG_BATCH_GONE",
      "batch" -> "1",
      "reason" -> "The checkpoint no longer has the batch.") {
      forks.fork("AT BATCH 1", 1)
    }
    checkError(
      "CHANGELOG_BATCH_GONE",
      "batch" -> "7",
      "reason" -> "The batch is not committed.") {
      forks.fork("AT BATCH 7", 7)
    }
    checkError("CHANGELOG_FORK_NOT_POSSIBLE") {
      forks.fork("", 0, from = forks.original.resolveSibling("none"))
    }
    assert(!Files.exists(forks.original.resolveSibling("none")))
  }

  test("a place that is taken is refused") {
    val forks = new Forks(joined, Map.empty)
    forks.step()
    checkError("CHANGELOG_CHECKPOINT_EXISTS") {
      spark.sql(s"FORK CHECKPOINT '${forks.original}' INTO '${forks.original}'").collect()
    }
  }

  private val archives = Seq("archives" -> "false", "archives and changelogs" -> "true")

  for ((files, changelog) <- Share.ofWays(archives, "attempts"))
    test(s"of several attempts at a batch that counts which is written down, in $files") {
      val rocksDB = "spark.sql.streaming.stateStore.rocksdb"
      val conf = Variant.PerAttempt ++ Map(
        s"$rocksDB.changelogCheckpointing.enabled" -> changelog,
        "spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "2",
        "spark.sql.streaming.stateStore.maintenanceInterval" -> "1s")
      val forks = new Forks(joined, conf)
      (0 to 3).foreach(_ => forks.step())
      // another attempt of a version, that does not count
      val store = forks.original.resolve("state/0/0")
      def written(batch: Int): Seq[Path] =
        Files
          .list(store)
          .iterator()
          .asScala
          .filter(_.getFileName.toString.startsWith(s"${batch + 1}_"))
          .toSeq
      written(2).foreach { file =>
        val ending = file.getFileName.toString.dropWhile(_ != '.')
        Files.writeString(store.resolve(s"3_another$ending"), "not whole")
      }
      val made = Seq(0, 2, 3).map(batch => forks.fork(s"AT BATCH $batch", batch))
      made.foreach { fork =>
        val names =
          Files.list(fork.resolve("state/0/0")).iterator().asScala.map(_.getFileName.toString)
        assert(!names.exists(_.contains("another")))
      }
      forks.arrive()
      (forks.original +: made).foreach(forks.run)
      written(3).foreach(Files.delete)
      val gone = checkError("CHANGELOG_BATCH_GONE", "batch" -> "3")(forks.fork("AT BATCH 3", 3))
      assert(gone.getMessageParameters.get("reason").startsWith("Files of the state in "))
    }

  private val evolved = Seq(
    s"SELECT * FROM ($joined) WHERE s > 3",
    // what begins is in one partition
    s"SELECT count(g) AS g, sum(w) AS w, sum(s) AS s, max(d) AS d FROM ($joined)")

  for ((changed, index) <- Share.ofWays(evolved.zipWithIndex, "evolved"))
    test(s"an evolved checkpoint is forked from its first batch on, $index") {
      val forks = new Forks(joined, Variant.Paged)
      forks.step()
      forks.step()
      val session = forks.life.session(Variant.Paged)
      val evolved = forks.life.anotherCheckpoint()
      val changes = s"SELECT * FROM to_changelog(TABLE($changed))"
      session.sql(s"EVOLVE CHECKPOINT '${forks.original}' INTO '$evolved' AS $changes").collect()
      val into = forks.life.anotherCheckpoint()
      checkError("CHANGELOG_BATCH_GONE", "batch" -> "1", "possible" -> "no batch") {
        session.sql(s"FORK CHECKPOINT '$evolved' INTO '$into'").collect()
      }
      val life = forks.life
      def run(checkpoint: Path): Unit = {
        life.checkpoint = checkpoint
        life.run(life.changes(changed, Variant.Paged))
        assert(life.result == life.expected(changed))
      }
      life.result = new RowMultiset
      run(evolved)
      session.sql(s"FORK CHECKPOINT '$evolved' AT BATCH 2 INTO '$into'").collect()
      forks.arrive()
      run(into)
      val again = forks.life.anotherCheckpoint()
      session.sql(s"FORK CHECKPOINT '$into' INTO '$again'").collect()
      forks.arrive()
      run(again)
    }

  test("a fork is there whole or not at all, whenever the process ends") {
    val forks = new Forks(joined, Variant.Paged)
    (0 to 2).foreach(_ => forks.step())
    val from = forks.original
    def statement(into: Path) = spark.sql(s"FORK CHECKPOINT '$from' AT BATCH 1 INTO '$into'")
    val (_, all) =
      EndingFileSystem.within(Int.MaxValue)(statement(forks.life.anotherCheckpoint()))
    assert(all > 10)
    for (most <- 0 until all by math.max(1, if (Share.isAll) all / 12 else all / 5)) {
      val into = forks.life.anotherCheckpoint()
      EndingFileSystem.ending(most)(statement(into))
      if (Files.exists(into)) {
        forks.adopt(into, 1)
        forks.run(into)
      }
      val name = s"s$most"
      EndingFileSystem.ending(most)(spark.sql(s"CREATE SAVEPOINT $name OF CHECKPOINT '$from'"))
    }
    val savepoints = spark.sql(s"SHOW SAVEPOINTS OF CHECKPOINT '$from'").collect()
    savepoints.foreach { savepoint =>
      forks.run(forks.fork(s"AT SAVEPOINT ${savepoint.getString(0)}", 2))
    }
    forks.run(forks.fork("AT BATCH 1", 1))
  }

  private def rows(table: => DataFrame): RowMultiset =
    RowMultiset.of(table.collect())

  /** A query that keeps a table by a sink that notes batches; forks of it write to the same table. */
  private def checkTarget(
      format: String,
      options: Map[String, String],
      read: () => DataFrame): Unit = {
    val life = new QueryLife(spark, t, u)
    val sums = "SELECT g, sum(v) AS s FROM t GROUP BY g"
    def run(checkpoint: Path, sql: String = sums): Unit = {
      val query = life
        .changes(sql)
        .writeStream
        .format(format)
        .options(options)
        .option("checkpointLocation", checkpoint.toString)
        .start()
      try query.processAllAvailable()
      finally query.stop()
    }
    def equal(): Unit = assert(rows(read()) == life.expected(sums))
    val original = life.checkpoint
    life.add(t, "+I 1 a 1 10", "+I 2 b 1 7")
    run(original)
    life.add(t, "-D 2 b 1 7", "+I 3 c 1 2")
    run(original)
    equal()

    // from where the table is, it goes on
    val same = life.anotherCheckpoint()
    spark.sql(s"FORK CHECKPOINT '$original' INTO '$same'").collect()
    life.add(t, "+I 4 a 1 1")
    run(same)
    equal()

    // from before that it would take back what has never come
    val (fork, again) = (life.anotherCheckpoint(), life.anotherCheckpoint())
    spark.sql(s"FORK CHECKPOINT '$original' AT BATCH 0 INTO '$fork'").collect()
    spark.sql(s"FORK CHECKPOINT '$same' INTO '$again'").collect()
    checkError("CHANGELOG_SINK_NOT_AT_FORK", "forked" -> "0", "held" -> "1")(run(fork))
    equal()
    life.add(t, "+I 5 d 1 1")
    run(same)
    // neither does it go on from a batch that the table has left behind
    checkError("CHANGELOG_SINK_NOT_AT_FORK", "forked" -> "2", "held" -> "3")(run(again))

    // the table follows
    def evolve(from: Path, sql: String, hasTarget: Boolean = true): Path = {
      val into = life.anotherCheckpoint()
      val session = life.session()
      session
        .createDataFrame(read().collect().toList.asJava, read().schema)
        .createOrReplaceTempView("held")
      val target = if (hasTarget) "TARGET held" else ""
      session
        .sql(
          s"EVOLVE CHECKPOINT '$from' INTO '$into' $target AS " +
            s"SELECT * FROM to_changelog(TABLE($sql))")
        .collect()
      into
    }
    val held = rows(read())
    val restored = evolve(fork, sums)
    assert(rows(read()) == held)
    run(restored)
    equal()
    life.add(t, "-D 1 a 1 10")
    run(restored)
    equal()

    // a changed query goes on from where the table was, and not after the query before has written more
    val large = s"$sums HAVING sum(v) > 1"
    val late = evolve(restored, large)
    val all = evolve(restored, large, hasTarget = false)
    life.add(t, "+I 6 e 1 1")
    run(restored)
    equal()
    val before = rows(read())
    checkError("CHANGELOG_SINK_NOT_AT_FORK", "forked" -> "3", "held" -> "4")(run(late, large))
    // nor is the table empty, to which all rows come
    checkError("CHANGELOG_SINK_NOT_EMPTY", "held" -> "4")(run(all, large))
    assert(rows(read()) == before)
    val forked = life.anotherCheckpoint()
    spark.sql(s"FORK CHECKPOINT '$restored' INTO '$forked'").collect()
    checkError("CHANGELOG_SINK_NOT_EMPTY", "held" -> "4") {
      run(evolve(forked, large, hasTarget = false), large)
    }
    val inTime = evolve(restored, large)
    Seq("+I 7 f 1 7", "+I 8 f 1 1").foreach { change =>
      run(inTime, large)
      assert(rows(read()) == life.expected(large))
      life.add(t, change)
    }
    run(inTime, large)
    assert(rows(read()) == life.expected(large))
  }

  test(
    "Delta tells whether a table is at the batch from which a fork, or a changed query, goes on") {
    val path = QuickFileSystem.temporaryDirectory().getPath + "/sums"
    val options = Map("path" -> path, "createTable" -> "true")
    checkTarget("changelog-table", options, () => spark.read.format("delta").load(path))
  }

  test("so does the ledger in a database, also below several sinks") {
    val url = "jdbc:h2:mem:forks;DB_CLOSE_DELAY=-1"
    def read(table: String) =
      () => spark.read.format("jdbc").options(Map("url" -> url, "dbtable" -> table)).load()
    val options = Map("url" -> url, "dbtable" -> "SUMS", "createTable" -> "true")
    checkTarget("changelog-jdbc", options, read("SUMS"))
    val several = Map("sinks" -> "one", "one.format" -> "changelog-jdbc") ++
      options.map { case (name, value) => s"one.$name" -> value } + ("one.dbtable" -> "OTHERS")
    checkTarget("changelog-fanout", several, read("OTHERS"))
  }

  test("a copy of a whole checkpoint is no fork") {
    val forks = new Forks(joined, Map.empty)
    forks.step()
    val copied = forks.life.anotherCheckpoint()
    FileUtils.copyDirectory(forks.original.toFile, copied.toFile)
    val fork = forks.fork("", 0)
    def id(checkpoint: Path) = Files.readString(checkpoint.resolve("metadata"))
    assert(id(copied) == id(forks.original))
    assert(id(fork) != id(forks.original))
  }
}
