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
    run("DROP MATERIALIZED VIEW IF EXISTS v")
    run("DROP TABLE orders")
  }

  private def refreshAndCheck(): Unit = {
    run("REFRESH MATERIALIZED VIEW v")
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(query)))
    assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
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
          // an ended process removes nothing
          Fence.onEffect = (effect, _) => if (effect == "drop") throw new IllegalStateException
          EndingFileSystem.ending(most)(run(create))
          Fence.onEffect = (_, _) => ()
          if (new ViewCatalog(spark).find(new ViewCatalog(spark).identify(Seq("v"))).nonEmpty) {
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
}
