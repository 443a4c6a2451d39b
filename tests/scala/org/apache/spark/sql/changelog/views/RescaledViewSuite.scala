// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.File

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing.Share

/** A view goes on with its state in another number of partitions. */
class RescaledViewSuite extends AnyFunSuite with RevenueView {
  private def view: MaterializedView = new ViewCatalog(spark).get(Seq("v"))

  private def partitions: Set[Int] = {
    val checkpoint = view.definition.checkpoint.toString
    val metadata = spark.read.format("state-metadata").load(checkpoint)
    metadata.select("numPartitions").collect().map(_.getInt(0)).toSet
  }

  private def lastMode: String =
    spark.sql("SHOW REFRESHES OF v").select("mode").head().getString(0)

  for (provider <- Share.ofWays(Seq("delta", "parquet"), "RescaledViewSuite")) {
    test(s"$provider: SET PARTITIONS") {
      run(s"CREATE MATERIALIZED VIEW v USING $provider AS $revenue")
      val before = run("SELECT * FROM v")
      val generation = view.definition.generation
      val spread = run("ALTER MATERIALIZED VIEW v SET PARTITIONS 5")
      assert(spread.map(_.getInt(1)) == Seq(5, 5))
      assert(run("SELECT * FROM v").toSet == before.toSet)
      assert(view.definition.generation == generation)
      assert(partitions == Set(5))
      run("UPDATE orders SET amount = 7 WHERE id = 2")
      run("REFRESH MATERIALIZED VIEW v")
      assert(lastMode == "incremental")
      check()
      run("ALTER MATERIALIZED VIEW v SET PARTITIONS 3")
      run("DELETE FROM customers WHERE customer = 1")
      run("REFRESH MATERIALIZED VIEW v")
      assert((lastMode, partitions) == (("incremental", Set(3))))
      check()
      assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
      // one checkpoint is left of three
      val checkpoints =
        new File(view.definition.folder.toUri.getPath).list().count(_.startsWith("checkpoint"))
      assert(checkpoints == 1)
    }

    test(s"$provider: a view to which nothing has come yet begins with so many") {
      run("CREATE TABLE arriving (id INT) USING json")
      try {
        run(
          s"CREATE MATERIALIZED VIEW v USING $provider AS SELECT id, count(*) AS n FROM STREAM arriving GROUP BY id")
        assert(run("ALTER MATERIALIZED VIEW v SET PARTITIONS 3").isEmpty)
        run("INSERT INTO arriving VALUES (1), (1)")
        run("REFRESH MATERIALIZED VIEW v INCREMENTAL")
        assert(run("SELECT * FROM v").map(_.toString) == Seq("[1,2]"))
        assert(partitions == Set(3))
      } finally {
        run("DROP MATERIALIZED VIEW v")
        run("DROP TABLE arriving")
      }
    }

    test(s"$provider: a savepoint brings its number back") {
      run(s"CREATE MATERIALIZED VIEW v USING $provider AS $revenue")
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL")
      val before = partitions
      run("CREATE SAVEPOINT few OF MATERIALIZED VIEW v")
      run("ALTER MATERIALIZED VIEW v SET PARTITIONS 5")
      run("UPDATE orders SET amount = 9 WHERE id = 2")
      run("REFRESH MATERIALIZED VIEW v")
      run("RESTORE MATERIALIZED VIEW v TO SAVEPOINT few")
      run("DELETE FROM orders WHERE id = 1")
      run("REFRESH MATERIALIZED VIEW v")
      assert((lastMode, partitions) == (("incremental", before)))
      check()
      // those of a view that goes on from another one, too
      run("ALTER MATERIALIZED VIEW v SET PARTITIONS 3")
      run("CREATE MATERIALIZED VIEW w FROM v")
      run("UPDATE orders SET amount = 1 WHERE id = 3")
      run("REFRESH MATERIALIZED VIEWS")
      assert(run("COMPARE MATERIALIZED VIEW v WITH w").isEmpty)
      run("DROP MATERIALIZED VIEW w")
      check()
    }

    if (Share.isAll) test(s"$provider: the number stays, also with another query") {
      run(s"CREATE MATERIALIZED VIEW v USING $provider AS $revenue")
      run("ALTER MATERIALIZED VIEW v SET PARTITIONS 3")
      run("REFRESH MATERIALIZED VIEW v FULL")
      check()
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL")
      assert(partitions == Set(3))
      run("UPDATE orders SET amount = 3 WHERE id = 1")
      run("REFRESH MATERIALIZED VIEW v")
      assert(lastMode == "incremental")
      check()
      val large = s"$revenue HAVING sum(o.amount) > 1"
      run(s"ALTER MATERIALIZED VIEW v AS $large")
      assert((lastMode, partitions) == (("evolved", Set(3))))
      check(large)
      run("INSERT INTO orders VALUES (6, 2, 8)")
      run("REFRESH MATERIALIZED VIEW v")
      assert(partitions == Set(3))
      run(s"CREATE OR REPLACE MATERIALIZED VIEW v USING $provider AS $revenue")
      assert((lastMode, partitions) == (("evolved", Set(3))))
      check()
      run("ALTER MATERIALIZED VIEW v SET PARTITIONS 1")
      run("INSERT INTO orders VALUES (7, 3, 8)")
      run("REFRESH MATERIALIZED VIEW v")
      assert(partitions == Set(1))
      check()
    }
  }
}
