// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import java.io.File

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.streaming.{StreamingQuery, StreamingQueryException}
import org.apache.spark.sql.types._
import org.apache.spark.sql.{DataFrame, Encoders, Row}

import org.apache.spark.sql.changelog.testing._

/** What happens where a sum leaves its type, or a change takes back what was never given. */
class ChangelogAggregateFailureSuite extends AnyFunSuite with ChangelogSession {
  private val policy = "spark.sql.changelog.unmatchedRetraction"
  private val twoPhase = "spark.sql.changelog.twoPhase.enabled"
  private val ansi = "spark.sql.ansi.enabled"

  /** A query over changes of `t(g STRING, n <valueType>)` that can be started again and again. */
  private class Run(valueType: String, sql: String) {
    private val schema = StructType.fromDDL(s"g STRING, n $valueType")
    private val stream = MemoryStream[Row](2)(
      Encoders.row(StructType(StructField("op", StringType) +: schema)),
      spark.sqlContext)
    private val emitted = mutable.ArrayBuffer.empty[String]
    val checkpoint: File = QuickFileSystem.temporaryDirectory()

    def arrive(changes: String*): Unit = stream.addData(
      changes
        .map(TextChangelog.parse(_, schema))
        .map(change => Row.fromSeq(change.kind +: change.row.toSeq)))

    /** Runs the query over all that has arrived, and tells what it emits. */
    def changes(): Seq[String] = query { query =>
      query.processAllAvailable()
    }

    /** Runs the query until it fails, and tells the root cause. */
    def failure(): SparkThrowable = {
      var cause: Throwable = null
      val changes = query { query =>
        val error = intercept[StreamingQueryException](query.processAllAvailable())
        cause = rootCause(error)
      }
      assert(changes.isEmpty)
      cause.asInstanceOf[SparkThrowable]
    }

    private def query(use: StreamingQuery => Unit): Seq[String] = {
      stream.toDF().createOrReplaceTempView("changes")
      spark
        .sql("SELECT * FROM from_changelog(TABLE(changes), 'op')")
        .createOrReplaceTempView("t")
      emitted.clear()
      val query = spark
        .sql(s"SELECT * FROM to_changelog(TABLE($sql))")
        .writeStream
        .option("checkpointLocation", checkpoint.getPath)
        .foreachBatch { (batch: DataFrame, _: Long) =>
          batch.collect().foreach { row =>
            emitted += s"${row.getAs[String]("_change_type")} ${row(1)}"
          }
        }
        .start()
      try use(query)
      finally {
        val operators = query.recentProgress.toSeq.flatMap(_.stateOperators)
        numUnmatched = operators.map(_.customMetrics.get("numUnmatchedRetractions").toLong).sum
        query.stop()
      }
      emitted.toSeq
    }

    /** What the last run counted. */
    var numUnmatched: Long = 0

    def numCommits: Int = new File(checkpoint, "commits").list().count(_.forall(_.isDigit))

    /** The condition of the error that batch Spark raises over these rows. */
    def batchFailure(rows: String*): String = {
      val table = rows.map(row => TextChangelog.parse(s"+I $row", schema).row)
      spark.createDataFrame(table.asJava, schema).createOrReplaceTempView("t")
      rootCause(intercept[Throwable](spark.sql(sql).collect()))
        .asInstanceOf[SparkThrowable]
        .getCondition
    }
  }

  private def assertChanges(run: Run)(expected: String*): Unit =
    assert(run.changes().sorted == expected.sorted)

  private def rootCause(error: Throwable): Throwable =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).toSeq.last

  private def withConf(settings: (String, String)*)(body: => Unit): Unit = {
    settings.foreach { case (key, value) => spark.conf.set(key, value) }
    try body
    finally settings.foreach { case (key, _) => spark.conf.unset(key) }
  }

  private val max = Long.MaxValue
  private val nines = "9" * 38

  test("a BIGINT sum fails where batch does, commits nothing, and goes on once it may wrap") {
    val run = new Run("BIGINT", "SELECT g, sum(n) FROM t GROUP BY g")
    run.arrive(s"+I a $max", "+I b 1")
    assertChanges(run)(s"insert $max", "insert 1")
    run.arrive("+I a 1", "+I b 2", "+I c 3")
    for (_ <- 1 to 2) assert(run.failure().getCondition == run.batchFailure(s"a $max", "a 1"))
    assert(run.numCommits == 1)
    withConf(ansi -> "false") {
      assertChanges(run)(
        "insert 3",
        s"update_postimage ${Long.MinValue}",
        "update_postimage 3",
        "update_preimage 1",
        s"update_preimage $max")
      run.arrive("-D a 1")
      assertChanges(run)(s"update_postimage $max", s"update_preimage ${Long.MinValue}")
    }
  }

  test("a BIGINT sum that overflows only on the way does not fail") {
    val run = new Run("BIGINT", "SELECT g, sum(n), avg(n) FROM t GROUP BY g")
    run.arrive(s"+I a $max", s"+I a $max", s"-D a $max")
    assertChanges(run)(s"insert $max")
    run.arrive(s"+I a $max", s"+I a -$max")
    assertChanges(run)(s"update_postimage $max", s"update_preimage $max")
  }

  test("try_sum is NULL as long as the total does not fit") {
    val run = new Run("BIGINT", "SELECT g, try_sum(n) FROM t GROUP BY g")
    run.arrive(s"+I a $max", "+I a 1")
    assertChanges(run)("insert null")
    run.arrive("-D a 1")
    assertChanges(run)(s"update_postimage $max", "update_preimage null")
  }

  test("a decimal sum fails where batch does, or is NULL") {
    val run = new Run("DECIMAL(38,0)", "SELECT g, sum(n) FROM t GROUP BY g")
    run.arrive(s"+I a $nines")
    assertChanges(run)(s"insert $nines")
    run.arrive("+I a 1")
    assert(run.failure().getCondition == run.batchFailure(s"a $nines", "a 1"))
    assert(run.numCommits == 1)
    withConf(ansi -> "false") {
      assertChanges(run)("update_postimage null", s"update_preimage $nines")
      run.arrive("-D a 1")
      assertChanges(run)(s"update_postimage $nines", "update_preimage null")
    }
  }

  test("a decimal average fails where batch does") {
    val run = new Run("DECIMAL(38,10)", "SELECT g, avg(n) FROM t GROUP BY g")
    val wide = "9" * 28
    run.arrive(s"+I a $wide")
    assert(run.failure().getCondition == run.batchFailure(s"a $wide"))
    assert(run.numCommits == 0)
    withConf(ansi -> "false")(assertChanges(run)("insert null"))
  }

  test("a correlation of equal values fails where batch does, or is NULL") {
    val run = new Run("DOUBLE", "SELECT g, corr(n, 2 * n) FROM t GROUP BY g")
    run.arrive("+I a 1.5")
    assertChanges(run)("insert null")
    run.arrive("+I a 1.5")
    assert(run.failure().getCondition == run.batchFailure("a 1.5", "a 1.5"))
    withConf(ansi -> "false") {
      assertChanges(run)()
      run.arrive("+I a 0.5")
      assertChanges(run)("update_postimage 1.0", "update_preimage null")
    }
  }

  for (phases <- Seq("true", "false")) {
    test(s"a retraction that comes first waits for its insert, two phases: $phases") {
      for (choice <- Seq("ignore", "warn")) {
        withConf(policy -> choice, twoPhase -> phases) {
          val run =
            new Run("INT", "SELECT g, count(*) + sum(n) + min(n) + max(n) FROM t GROUP BY g")
          run.arrive("-D a 1", "-D a 1", "+I b 1")
          assertChanges(run)("insert 4")
          assert(run.numUnmatched == 2)
          run.arrive("+I a 1")
          assertChanges(run)()
          assert(run.numUnmatched == 0)
          run.arrive("+I a 1")
          assertChanges(run)()
          run.arrive("+I a 1")
          assertChanges(run)("insert 4")
          run.arrive("-D a 1", "-D a 1", "-D b 1")
          assertChanges(run)("delete 4", "delete 4")
          assert(run.numUnmatched == 1)
        }
      }
    }

    test(s"a retraction before its insert in one batch is no matter, two phases: $phases") {
      withConf(policy -> "fail", twoPhase -> phases) {
        val run = new Run("INT", "SELECT g, count(*), max(n) FROM t GROUP BY g")
        run.arrive("-D a 1", "+I a 1", "+I a 2", "-D b 1", "+I b 1")
        assertChanges(run)("insert 1")
      }
    }

    test(s"a retraction of what was never given fails on demand, two phases: $phases") {
      val run = new Run("INT", "SELECT g, count(*) FROM t GROUP BY g")
      withConf(policy -> "fail", twoPhase -> phases) {
        run.arrive("+I a 1")
        assertChanges(run)("insert 1")
        run.arrive("-D a 1", "-D a 1", "+I b 1")
        val error = run.failure()
        assert(error.getCondition == "CHANGELOG_UNMATCHED_RETRACTION")
        assert(error.getMessageParameters.get("key") == "g = a")
        assert(run.numCommits == 1)
      }
      withConf(policy -> "ignore", twoPhase -> phases) {
        assertChanges(run)("delete 1", "insert 1")
      }
    }
  }
}
