// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.endtoend

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** Queries over a Delta table, a Kafka topic and files, each of which is idle now and then. */
class MixedSourcesSuite extends AnyFunSuite with ChangelogSession {

  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.DeltaConf)

  private lazy val oracle = new Oracle(spark)

  private val a = Feed("a", "id INT, g STRING, v INT", Seq("id"))
  private val b = Feed("b", "id INT, g STRING, v INT")
  private val c = Feed("c", "id INT, g STRING, v INT", Seq("id"), upsert = true)

  private val steps = Seq(
    Step.of(a -> Seq("+I 1 x 5", "+I 2 y 3")),
    Step.of(b -> Seq("+I 1 x 5", "+I 3 NULL 4", "+I 1 x 5")),
    Step.of(),
    Step.of(c -> Seq("+I 1 x 5", "+I 2 z 1"), a -> Seq("-U 1 x 5", "+U 1 z 6")),
    Step.of(b -> Seq("-D 1 x 5"), c -> Seq("-D 1 x 5", "+U 2 y 3")),
    Step.of(a -> Seq("-D 2 y 3"), b -> Seq("+I 2 y 3"), c -> Seq("+I 3 x 5")))

  private val queries = Seq(
    "SELECT g, v FROM a UNION SELECT g, v FROM b UNION SELECT g, v FROM c",
    "(SELECT v FROM a UNION ALL SELECT v FROM c) EXCEPT ALL SELECT v FROM b",
    "SELECT a.g, count(b.v), sum(c.v) FROM a LEFT JOIN b ON a.id = b.id FULL JOIN c ON c.id = a.id GROUP BY a.g")

  test("a Delta table, a Kafka topic and files are kept together, over restarts") {
    queries.foreach { sql =>
      val sources = Seq(FeedDeltaTables, FeedTopics, FeedFiles.Parquet)
      withClue(sql) {
        oracle.check(
          Program(Seq(a, b, c), sql, steps),
          Variant(restart = true, sources = sources))
      }
    }
  }
}
