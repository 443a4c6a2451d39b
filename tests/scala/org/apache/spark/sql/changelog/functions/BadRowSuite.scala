// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.functions

import java.io.File

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.DataFrame

import org.apache.spark.sql.changelog.testing._

/** Rows that can't be read: what stops a query, what lets it go on. */
class BadRowSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {

  private def directory(): File = QuickFileSystem.temporaryDirectory()

  private def sums(source: String): DataFrame = spark.sql(
    s"SELECT * FROM to_changelog(TABLE(SELECT k, sum(n) AS total FROM $source GROUP BY k))")

  /** What stops the query, and that the query goes on once bad rows are dropped. */
  private def check(bad: String, condition: String, parameters: (String, String)*): Unit = {
    val stream = new RawStream(spark, "feed", "op STRING, k STRING, n INT")
    val checkpoint = directory()
    val strict = new RunningChanges(sums("from_changelog(TABLE(feed), 'op', 'k')"), checkpoint)
    stream.add("+I a 1")
    assert(strict.next() == Seq("a 1 insert"))
    stream.add("+I b 2", bad, "+I c 3")
    checkError(condition, parameters: _*)(strict.next())
    assert(strict.query.exception.isDefined)

    val again = new RunningChanges(sums("from_changelog(TABLE(feed), 'op', 'k')"), checkpoint)
    checkError(condition, parameters: _*)(again.next())

    val lenient = sums("from_changelog(TABLE(feed), 'op', 'k', on_error => 'drop')")
    val going = new RunningChanges(lenient, checkpoint)
    assert(going.next() == Seq("b 2 insert", "c 3 insert"))
    assert(dropped(going) == 1)
    stream.add("-D b 2")
    assert(going.next() == Seq("b 2 delete"))
    assert(dropped(going) == 0)
    going.stop()
  }

  private def dropped(running: RunningChanges, source: String = "from_changelog"): Long =
    running.progress.observedMetrics.get(source).getAs[Long]("numDroppedRows")

  test("an unknown change type stops the query before the batch is committed") {
    val types = Seq("column" -> "op", "value" -> "'upsert'", "example" -> "upsert")
    check("upsert x 1", "CHANGELOG_CHANGE_TYPE_UNKNOWN", types: _*)
  }

  test("a NULL change type stops the query before the batch is committed") {
    check("NULL x 1", "CHANGELOG_CHANGE_TYPE_UNKNOWN", "column" -> "op", "value" -> "NULL")
  }

  test("a NULL key stops the query before the batch is committed") {
    check("+I NULL 7", "CHANGELOG_KEY_NULL", "column" -> "k", "row" -> "{+I, NULL, 7}")
  }

  test("a NULL key stops an insert-only feed too, and is dropped if asked") {
    val stream = new RawStream(spark, "feed", "k STRING, n INT")
    val checkpoint = directory()
    val strict = new RunningChanges(sums("from_changelog(TABLE(feed), key => 'k')"), checkpoint)
    stream.add("NULL 1", "a 2")
    checkError("CHANGELOG_KEY_NULL", "column" -> "k", "row" -> "{NULL, 1}")(strict.next())
    val lenient = "from_changelog(TABLE(feed), key => 'k', on_error => 'drop')"
    val going = new RunningChanges(sums(lenient), checkpoint)
    assert(going.next() == Seq("a 2 insert"))
    assert(dropped(going) == 1)
    going.stop()
  }

  test("an upsert feed refuses and drops the same rows") {
    val stream = new RawStream(spark, "feed", "op STRING, k STRING, n INT")
    val checkpoint = directory()
    val call = "from_changelog(TABLE(feed), 'op', 'k', 'upsert'"
    def changes(arguments: String) =
      spark.sql(s"SELECT * FROM to_changelog(TABLE(SELECT * FROM $call $arguments)))")
    val strict = new RunningChanges(changes(""), checkpoint)
    stream.add("u a 1", "d NULL NULL")
    checkError("CHANGELOG_KEY_NULL", "column" -> "k")(strict.next())
    val going = new RunningChanges(changes(", on_error => 'drop'"), checkpoint)
    assert(going.next() == Seq("a 1 insert"))
    assert(dropped(going) == 1)
    going.stop()
  }

  test("an update whose old row is missing is refused where old rows are needed") {
    val stream = new RawStream(spark, "feed", "op STRING, k STRING, n INT")
    val call = "from_changelog(TABLE(feed), 'op', 'k', on_error => 'drop')"
    val running = new RunningChanges(sums(call), directory())
    stream.add("c a 1")
    assert(running.next() == Seq("a 1 insert"))
    stream.add("u a 2")
    checkError("CHANGELOG_BEFORE_IMAGE_MISSING", "column" -> "op", "value" -> "u")(running.next())
  }

  test("each source of a query counts its own dropped rows") {
    val stream = new RawStream(spark, "feed", "op STRING, k STRING, n INT")
    val call = "SELECT * FROM from_changelog(TABLE(feed), 'op', on_error => 'drop')"
    val query = s"($call WHERE k = 'a') UNION ALL ($call WHERE k = 'b')"
    val running =
      new RunningChanges(spark.sql(s"SELECT * FROM to_changelog(TABLE($query))"), directory())
    stream.add("+I a 1", "? a 1", "+I b 1")
    assert(running.next() == Seq("a 1 insert", "b 1 insert"))
    assert(dropped(running) == 1)
    assert(dropped(running, "from_changelog_2") == 1)
    running.stop()
  }

  test("an expression that fails in ANSI mode is named, and the query goes on once mended") {
    val stream = new RawStream(spark, "feed", "op STRING, k STRING, n INT")
    val checkpoint = directory()
    def shares(share: String) = spark.sql(s"""SELECT * FROM to_changelog(TABLE(
         |  SELECT k, $share AS share FROM from_changelog(TABLE(feed), 'op') GROUP BY k))
         |""".stripMargin)
    val strict = new RunningChanges(shares("6 / sum(n)"), checkpoint)
    stream.add("+I a 2", "+I b 3")
    assert(strict.next() == Seq("a 3.0 insert", "b 2.0 insert"))
    stream.add("+I a -2", "-D b 3")
    val failure = intercept[Exception](strict.next())
    val named =
      Iterator.iterate[Throwable](failure)(_.getCause).takeWhile(_ != null).collectFirst {
        case error: SparkThrowable if error.getCondition == "DIVIDE_BY_ZERO" =>
          error.getQueryContext.head.fragment
      }
    assert(named.contains("6 / sum(n)"))

    val mended = new RunningChanges(shares("try_divide(6, sum(n))"), checkpoint)
    val changes = Seq("a 3.0 update_preimage", "a NULL update_postimage", "b 2.0 delete")
    assert(mended.next() == changes)
    mended.stop()
  }

  test("a batch refuses and drops the same rows") {
    spark
      .sql("SELECT * FROM VALUES ('+I', 'a', 1), ('?', 'b', 2), ('+I', NULL, 3) AS t(op, k, n)")
      .createOrReplaceTempView("old")
    def read(arguments: String) =
      spark.sql(s"SELECT k FROM from_changelog(TABLE(old), 'op', 'k'$arguments)").collect()
    changelogError(read(""))
    assert(read(", on_error => 'drop'").map(_.getString(0)).toSeq == Seq("a"))
    val insertOnly = "SELECT count(*) FROM from_changelog(TABLE(old), key => 'k')"
    checkError("CHANGELOG_KEY_NULL", "column" -> "k")(spark.sql(insertOnly).collect())
  }
}
