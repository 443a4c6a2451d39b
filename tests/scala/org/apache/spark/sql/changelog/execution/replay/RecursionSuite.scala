// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** Recursive common table expressions over rows that change. */
class RecursionSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Interpreted)

  private lazy val oracle = new Oracle(spark)
  private val edges = Feed("edges", "src INT, dst INT")
  private val names = Feed("names", "id INT, name STRING", Seq("id"))

  private def step(edge: String*)(name: String*): Step = Step.of(edges -> edge, names -> name)

  /** Paths that appear, fork, become a cycle, and break. */
  private val steps = Seq(
    step("+I 1 2", "+I 2 3", "+I 7 8")("+I 1 a", "+I 2 b", "+I 3 c"),
    step("+I 2 4", "+I 3 4")("+I 4 d"),
    step()("-U 4 d", "+U 4 e"),
    step("+I 4 1", "+I 2 4")(),
    step("-D 2 3", "-U 7 8", "+U NULL 8")("-D 3 c"),
    step("-D 2 4", "-D 1 2")())

  private val walk = """WITH RECURSIVE r(n, depth) AS (
    |  SELECT id, 0 FROM names WHERE name < 'c'
    |  UNION ALL
    |  SELECT e.dst, depth + 1 FROM r JOIN edges e ON e.src = r.n WHERE depth < 3)
    |""".stripMargin

  private def check(sql: String, variants: Seq[Variant] = Seq(Variant())): Unit =
    Share.check(oracle, Program(Seq(edges, names), sql, steps), variants)

  test("a recursion over two tables that change, with each state store and restarts") {
    check(s"$walk SELECT * FROM r", Variant.all.tail)
  }

  test("what a recursion gives is grouped, joined and kept by key") {
    check(
      s"$walk SELECT n, count(*) AS paths, min(depth) AS nearest FROM r GROUP BY n",
      Seq(Variant("upsert", Seq("n"))))
    check(s"$walk SELECT name, depth FROM r LEFT JOIN names ON id = n")
  }

  test("a recursion from a constant has rows before there are any, and over what is computed") {
    check("""WITH RECURSIVE
      |  out(src, n) AS (SELECT src, max(dst) FROM edges GROUP BY src),
      |  r(n) AS (SELECT 1 UNION ALL SELECT out.n FROM r JOIN out ON out.src = r.n WHERE out.n > r.n)
      |SELECT * FROM r""".stripMargin)
  }

  test("rows that are put aside are let go when the batch is over") {
    check(s"$walk SELECT * FROM r")
    val deadline = System.nanoTime() + 10000000000L
    // events come later
    // Delta's own tables of other suites stay
    def persisted = spark.sparkContext.getPersistentRDDs.values.filterNot { rdd =>
      Option(rdd.name).exists(_.startsWith("Delta Table State"))
    }
    while (persisted.nonEmpty && System.nanoTime() < deadline) Thread.sleep(50)
    assert(persisted.isEmpty)
  }

  test("a recursion within a subquery is kept, a changing subquery within a recursion refused") {
    check(s"SELECT id FROM names WHERE id IN ($walk SELECT n FROM r)")
    views()
    Seq(
      "SELECT id FROM names WHERE id < 3 UNION ALL SELECT n + 1 FROM r WHERE n IN (SELECT src FROM edges) AND n < 9",
      "SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < (SELECT max(src) FROM edges)").foreach {
      loop =>
        withClue(loop) {
          val error = checkError("CHANGELOG_NODE_NOT_SUPPORTED", "node" -> "WITH RECURSIVE") {
            spark
              .sql(s"SELECT * FROM to_changelog(TABLE(WITH RECURSIVE r(n) AS ($loop) SELECT * FROM r))")
              .writeStream
              .format("noop")
              .start()
              .processAllAvailable()
          }
          assert(error.getMessage.contains("subquery"), error)
        }
    }
  }

  test("EXPLAIN says that all is computed again") {
    views()
    val text = spark.sql(s"EXPLAIN CHANGELOG $walk SELECT * FROM r").head().getString(0)
    assert(
      text.contains("ChangelogRecursion [id, 0]  [I,UB,UA,D]  strategy=recompute everything"))
    assert(text.contains("runs the recursion over all old rows and over all new rows"))
  }

  test("a recursion that would not give the same again is refused") {
    views()
    val path = s"${QuickFileSystem.temporaryDirectory()}/fixed"
    spark.sql("SELECT 1 AS src, 2 AS dst").write.parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("fixed")
    Seq(
      "WITH RECURSIVE r(n) AS (SELECT id FROM names UNION ALL SELECT n + 1 FROM r) SELECT * FROM r LIMIT 5",
      "WITH RECURSIVE r(n) AS (SELECT id FROM names UNION ALL SELECT n + 1 FROM r WHERE rand() < 0.5) SELECT * FROM r",
      "WITH RECURSIVE r(n) AS (SELECT id FROM names UNION ALL SELECT dst FROM r JOIN fixed ON src = n) SELECT * FROM r")
      .foreach { sql =>
        withClue(sql) {
          checkError("CHANGELOG_NODE_NOT_SUPPORTED", "node" -> "WITH RECURSIVE") {
            spark
              .sql(s"SELECT * FROM to_changelog(TABLE($sql))")
              .writeStream
              .format("noop")
              .start()
          }
        }
      }
  }

  private def views(): Unit = Seq(edges, names).foreach { feed =>
    new RawStream(spark, s"raw_${feed.name}", s"op STRING, ${feed.columns}")
    spark.sql(feed.read(s"raw_${feed.name}", "op")).createOrReplaceTempView(feed.name)
  }
}
