// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package io.sparkchangelog.testkit

import java.nio.file.Files

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Row

import org.apache.spark.sql.changelog.testing.ChangelogSession

/** What the test kit for ScalaTest accepts, and what it finds. */
class ChangelogChecksSuite extends AnyFunSuite with ChangelogSession with ChangelogChecks {

  private val right = """
    -- Totals follow their rides.
    feed rides(city STRING, fare INT)
    query SELECT city, sum(fare) AS total FROM rides GROUP BY city
    rides +I Oslo 5
    & rides +I Rome 1
    -> +I Rome 1
    -> +I Oslo 5
    rides +I Oslo 2
    -> -U Oslo 5
    -> +U Oslo 7
    rides -D Rome 1
    -> -D Rome 1
    """

  private def failure(text: String): String =
    intercept[AssertionError](checkChangelog(text, cuts = 0)).getMessage

  test("a city without rides has no total") {
    checkChangelog("""
      feed rides(city STRING, fare INT)
      query SELECT city, sum(fare) AS total FROM rides GROUP BY city
      rides +I Oslo 5
      -> +I Oslo 5
      rides -D Oslo 5
      -> -D Oslo 5
    """)
  }

  test("a query is run as written and in other batches") {
    checkChangelog(right, cuts = 3, seed = 1)
  }

  test("other changes than those expected fail, and are told with the batch") {
    val told = failure(right.replace("+U Oslo 7", "+U Oslo 8"))
    assert(told.startsWith("batch 2 of 3 of\n"))
    assert(told.contains("expected:\n  -> +U Oslo 8\n  -> -U Oslo 5\nemitted:\n  -> +U Oslo 7\n"))
    assert(failure(right.replace("    -> -D Rome 1\n", "")).contains("expected:\n  nothing"))
  }

  test("without expected changes the rows are compared with batch Spark") {
    checkChangelog(right.linesIterator.filterNot(_.contains("->")).mkString("\n"))
  }

  test("functions are registered in all sessions") {
    inChangelogSessions(_.udf.register("shout", (city: String) => s"$city!"))
    checkChangelog("""
      feed cities(name STRING)
      query SELECT shout(name) AS loud FROM cities
      cities +I Oslo
      -> +I Oslo!
    """)
  }

  test("a query that must be refused is, and with the condition that is expected") {
    val text = """
      feed rides(city STRING, fare INT)
      query SELECT city, rand() AS chance FROM rides
      error CHANGELOG_NONDETERMINISTIC_EXPRESSION
      """
    checkChangelog(text)
    assert(failure(text.replace("CHANGELOG_NON", "OTHER_NON")).startsWith("expected OTHER_NON"))
    assert(failure(text.replace("rand()", "fare")).startsWith("not refused with"))
  }

  test("the program of the Scala quickstart keeps a table current") {
    val inbox = Files.createTempDirectory("orders")
    val checkpoint = Files.createTempDirectory("checkpoint")
    val schema = "op STRING, id INT, customer STRING, amount INT"
    spark.readStream.schema(schema).csv(inbox.toString).createOrReplaceTempView("raw")

    val totals = spark.sql("""
      SELECT * FROM to_changelog(TABLE(
        SELECT customer, sum(amount) AS total
        FROM from_changelog(TABLE(raw), change_type => 'op', key => array('id'))
        GROUP BY customer))""")
    val writer = totals.writeStream.format("changelog-memory").queryName("totals")
    val query = writer.option("checkpointLocation", checkpoint.toString).start()

    Files.writeString(inbox.resolve("1.csv"), "+I,1,Ada,30\n+I,2,Ben,20\n")
    query.processAllAvailable()
    Files.writeString(inbox.resolve("2.csv"), "-U,1,Ada,30\n+U,1,Ada,50\n-D,2,Ben,20\n")
    query.processAllAvailable()
    spark.table("totals").show()
    query.stop()
    assert(spark.table("totals").collect().toSeq == Seq(Row("Ada", 50L)))
  }
}
