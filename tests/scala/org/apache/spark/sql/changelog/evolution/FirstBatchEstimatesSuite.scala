// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import java.nio.file.attribute.FileTime
import java.nio.file.{Files, Path}

import org.apache.commons.io.FileUtils
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.streaming.StreamingQueryProgress
import org.apache.spark.sql.{DataFrame, Row}

import org.apache.spark.sql.changelog.testing._

/** What `EXPLAIN EVOLVE CHECKPOINT` says that a first batch reads, beside what that has read. */
class FirstBatchEstimatesSuite extends AnyFunSuite with KafkaTopics {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.DeltaConf ++ ChangelogSession.Interpreted)

  private val home = QuickFileSystem.temporaryDirectory().toPath
  private var numCheckpoints = 0

  private def newCheckpoint(): Path = {
    numCheckpoints += 1
    home.resolve(s"checkpoint-$numCheckpoints")
  }

  private def changes(query: String): DataFrame =
    spark.sql(s"SELECT * FROM to_changelog(TABLE($query))")

  private def run(query: String, checkpoint: Path): Seq[StreamingQueryProgress] = {
    val started = changes(query).writeStream
      .format("noop")
      .option("checkpointLocation", checkpoint.toString)
      .start()
    try started.processAllAvailable()
    finally started.stop()
    started.recentProgress.toSeq.filter(_.stateOperators.nonEmpty)
  }

  /** The state, rows, seconds and estimate of each operator. */
  private def explain(checkpoint: Path, query: String): Seq[Row] = {
    val statement =
      s"EXPLAIN EVOLVE CHECKPOINT '$checkpoint' AS SELECT * FROM to_changelog(TABLE($query))"
    spark.sql(statement).select("state", "rows", "seconds", "estimate").collect().toSeq
  }

  private def rows(said: Seq[Row]): Seq[(String, Any)] =
    said.map(row => row.getString(0) -> row.get(1))

  /** Lets the changed query begin. */
  private def evolve(checkpoint: Path, query: String): StreamingQueryProgress = {
    val into = newCheckpoint()
    val as = s"AS SELECT * FROM to_changelog(TABLE($query))"
    val evolved = spark.sql(s"EVOLVE CHECKPOINT '$checkpoint' INTO '$into' $as")
    assert(evolved.columns.toSeq == Seq("operator", "state", "from"))
    run(query, into).head
  }

  /** A stream of files, of which each is there with so many rows. */
  private def files(name: String, format: String, rows: Seq[Int]): Unit = {
    val folder = home.resolve(name)
    rows.foreach { count =>
      spark
        .range(count)
        .selectExpr("id", "id % 7 AS g")
        .coalesce(1)
        .write
        .mode("append")
        .format(format)
        .save(folder.toString)
    }
    spark.readStream
      .schema("id BIGINT, g BIGINT")
      .format(format)
      .option("maxFilesPerTrigger", "1")
      .load(folder.toString)
      .createOrReplaceTempView(name)
  }

  for (format <- Seq("json", "parquet")) test(s"state and files of $format") {
    val name = s"rows_$format"
    files(name, format, Seq(20, 30))
    val sums = s"SELECT g, sum(id) AS s FROM $name GROUP BY g"
    val checkpoint = newCheckpoint()
    run(sums, checkpoint)

    val above = s"SELECT s % 2 AS odd, count(*) AS n FROM ($sums) GROUP BY s % 2"
    val said = explain(checkpoint, above)
    assert(rows(said) == Seq("kept" -> 7L, "rebuilt" -> 7L), said)
    assert(said.forall(_.getString(3).startsWith("less than 1 s, at ")), said)
    assert(evolve(checkpoint, above).stateOperators.map(_.numRowsTotal).contains(7L))

    val further = s"SELECT g, sum(id) AS s, max(id) AS m FROM $name GROUP BY g"
    assert(rows(explain(checkpoint, further)) == Seq("rebuilt" -> 50L, "dropped" -> 0L))
    assert(evolve(checkpoint, further).numInputRows == 50)

    // a further source comes with the next batch
    files(s"more_$format", format, Seq(4))
    val more = s"SELECT g, count(*) FROM more_$format GROUP BY g"
    val both = explain(checkpoint, s"SELECT g, s FROM ($sums) UNION ALL $more")
    assert(rows(both) == Seq("kept" -> 7L, "rebuilt" -> 0L))

    // what lies below goes on as it is
    val two = newCheckpoint()
    run(above, two)
    val kept = explain(two, s"SELECT * FROM ($above) WHERE n > 1")
    assert(rows(kept) == Seq("kept" -> 0L, "kept" -> 2L), kept)
  }

  test("batches that read many rows tell how long rows take") {
    files("many", "parquet", Seq(20000, 10, 15000))
    val sums = "SELECT g, sum(id) AS s FROM many GROUP BY g"
    val checkpoint = newCheckpoint()
    val batches = run(sums, checkpoint)
    assert(batches.map(_.numInputRows).sum == 35010)
    val further = "SELECT g, sum(id) AS s, max(id) AS m FROM many GROUP BY g"
    val Seq(rebuilt, _) = explain(checkpoint, further)
    val told = rebuilt.getString(3)
    assert(told.matches(".*, as fast as batch \\d"), told)
    val batch = batches.find(_.batchId == told.last.asDigit.toLong).get
    assert(batch.numInputRows >= 15000)
    val seconds = rebuilt.getDouble(2)
    val took = batch.batchDuration / 1000.0 * 35010 / batch.numInputRows
    assert(seconds > took * 0.5 && seconds < took * 1.5, s"$seconds is not about $took")
    // a copy's files are not those that were written while it ran
    val copy = newCheckpoint()
    FileUtils.copyDirectory(checkpoint.toFile, copy.toFile, false)
    Files.list(copy.resolve("offsets")).forEach { file =>
      Files.setLastModifiedTime(file, FileTime.fromMillis(System.currentTimeMillis() + 60000))
      ()
    }
    assert(explain(copy, further).head.getString(3).contains("rows a second and core"))
  }

  test("a Delta table") {
    val table = home.resolve("delta")
    def append(count: Int): Unit = spark
      .range(count)
      .selectExpr("id", "id % 3 AS g")
      .write
      .format("delta")
      .mode("append")
      .save(table.toString)
    append(10)
    spark.readStream.format("delta").load(table.toString).createOrReplaceTempView("delta_rows")
    val sums = "SELECT g, sum(id) AS s FROM delta_rows GROUP BY g"
    val checkpoint = newCheckpoint()
    run(sums, checkpoint)
    append(5)
    run(sums, checkpoint)
    append(90) // comes with a later batch
    val further = "SELECT g, sum(id) AS s, max(id) AS m FROM delta_rows GROUP BY g"
    assert(rows(explain(checkpoint, further)) == Seq("rebuilt" -> 15L, "dropped" -> 0L))
    assert(evolve(checkpoint, further).numInputRows == 15)
  }

  test("Kafka") {
    createTopic("estimates", partitions = 2)
    send("estimates", (1 to 9).map(number => s"k$number" -> "old"), partition = Some(0))
    stream("estimates").createOrReplaceTempView("records")
    val counts = "SELECT CAST(key AS STRING) AS k, count(*) AS n FROM records GROUP BY key"
    val checkpoint = newCheckpoint()
    run(counts, checkpoint)
    send("estimates", (1 to 4).map(number => s"k$number" -> "new"), partition = Some(1))
    run(counts, checkpoint)
    send("estimates", Seq("k" -> "not read"), partition = Some(1))
    val further = counts.replace("AS n", "AS n, count(value) AS m")
    assert(rows(explain(checkpoint, further)) == Seq("rebuilt" -> 13L, "dropped" -> 0L))
    assert(evolve(checkpoint, further).numInputRows == 13)
  }

  test("what never changes, and what nobody can count") {
    files("few", "json", Seq(20))
    spark.range(5).selectExpr("id AS g", "id AS w").createOrReplaceTempView("fixed")
    val joined = "SELECT g, w, count(*) AS n FROM few JOIN fixed USING (g) GROUP BY g, w"
    val checkpoint = newCheckpoint()
    run(joined, checkpoint)
    val further = joined.replace("AS n", "AS n, max(id) AS m")
    assert(rows(explain(checkpoint, further)) == Seq("rebuilt" -> 25L, "dropped" -> 0L))

    spark.readStream
      .format("rate")
      .option("rowsPerSecond", "1")
      .load()
      .createOrReplaceTempView("ticks")
    val ticks = "SELECT value % 3 AS g, count(*) AS n FROM ticks GROUP BY value % 3"
    val ofTicks = newCheckpoint()
    run(ticks, ofTicks)
    val Seq(rebuilt, _) = explain(ofTicks, ticks.replace("AS n", "AS n, sum(value) AS s"))
    assert(rebuilt.isNullAt(1) && rebuilt.isNullAt(2))
    assert(rebuilt.getString(3) == "not known: nothing tells how many rows rate has")
  }
}
