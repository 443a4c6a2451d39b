// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.microbatch

import java.nio.file.Files

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper

import org.apache.spark.sql.changelog.testing.{ChangelogSession, Feed, QueryLife}

/** A query has as many partitions as the user says, or as suit the cores, and keeps them. */
class StatePartitionsSuite extends AnyFunSuite with ChangelogSession {
  private val Setting = "spark.sql.changelog.state.partitions"
  private val Shuffles = "spark.sql.shuffle.partitions"
  private val t = Feed("t", "id INT, g STRING, v INT")
  private val sql = "SELECT g, count(*) AS n FROM (SELECT g, v FROM t GROUP BY g, v) GROUP BY g"

  private def run(life: QueryLife, conf: (String, String)*): Unit = {
    val session = life.session()
    session.conf.unset(Shuffles)
    conf.foreach { case (key, value) => session.conf.set(key, value) }
    life.run(session.sql(s"SELECT * FROM to_changelog(TABLE($sql))"))
    assert(life.result == life.expected(sql))
  }

  private def partitions(life: QueryLife): Seq[Int] = Seq(0, 1).map { operator =>
    val folders = Files.list(life.checkpoint.resolve(s"state/$operator"))
    try folders.filter(_.getFileName.toString.forall(_.isDigit)).count().toInt
    finally folders.close()
  }

  private def check(first: Seq[(String, String)], expected: Int): Unit = {
    val life = new QueryLife(spark, t)
    life.add(t, "+I 1 a 10", "+I 2 b 20", "+I 3 c 5")
    run(life, first: _*)
    assert(partitions(life) == Seq(expected, expected))
    life.add(t, "-D 1 a 10", "+I 4 b 7")
    run(life, Setting -> "7", Shuffles -> "9")
    assert(partitions(life) == Seq(expected, expected))
  }

  private val cores = spark.sparkContext.defaultParallelism

  test("nothing is set: one for each core, and as many after a restart under other settings") {
    assert(cores == 2)
    check(Nil, cores)
  }

  test("spark.sql.shuffle.partitions is set") {
    check(Seq(Shuffles -> "3"), 3)
  }

  test("the extension's own setting is set, and Spark's to something else") {
    check(Seq(Setting -> "4", Shuffles -> "3"), 4)
  }

  test("a query that does not run says the same in EXPLAIN, if nothing is set") {
    val life = new QueryLife(spark, t)
    def reason(session: SparkSession) =
      session
        .sql(s"EXPLAIN CHANGELOG $sql")
        .head()
        .getString(0)
        .linesIterator
        .exists(_.contains(s"state in $cores partitions, one for each core"))
    val session = life.session()
    assert(!reason(session))
    session.conf.unset(Shuffles)
    assert(reason(session))
  }

  private val shuffling = Seq(
    "SELECT a.id, b.v FROM t a LEFT JOIN t b ON a.g = b.g AND a.v < b.v",
    "WITH s AS (SELECT g, sum(v) AS v FROM t GROUP BY g) SELECT a.g FROM s a JOIN s b ON a.v < b.v",
    "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY v, id) AS r FROM t) WHERE r <= 2",
    "SELECT g, count(DISTINCT v), min(v) FROM t GROUP BY g",
    "SELECT g FROM t UNION SELECT CAST(v AS STRING) FROM t EXCEPT SELECT 'x'",
    "SELECT id, sum(v) OVER (PARTITION BY g) FROM t WHERE v IN (SELECT max(v) FROM t GROUP BY g)")

  for (sql <- shuffling) test(s"no shuffle is to Spark's default of 200: $sql") {
    val life = new QueryLife(spark, t)
    val session = life.session()
    session.conf.unset(Shuffles)
    life.add(t, "+I 1 a 10", "+I 2 a 20")
    val query =
      life.start(session.sql(s"SELECT * FROM to_changelog(TABLE($sql))"))
    try {
      query.processAllAvailable()
      val batch = query.asInstanceOf[StreamingQueryWrapper].streamingQuery.lastExecution
      val numbers = batch.executedPlan.collect { case shuffle: ShuffleExchangeExec =>
        shuffle.numPartitions
      }
      assert(numbers.nonEmpty && numbers.forall(_ <= cores), batch.executedPlan)
    } finally query.stop()
  }

  test("other queries of the session have Spark's default") {
    val session = new QueryLife(spark, t).session()
    session.conf.unset(Shuffles)
    run(new QueryLife(spark, t))
    assert(session.sessionState.conf.numShufflePartitions == 200)
    assert(!session.sessionState.conf.contains(Setting))
  }
}
