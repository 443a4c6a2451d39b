// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.checkpoint.Fence
import org.apache.spark.sql.changelog.testing._

/** A process ends during CREATE, and the next REFRESH reads all there is by then. */
class CreatedViewSuite extends AnyFunSuite with ViewSession with BeforeAndAfterEach {
  private val query =
    "SELECT customer, count(*) AS n, sum(amount) AS total FROM orders GROUP BY ALL"

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    ChangelogSession.DeltaConf ++ ChangelogSession.Quick ++ EndingFileSystem.conf ++ Map(
      "spark.sql.warehouse.dir" -> warehouse.getPath,
      // an ended process does not release its lease
      "spark.sql.changelog.views.lease" -> "300ms"))

  override def beforeEach(): Unit = {
    run("CREATE TABLE orders (id INT, customer STRING, amount INT) USING delta")
    run("INSERT INTO orders VALUES (1, 'a', 10), (2, 'a', 5), (3, 'b', 0), (4, NULL, 1)")
  }

  override def afterEach(): Unit = {
    Fence.onEffect = (_, _) => ()
    Seq("v", "w").foreach(name => run(s"DROP MATERIALIZED VIEW IF EXISTS $name"))
    run("DROP TABLE orders")
  }

  private def refreshAndCheck(name: String = "v"): Unit = {
    run(s"REFRESH MATERIALIZED VIEW $name")
    assert(RowMultiset.of(run(s"SELECT * FROM $name")) == RowMultiset.of(run(query)))
    assert(run(s"VERIFY MATERIALIZED VIEW $name").isEmpty)
  }

  private def exists(name: String): Boolean = {
    val catalog = new ViewCatalog(spark)
    catalog.find(catalog.identify(Seq(name))).nonEmpty
  }

  /** Runs a statement whose process ends after so many changes of files. */
  private def end(most: Int)(statement: String): Unit = {
    // an ended process removes nothing
    Fence.onEffect = (effect, _) => if (effect == "drop") throw new IllegalStateException
    EndingFileSystem.ending(most)(run(statement))
    Fence.onEffect = (_, _) => ()
  }

  private def change(): Unit = {
    run("UPDATE orders SET amount = amount + 1 WHERE id > 2")
    run("INSERT INTO orders VALUES (9, 'c', 9)")
    ()
  }

  private val ways = for {
    format <- Seq("delta", "parquet")
    policy <- Seq("auto", "incremental")
  } yield (format, policy)

  for ((format, policy) <- Share.ofWays(ways, "created"))
    test(s"$format, $policy: REFRESH reads on after a process has ended during CREATE") {
      val create = s"""CREATE MATERIALIZED VIEW v USING $format
      TBLPROPERTIES ('changelog.refreshPolicy' = '$policy') AS $query"""
      val (_, all) = EndingFileSystem.within(Int.MaxValue)(run(create))
      run("DROP MATERIALIZED VIEW v")
      val points = if (Share.isAll) 40 else 2
      for (most <- all * 2 / 5 until all by math.max(1, all * 3 / 5 / points))
        withClue(s"ended after $most of $all changes: ") {
          end(most)(create)
          if (exists("v")) {
            change()
            refreshAndCheck()
            change()
            refreshAndCheck()
            run("DROP MATERIALIZED VIEW v")
          } else {
            run(create)
            run("DROP MATERIALIZED VIEW v")
          }
        }
    }

  private val copies = for {
    format <- Seq("delta", "parquet")
    at <- Seq("", "AT BATCH 0", "AT SAVEPOINT early")
  } yield (format, at)

  for ((format, at) <- Share.ofWays(copies, "copied"))
    test(s"$format: REFRESH reads on after a process has ended during CREATE FROM $at") {
      run(s"CREATE MATERIALIZED VIEW v USING $format AS $query")
      change()
      refreshAndCheck()
      run("CREATE SAVEPOINT early OF MATERIALIZED VIEW v")
      change()
      refreshAndCheck()
      val copy = s"CREATE MATERIALIZED VIEW w FROM v $at"
      val (_, all) = EndingFileSystem.within(Int.MaxValue)(run(copy))
      refreshAndCheck("w")
      run("DROP MATERIALIZED VIEW w")
      val points = if (Share.isAll) 40 else 3
      for (most <- 0 until all by math.max(1, all / points))
        withClue(s"ended after $most of $all changes: ") {
          end(most)(copy)
          change()
          if (!exists("w")) run(copy)
          refreshAndCheck("w")
          change()
          refreshAndCheck("w")
          run("DROP MATERIALIZED VIEW w")
        }
      refreshAndCheck()
    }
}
