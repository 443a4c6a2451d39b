// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.table

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.DataFrame

import org.apache.spark.sql.changelog.testing._
import org.apache.spark.sql.changelog.views.IcebergSession

/** Iceberg tables kept by the sink `changelog-table`. */
class IcebergSinkSuite extends AnyFunSuite with IcebergSession with ErrorChecks {
  private val rides = Feed("rides", "id INT, city STRING, fare INT", key = Seq("id"))
  private val plain = Feed("plain", "id INT, city STRING", insertOnly = true)
  private val byCity = "SELECT city, count(*) AS n, sum(fare) AS total FROM rides GROUP BY city"

  private def options(table: String, more: (String, String)*) =
    Map("table" -> table, "provider" -> "iceberg", "createTable" -> "true") ++ more

  private def commits(table: String): Long =
    current(s"$table.snapshots").count()

  /** The rows of a table. The session of the query has its own catalog, and this one's remembers older snapshots. */
  private def current(table: String): DataFrame = {
    run(s"REFRESH TABLE ${table.stripSuffix(".snapshots")}")
    spark.table(table)
  }

  test("a batch of rows without a key is written once, and the snapshot tells it") {
    val table = "ice.db.appended"
    val query = new KeptQuery(spark, plain, "SELECT id, city FROM plain", current(table))
    query.start("changelog-table", options(table))
    query.check("+I 1 Oslo", "+I 2 Rome", "+I 2 Rome")
    query.check("+I 3 NULL")
    assert(commits(table) == 2)
    query.forgetLastBatch()
    query.start("changelog-table", options(table))
    query.processAll()
    query.compare()
    assert(commits(table) == 2)
    // what others commit meanwhile hides nothing
    run(s"INSERT INTO other.db.appended VALUES (9, 'Bern')")
    run(s"DELETE FROM other.db.appended WHERE id = 9")
    query.forgetLastBatch()
    query.start("changelog-table", options(table))
    query.processAll()
    query.compare()
    query.check("+I 3 NULL")
    assert(commits(table) == 5)
    query.stop()
    val batches = current(s"$table.snapshots").selectExpr("summary['spark-changelog.batch']")
    assert(batches.collect().flatMap(row => Option(row.getString(0))).sorted.toSeq == Seq("0", "1", "2"))
  }

  ways.foreach { case (way, format) =>
    test(s"changes by key and by count, with $way") {
      val (keyed, counted) = ("ice.db.keyed", "ice.db.counted")
      run(s"CREATE TABLE $keyed (city STRING, n BIGINT, total BIGINT) USING iceberg $format")
      run(
        s"CREATE TABLE $counted (city STRING, fare INT) USING iceberg PARTITIONED BY (city) $format")
      Seq(
        (keyed, byCity, options(keyed)),
        (counted, "SELECT city, fare FROM rides", options(counted, "countRows" -> "true")))
        .foreach { case (table, text, options) =>
          val query = new KeptQuery(spark, rides, text, current(table))
          query.start("changelog-table", options)
          query.check(
            "+I 1 Oslo 5",
            "+I 2 Rome 7",
            "+I 3 NULL 1",
            "+I 4 NULL NULL",
            "+I 5 Oslo 5")
          query.check("-U 1 Oslo 5", "+U 1 Rome 5", "-D 3 NULL 1")
          query.forgetLastBatch()
          query.start("changelog-table", options)
          query.processAll()
          query.compare()
          query.check("+I 6 Oslo 1", "-D 4 NULL NULL")
          query.stop()
          run(s"DROP TABLE $table")
        }
    }
  }
}
