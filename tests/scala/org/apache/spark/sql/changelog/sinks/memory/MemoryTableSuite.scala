// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.memory

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/** The rows of a query, readable in SQL under its name. */
class MemoryTableSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  private val rides = Feed("rides", "id INT, city STRING, fare DOUBLE", key = Seq("id"))
  private val bag = rides.copy(name = "bag", key = Nil)

  private def kept(sql: String, name: String, feed: Feed = rides) =
    new KeptQuery(spark, feed, sql, spark.table(name))

  for (mode <- Seq("retract", "upsert")) test(s"the view equals the query, mode $mode") {
    val name = s"totals_$mode"
    val query =
      kept("SELECT city, sum(fare) AS total FROM rides GROUP BY city", name)
    val start =
      () => query.start("changelog-memory", Map("queryName" -> name), s", mode => '$mode'")
    start()
    assert(spark.table(name).isEmpty, "it is there before there are rows")
    query.check("+I 1 Oslo 5", "+I 2 Rome 7", "+I 3 NULL 1")
    query.check("-U 1 Oslo 5", "+U 1 Rome 5", "-D 3 NULL 1")
    query.stop()
    assert(spark.sql(s"SELECT total FROM $name WHERE city = 'Rome'").head().getDouble(0) == 12)
    start()
    query.check("+I 4 Oslo 5")
    query.forgetLastBatch()
    start()
    query.check()
    query.stop()
  }

  test("rows without a key are there as often as they came") {
    val query = kept("SELECT city, fare FROM bag", "bags", bag)
    query.start("changelog-memory", Map("queryName" -> "bags"))
    query.check("+I 1 Oslo 5", "+I 2 Oslo 5", "+I 3 Oslo 5", "+I 4 NULL 0.0", "+I 5 NaN NaN")
    query.check("-D 2 Oslo 5", "-D 4 NULL -0.0", "-D 5 NaN NaN")
    query.check("-D 1 Oslo 5", "-D 3 Oslo 5")
    query.stop()
  }

  test("a column may be called as the change type is, which then is called otherwise") {
    val query = kept("SELECT id, city AS _change_type FROM rides", "named")
    val start = ", mode => 'upsert', change_type => 'kind'"
    query.start("changelog-memory", Map("queryName" -> "named"), start)
    query.check("+I 1 Oslo 5", "+I 2 Rome 7")
    query.check("-U 1 Oslo 5", "+U 1 Rome 5", "-D 2 Rome 7")
    query.stop()
    assert(spark.table("named").columns.toSeq == Seq("id", "_change_type"))
  }

  test("a query that starts anew starts with an empty view") {
    def run(changes: String*): Unit = {
      val query = kept("SELECT id FROM rides", "anew")
      query.start("changelog-memory", Map("queryName" -> "anew"))
      query.check(changes: _*)
      query.stop()
    }
    run("+I 1 Oslo 5")
    run("+I 2 Oslo 5")
  }

  test("a query does not go on without the rows it had") {
    val query = kept("SELECT id FROM rides", "lost")
    query.start("changelog-memory", Map("queryName" -> "lost"))
    query.check("+I 1 Oslo 5")
    query.stop()
    // as in another process
    CurrentRows.reset(s"${spark.sessionUUID}/lost")
    val lost = Seq("batch" -> "1", "table" -> "lost")
    checkError("CHANGELOG_SINK_MEMORY_LOST", lost: _*) {
      query.start("changelog-memory", Map("queryName" -> "lost"))
    }
    val checkpoints = "spark.sql.streaming.checkpointLocation"
    spark.conf.set(checkpoints, query.checkpoint.getParent)
    try
      checkError("CHANGELOG_SINK_MEMORY_LOST", "batch" -> "1") {
        query
          .changes()
          .writeStream
          .format("changelog-memory")
          .queryName(query.checkpoint.getName)
          .start()
      }
    finally spark.conf.unset(checkpoints)
  }
}
