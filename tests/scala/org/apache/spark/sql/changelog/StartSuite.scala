// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.analysis.LowerSources
import org.apache.spark.sql.changelog.plans.ChangelogOutput
import org.apache.spark.sql.changelog.testing._

/** What `start()` accepts and what it refuses: never a failure, or a wrong row, in a batch. */
class StartSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {

  private def views(): Unit = {
    new RawStream(spark, "raw", "op STRING, id INT, city STRING, fare INT, at TIMESTAMP")
    new RawStream(spark, "plain", "id INT, city STRING, at TIMESTAMP")
    spark.sql("SELECT * FROM from_changelog(TABLE(raw), 'op', 'id')").createOrReplaceTempView("t")
    spark
      .range(3)
      .selectExpr("CAST(id AS INT) AS id", "'x' AS city")
      .createOrReplaceTempView("fixed")
    spark.sql("SELECT * FROM from_changelog(TABLE(plain))").createOrReplaceTempView("inserts")
    spark.sql("SELECT '+I' AS op, 1 AS id").createOrReplaceTempView("old")
  }

  private def start(sql: String): Unit =
    spark
      .sql(s"SELECT * FROM to_changelog(TABLE($sql))")
      .writeStream
      .format("noop")
      .start()
      .stop()

  /** Plans a query as `start()` does, and expects the operators that keep it up to date. */
  private def accept(sql: String): Unit = withClue(sql) {
    val query = spark.sql(s"SELECT * FROM to_changelog(TABLE($sql))").queryExecution.analyzed
    val planned = spark.sessionState.optimizer.execute(LowerSources(query))
    assert(planned.exists(_.isInstanceOf[ChangelogOutput]), planned)
  }

  private val accepted = Seq(
    "SELECT * FROM t a JOIN t b ON a.id = b.fare",
    "SELECT * FROM t LEFT JOIN plain USING (id)",
    "SELECT * FROM t JOIN fixed USING (id)",
    "SELECT * FROM t WHERE id IN (SELECT id FROM inserts)",
    "SELECT * FROM t WHERE NOT EXISTS (SELECT 1 FROM inserts i WHERE i.id = t.id)",
    "SELECT *, row_number() OVER (PARTITION BY city ORDER BY fare) AS r FROM t",
    "SELECT *, sum(fare) OVER (PARTITION BY city) AS s FROM t",
    "SELECT city, count(DISTINCT fare) FROM t GROUP BY city",
    "SELECT city, collect_list(fare) FROM t GROUP BY city",
    "SELECT city, percentile(fare, 0.5) FROM t GROUP BY city",
    "SELECT city, any_value(fare) FROM t GROUP BY city",
    "SELECT id, city FROM t EXCEPT SELECT id, city FROM plain",
    "SELECT id FROM t INTERSECT SELECT id FROM plain",
    "SELECT * FROM t",
    "SELECT * FROM plain",
    "SELECT count(*) FROM plain",
    "SELECT city, count(*) AS c, avg(fare) FROM t GROUP BY city HAVING c > 1",
    "SELECT c, count(*) FROM (SELECT city, count(*) AS c FROM t GROUP BY city) GROUP BY c",
    "SELECT DISTINCT city FROM t",
    "SELECT id, city FROM plain UNION ALL SELECT id, city FROM fixed",
    "SELECT fixed.id, t.fare FROM fixed LEFT JOIN t ON fixed.id = t.id",
    "SELECT city FROM t UNION ALL SELECT city FROM plain",
    "SELECT city FROM t UNION SELECT city FROM plain",
    "SELECT * FROM t ORDER BY fare",
    "WITH a AS (SELECT city, sum(fare) AS s FROM t GROUP BY city) SELECT * FROM a WHERE s > 1",
    "SELECT id, x FROM t LATERAL VIEW explode(array(fare, id)) AS x",
    "SELECT city, id, sum(fare) FROM t GROUP BY ROLLUP (city, id)",
    "SELECT * FROM (SELECT *, rank() OVER (PARTITION BY city ORDER BY fare) AS r FROM t) WHERE r < 3",
    "SELECT * FROM t LIMIT 3",
    "SELECT * FROM t ORDER BY fare LIMIT 3 OFFSET 2",
    "SELECT * FROM t ORDER BY fare OFFSET 2",
    "SELECT * FROM t WHERE fare = (SELECT fare FROM t ORDER BY id LIMIT 1 OFFSET 1)",
    "SELECT window(at, '1 hour').start AS s, count(*) FROM t GROUP BY window(at, '1 hour')")

  test("queries Spark refuses on a stream start below to_changelog") {
    views()
    assert(spark.conf.get("spark.sql.streaming.unsupportedOperationCheck") == "true")
    start(accepted.head)
    accepted.foreach(accept)
  }

  /** Queries that run one day. Each either starts or is refused here, with the node's name. */
  private val refused = Seq(
    "SELECT * FROM observed" -> "CollectMetrics",
    "SELECT map(city, 1) AS m, median(fare) FROM t GROUP BY 1" -> "ChangelogAggregate")

  test("a node that can't be executed yet is refused at start, by name and place") {
    views()
    val counted = org.apache.spark.sql.functions.expr("max(fare)").as("c")
    spark.table("t").observe("rows", counted).createOrReplaceTempView("observed")
    refused.foreach { case (sql, node) =>
      withClue(sql) {
        val error = checkError("CHANGELOG_NOT_EXECUTABLE_YET")(start(sql))
        assert(error.getMessageParameters.get("node").startsWith(node), error)
        assert(error.getMessageParameters.get("place").nonEmpty, error)
      }
    }
  }

  test("the place leads from the node up to the root") {
    views()
    val sql =
      """SELECT c, count(*) FROM (
        |  SELECT city AS c FROM plain UNION ALL
        |  SELECT max(city) FROM t GROUP BY map(city, 1) HAVING median(fare) > 1)
        |GROUP BY c""".stripMargin
    checkError(
      "CHANGELOG_NOT_EXECUTABLE_YET",
      "node" -> "ChangelogAggregate [_groupingmapsort]",
      "place" -> ("input of Filter ((median(fare) IS NOT NULL) AND (median(fare) > 1.0)), input of Project, right input of Union, " +
        "input of ChangelogAggregate [c], input of ToChangelog retract"))(start(sql))
  }

  test("a random value is refused at start, over rows that only come too") {
    views()
    Seq(
      "SELECT id, rand() AS r FROM t" -> "rand()",
      "SELECT id, rand() AS r FROM plain" -> "rand()",
      "SELECT id FROM plain WHERE rand(5) < 0.5" -> "rand(5)",
      "SELECT count(*) FROM (SELECT DISTINCT city, uuid() FROM plain)" -> "uuid()",
      "SELECT id, shuffle(array(1, 2)) AS s FROM plain" -> "shuffle(ARRAY(1, 2))",
      "SELECT id, r FROM plain JOIN (SELECT rand() AS r FROM range(3)) ON r < id" -> "rand()",
      "SELECT id FROM plain TABLESAMPLE (50 PERCENT)" -> "a random sample").foreach {
      case (sql, expression) =>
        withClue(sql) {
          checkError("CHANGELOG_NONDETERMINISTIC_EXPRESSION", "expression" -> expression) {
            start(sql)
          }
        }
    }
  }

  test("what time it is, but in a condition, is refused at start and by EXPLAIN") {
    views()
    Seq(
      "SELECT id, now() AS x FROM t" -> "now()",
      "SELECT id, current_timestamp() AS x FROM t" -> "current_timestamp()",
      "SELECT id FROM t WHERE coalesce(at < localtimestamp(), true)" -> "localtimestamp()",
      "SELECT id, now() AS x FROM plain" -> "now()",
      "SELECT count(*) FROM (SELECT DISTINCT city, now() FROM plain)" -> "now()",
      "SELECT id FROM t WHERE datediff(current_date(), at) <=> fare" -> "current_date()",
      "SELECT id FROM t WHERE month(current_date()) > 3" -> "current_date()",
      "SELECT id FROM t WHERE current_time() > TIME'12:00:00'" -> "current_time(6)",
      "SELECT city, count(*) FILTER (WHERE at < current_date()) FROM t GROUP BY city" ->
        "current_date()",
      "SELECT l.id FROM t l LEFT JOIN t r ON l.fare = r.fare AND l.at < now() - INTERVAL 1 HOUR" ->
        "now()",
      "SELECT id, unix_timestamp() AS x FROM t" -> "current_timestamp()",
      "SELECT id, current_time() AS x FROM t" -> "current_time(6)").foreach {
      case (sql, expression) =>
        withClue(sql) {
          val condition = "CHANGELOG_PASSING_TIME"
          checkError(condition, "expression" -> expression)(start(sql))
          checkError(condition, "expression" -> expression) {
            spark.sql(s"EXPLAIN CHANGELOG $sql").collect()
          }
        }
    }
    accept("SELECT id FROM plain WHERE current_date() > DATE '2000-01-01'")
    accept("SELECT id FROM t WHERE at < localtimestamp() OR fare > 3")
    accept("SELECT id FROM t WHERE NOT at = current_date()")
    accept("SELECT id FROM t WHERE at > CAST('yesterday' AS DATE)")
    accept(
      "SELECT city, max(at) AS m FROM t GROUP BY city HAVING max(at) < CAST('today' AS DATE)")
    accept("SELECT id FROM t WHERE NOT at <=> current_date()")
    accept(
      "SELECT id FROM t WHERE CASE WHEN at < localtimestamp() THEN fare > 1 ELSE fare > 3 END")
    accept("SELECT city, count(*) FROM t WHERE at < DATE '2030-01-01' GROUP BY city")
  }

  test("a node with no meaning for changes is refused at start") {
    views()
    spark.table("t").dropDuplicates("city").createOrReplaceTempView("firsts")
    import spark.implicits._
    val mapped = spark.table("t").select("id").as[Int].mapPartitions(ids => ids)
    mapped.createOrReplaceTempView("mapped")
    checkError("CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES", "consumer" -> "MapPartitions") {
      start("SELECT * FROM mapped")
    }
    checkError("CHANGELOG_NODE_NOT_SUPPORTED", "node" -> "ScriptTransformation") {
      start("SELECT TRANSFORM (id) USING 'cat' AS (x STRING) FROM t")
    }
  }

  test("a changelog that is written without to_changelog is refused by Spark") {
    views()
    val error = intercept[org.apache.spark.sql.AnalysisException] {
      spark.table("t").writeStream.format("noop").start()
    }
    assert(error.getMessage.contains("writeStream"))
  }

  test("what can't be run at once names what is missing") {
    views()
    val sums = spark.sql("SELECT city, sum(fare) AS s FROM t GROUP BY city")
    Seq[() => Any](
      () => sums.collect(),
      () => sums.show(),
      () => sums.cache().count(),
      () => sums.explain(),
      () => sums.write.format("noop").mode("overwrite").save()).foreach { run =>
      checkError("CHANGELOG_CHANGES_NOT_ASKED_FOR", "reader" -> "from_changelog")(run())
    }
    sums.unpersist()
    val changes =
      spark.sql("SELECT * FROM to_changelog(TABLE(SELECT city FROM t)) WHERE city > 'a'")
    checkError("CHANGELOG_CHANGES_NOT_STARTED")(changes.collect())
    // Spark's own streams are told by Spark
    val stock = intercept[org.apache.spark.sql.AnalysisException](spark.table("plain").collect())
    assert(stock.getMessage.contains("must be executed with writeStream.start()"))
  }

  test("state in pages is refused at start where attempts are to have files of their own") {
    views()
    val format = "spark.sql.streaming.stateStore.checkpointFormatVersion"
    val stateful = "SELECT city, count(*) FROM t GROUP BY city"
    val checkpoint = QuickFileSystem.temporaryDirectory().getPath
    def startOn(checkpoint: String): Unit = {
      val query = spark
        .sql(s"SELECT * FROM to_changelog(TABLE($stateful))")
        .writeStream
        .format("noop")
        .option("checkpointLocation", checkpoint)
        .start()
      try query.processAllAvailable()
      finally query.stop()
    }
    val raw =
      new RawStream(spark, "raw", "op STRING, id INT, city STRING, fare INT, at TIMESTAMP")
    spark.sql("SELECT * FROM from_changelog(TABLE(raw), 'op', 'id')").createOrReplaceTempView("t")
    raw.add("+I 1 Oslo 5 NULL")
    def refused(body: => Unit): Unit = {
      val error =
        checkError("CHANGELOG_CHECKPOINT_FORMAT_NOT_SUPPORTED", "version" -> "2")(body)
      assert(error.getMessage.contains("RocksDBStateStoreProvider"), error)
    }
    Variant.Paged.foreach { case (key, value) => spark.conf.set(key, value) }
    try {
      startOn(checkpoint)
      spark.conf.set(format, "2")
      refused(start(stateful))
      refused(start("SELECT a.id FROM t a JOIN t b ON a.id = b.fare"))
      start("SELECT id FROM plain")
    } finally Variant.Paged.keys.foreach(spark.conf.unset)
    // the checkpoint was begun with it
    try refused(startOn(checkpoint))
    finally spark.conf.unset(format)
  }
}
