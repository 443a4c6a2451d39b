// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.jdbc

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.DataFrame

import org.apache.spark.sql.changelog.testing._

/** A batch that comes again changes nothing; one that should not come is refused. */
class JdbcReplaySuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  private val database = Map(
    "url" -> "jdbc:h2:mem:replay;DB_CLOSE_DELAY=-1",
    "user" -> "tester",
    "password" -> "",
    "createTable" -> "true")
  private val plain = Feed("plain", "id INT, city STRING", insertOnly = true)

  private def read(table: String): DataFrame =
    spark.read.format("jdbc").options(database).option("dbtable", table).load()

  private def execute(sql: String): Unit = DatabaseTable.execute(database, sql)

  for (partitions <- Seq(1, 3)) {
    test(s"a batch that was written is not written again, $partitions partitions") {
      val table = s"rows_$partitions"
      val query = new KeptQuery(spark, plain, "SELECT id, city FROM plain", read(table))
      val options =
        database ++ Map("dbtable" -> table, "numPartitions" -> partitions.toString)
      try {
        query.start("changelog-jdbc", options)
        query.check("+I 1 Oslo", "+I 2 Oslo", "+I 3 Rome", "+I 4 Bern", "+I 5 NULL")
        query.check("+I 1 Oslo", "+I 6 Oslo", "+I 7 Rome", "+I 8 Bern")
        query.forgetLastBatch()
        // not even if it would be spread in another way
        query.start("changelog-jdbc", options + ("numPartitions" -> "2"))
        query.check()
        query.check("+I 9 Oslo")
      } finally query.stop()
    }
  }

  test("a partition that failed is written when the batch comes again, the others are not") {
    val query = new KeptQuery(spark, plain, "SELECT id, city FROM plain", read("half"))
    val options = database ++ Map("dbtable" -> "half", "numPartitions" -> "3")
    try {
      query.start("changelog-jdbc", options)
      query.check("+I 1 Oslo", "+I 2 Oslo", "+I 3 Rome", "+I 4 Bern", "+I 5 NULL")
      execute("""ALTER TABLE half ADD CONSTRAINT small CHECK ("id" < 13)""")
      query.add((6 to 13).map(id => s"+I $id Oslo"): _*)
      intercept[Exception](query.processAll())
      val written = read("half").count()
      assert(written > 5 && written < 13, "one partition should have failed, and not all")
      execute("ALTER TABLE half DROP CONSTRAINT small")
      query.start("changelog-jdbc", options + ("numPartitions" -> "1"))
      query.check()
    } finally query.stop()
  }

  test("a batch older than what the table holds is refused") {
    val query = new KeptQuery(spark, plain, "SELECT id, city FROM plain", read("newer"))
    try {
      query.start("changelog-jdbc", database + ("dbtable" -> "newer"))
      query.check("+I 1 Oslo")
      execute("UPDATE spark_changelog_ledger SET batch_id = 7 WHERE target = 'newer'")
      query.add("+I 2 Oslo")
      checkError(
        "CHANGELOG_SINK_BATCH_SUPERSEDED",
        "batch" -> "1",
        "stored" -> "7",
        "table" -> "newer")(query.processAll())
    } finally query.stop()
  }

  test("a key that two rows have is refused when they meet in a batch") {
    // what is done to the changes after to_changelog hides what is known of their keys
    val query = new KeptQuery(spark, plain, "SELECT id, city FROM plain", read("twice"))
    try {
      query.start(
        "changelog-jdbc",
        database ++ Map("dbtable" -> "twice", "key" -> "place"),
        prepare = _.selectExpr("upper(city) AS place", "id", "_change_type"))
      query.add("+I 1 Oslo", "+I 2 Oslo", "+I 3 Rome")
      checkError(
        "CHANGELOG_SINK_ROWS_OF_ONE_KEY",
        "rows" -> "2",
        "key" -> "{\"place\":\"OSLO\"}")(query.processAll())
    } finally query.stop()
  }
}
