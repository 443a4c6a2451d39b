// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.functions

import java.io.File
import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.streaming.runtime.{
  IncrementalExecution, StreamExecution, StreamingQueryWrapper
}

import org.apache.spark.sql.changelog.testing._

/** Records that can't be read are kept in files, each once, whatever happens to the query. */
class DeadLetterSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {

  private def event(id: Any, city: String): String =
    s"""{"op":"c","before":null,"after":{"id":$id,"city":"$city"},"source":{"lsn":1}}"""

  /** A table read from lines of files, all of which arrive one after the other. */
  private class Lines {
    val input: File = QuickFileSystem.temporaryDirectory()
    val letters: File = new File(QuickFileSystem.temporaryDirectory(), "letters")
    val checkpoint: File = QuickFileSystem.temporaryDirectory()
    spark.readStream
      .text(input.getPath)
      .selectExpr("value", "_metadata.file_name AS file")
      .createOrReplaceTempView("lines")
    val table: String = s"from_debezium(TABLE(lines), schema => 'id INT, city STRING', " +
      s"key => 'id', dead_letter => '$letters')"

    def arrive(file: String, lines: String*): Unit =
      Files.write(input.toPath.resolve(file), lines.asJava)

    /** Runs the query over all that has arrived. */
    def run(sql: String)(batch: DataFrame => Unit): Unit =
      runChanges(s"SELECT * FROM to_changelog(TABLE($sql))")(batch)

    def runChanges(sql: String)(batch: DataFrame => Unit): Unit = spark
      .sql(sql)
      .writeStream
      .option("checkpointLocation", checkpoint.getPath)
      .foreachBatch((changes: DataFrame, _: Long) => batch(changes))
      .start()
      .processAllAvailableAndStop()

    /** The batch that is being run. */
    def lastExecution: IncrementalExecution = {
      val id = spark.sparkContext.getLocalProperty(StreamExecution.QUERY_ID_KEY)
      spark.streams.get(id).asInstanceOf[StreamingQueryWrapper].streamingQuery.lastExecution
    }

    def kept(columns: String*): Seq[String] = spark.read
      .json(letters.getPath)
      .selectExpr(columns: _*)
      .collect()
      .map(TextChangelog.format)
      .sorted
      .toSeq

    def files: Seq[Path] = {
      val all = Files.walk(letters.toPath)
      try all.filter(_.toString.endsWith(".json")).iterator.asScala.toSeq
      finally all.close()
    }
  }

  private implicit class Stopping(query: org.apache.spark.sql.streaming.StreamingQuery) {
    def processAllAvailableAndStop(): Unit =
      try query.processAllAvailable()
      finally query.stop()
  }

  private val count = "SELECT city, count(*) FROM t GROUP BY city"

  test("records that can't be read are kept with the reason and their place, over restarts") {
    val lines = new Lines
    spark.sql(s"SELECT * FROM ${lines.table}").createOrReplaceTempView("t")
    lines.arrive("a", event(1, "Oslo"), "hello", event(2, "Rome"), "hello")
    lines.run(count)(changes => assert(changes.count() == 2))
    lines.arrive("b", event("\"x\"", "Oslo"), event("null", "Oslo"), event(3, "Oslo"))
    lines.run(count)(changes => assert(changes.count() == 2))
    assert(
      lines.kept("batch", "source.file", "error") == Seq(
        "0 a it is not a JSON object",
        "0 a it is not a JSON object",
        "1 b column id has the value 'x', which is not of its type INT",
        "1 b its key column id is NULL"))
    assert(
      lines.kept("record") ==
        Seq("hello", "hello", event("\"x\"", "Oslo"), event("null", "Oslo")).sorted)
    assert(lines.kept("query").distinct.size == 1)
  }

  test("the file of a record is told, also where its row does not tell") {
    val input = QuickFileSystem.temporaryDirectory()
    val letters = new File(QuickFileSystem.temporaryDirectory(), "letters")
    Files.write(input.toPath.resolve("first file"), Seq(event(1, "Oslo")).asJava)
    Files.write(input.toPath.resolve("second file"), Seq(event(2, "Rome"), "hello").asJava)
    def read(source: DataFrame, more: String): DataFrame = {
      source.where("value <> ''").createOrReplaceTempView("plain")
      spark.sql(
        s"SELECT * FROM from_debezium(TABLE(plain), schema => 'id INT, city STRING'$more)")
    }
    def stream: DataFrame = spark.readStream.text(input.getPath)
    def place(body: => Any): String =
      changelogError(body).getMessageParameters.get("place")
    def start(table: DataFrame): Unit = {
      table.createOrReplaceTempView("t")
      new RunningChanges(
        spark.sql("SELECT * FROM to_changelog(TABLE(t))"),
        QuickFileSystem.temporaryDirectory()).next()
      ()
    }
    val file = s" \\(file=file:/+${input.getPath.drop(1)}/second%20file\\)"
    assert(place(start(read(stream, ", key => 'id'"))).matches(file))
    assert(place(read(spark.read.text(input.getPath), "").collect()).matches(file))
    start(read(stream, s", key => 'id', dead_letter => '$letters'"))
    val kept = spark.read.json(letters.getPath).select("source.file").collect()
    assert(kept.map(_.getString(0)).toSeq.forall(_.endsWith("/second%20file")) && kept.size == 1)
    // rows wait where Python is called or parts are exchanged, and another file is read meanwhile
    assert(!place(start(read(stream.repartition(1), ", key => 'id'"))).contains("file"))
  }

  test("a batch that is run again writes the same, and nothing of its first attempt is left") {
    checkRunAgain(_ => count)
  }

  test("nothing of a first attempt is left where Spark could run a batch in steps") {
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    try checkRunAgain(rows => s"SELECT /*+ REPARTITION(2) */ * FROM $rows")
    finally spark.conf.set("spark.sql.adaptive.enabled", "false")
  }

  private def checkRunAgain(query: String => String): Unit = {
    val lines = new Lines
    spark.sql(s"SELECT * FROM ${lines.table}").createOrReplaceTempView("t")
    // a table without a key, for which no state is kept
    val sql = query(lines.table.replace("key => 'id', ", ""))
    lines.arrive("a", event(1, "Oslo"), "hello")
    lines.run(sql)(_.collect())
    lines.arrive("b", "bye", event(2, "Oslo"))
    intercept[Exception](lines.run(sql) { changes =>
      changes.collect()
      throw new IllegalStateException("before the batch is committed")
    })
    val Seq(first) = lines.files.filter(_.toString.contains("batch=1"))
    // as of an attempt that cut its input into more parts
    Files.copy(first, first.resolveSibling("source-1-part-00007.json"))
    lines.run(sql)(changes => assert(changes.count() > 0))
    assert(lines.kept("batch", "record") == Seq("0 hello", "1 bye"))
    assert(lines.files.contains(first))
  }

  test("nothing is removed where a batch is only planned once more") {
    val lines = new Lines
    spark.sql(s"SELECT * FROM ${lines.table}").createOrReplaceTempView("t")
    lines.arrive("a", "hello", event(1, "Oslo"))
    lines.run(count) { changes =>
      changes.collect()
      val planned = lines.lastExecution
      planned.sparkSession.sessionState.planner.plan(planned.optimizedPlan).next()
      assert(lines.kept("record") == Seq("hello"))
    }
    assert(lines.kept("record") == Seq("hello"))
  }

  test("records of a batch that is read twice are kept once") {
    val lines = new Lines
    spark.sql(s"SELECT * FROM ${lines.table}").createOrReplaceTempView("t")
    lines.arrive("a", "one", event(1, "Oslo"), "two")
    lines.run(count) { changes =>
      assert(changes.count() == 1)
      assert(changes.collect().length == 1)
    }
    assert(lines.kept("record") == Seq("one", "two"))
  }

  test("two sources of a query may share a directory") {
    val lines = new Lines
    spark.sql(s"SELECT * FROM ${lines.table}").createOrReplaceTempView("t")
    val more = new Lines
    val other = more.table.replace(more.letters.getPath, lines.letters.getPath)
    // the table of each is bound to its own lines by now
    spark.sql(s"SELECT * FROM $other").createOrReplaceTempView("u")
    lines.arrive("a", event(1, "Oslo"), "of t")
    more.arrive("b", event(1, "Rome"), "of u")
    lines.run("SELECT t.id, t.city, u.city AS other FROM t JOIN u ON t.id = u.id")(_.collect())
    assert(lines.kept("source.file", "record") == Seq("a of t", "b of u"))
  }

  test("two to_changelog of a query keep records of their own, over restarts") {
    val lines = new Lines
    spark.sql(s"SELECT * FROM ${lines.table}").createOrReplaceTempView("t")
    val more = new Lines
    val other = more.table.replace(more.letters.getPath, lines.letters.getPath)
    spark.sql(s"SELECT * FROM $other").createOrReplaceTempView("u")
    def run(changes: Long): Unit = lines.runChanges(
      s"SELECT * FROM to_changelog(TABLE($count)) UNION ALL " +
        s"SELECT * FROM to_changelog(TABLE(${count.replace("FROM t", "FROM u")}))") { batch =>
      assert(batch.count() == changes)
    }
    lines.arrive("a", event(1, "Oslo"), "of t")
    more.arrive("b", event(1, "Rome"), "of u", event(2, "Bern"))
    run(changes = 3)
    lines.arrive("c", event(2, "Kyiv"), "more of t")
    more.arrive("d", "more of u")
    run(changes = 1)
    val kept = Seq("0 a of t", "0 b of u", "1 c more of t", "1 d more of u")
    assert(lines.kept("batch", "source.file", "record") == kept)
    assert(!more.letters.exists() && lines.files.map(_.getFileName).distinct.size > 1)
  }

  test(
    "Canal's messages and topics of newest rows are kept, too, and a batch query writes none") {
    val letters = new File(QuickFileSystem.temporaryDirectory(), "letters")
    def keeping(call: String) = s"$call, dead_letter => '$letters')"
    val canal = keeping("from_canal(TABLE(records), schema => 'id INT', key => 'id'")
    val good = """{"type":"INSERT","data":[{"id":"1"},{"id":"x"}],"table":"t","es":1}"""
    val feed = new RecordFeed(spark, Seq(good, "{}"))
    assert(feed.batch(canal) == Seq("1") && !letters.exists())
    assert(feed.stream(canal) == Seq("1"))
    def kept = spark.read.json(letters.getPath)
    assert(
      kept
        .selectExpr("source.offset", "error")
        .collect()
        .map(TextChangelog.format)
        .sorted
        .toSeq ==
        Seq(
          "0 column id has the value 'x', which is not of its type INT",
          "1 it has no type, so it is no record as Canal writes it"))
    val topic =
      keeping("from_upsert_kafka(TABLE(records), schema => 'id INT, n INT', key => 'id'")
    val records = new RecordFeed(spark, Seq("1\t{\"n\":5}", "x\t{\"n\":6}", "2\tnone"))
    assert(records.stream(topic, size = 3) == Seq("1 5"))
    assert(kept.where("source.key IS NOT NULL").count() == 2)
  }

  test("arguments that don't fit are refused") {
    val lines = new Lines
    def refused(argument: String, arguments: String): Unit = {
      checkError("CHANGELOG_ARGUMENT_INVALID", "argument" -> argument)(
        spark.sql(s"SELECT * FROM from_debezium(TABLE(lines), schema => 'id INT', $arguments)"))
      ()
    }
    refused("on_error", s"dead_letter => '${lines.letters}', on_error => 'fail'")
    refused("on_error", s"dead_letter => '${lines.letters}', on_error => 'return'")
    refused("dead_letter", "dead_letter => 'nosuch://host/x'")
  }
}
