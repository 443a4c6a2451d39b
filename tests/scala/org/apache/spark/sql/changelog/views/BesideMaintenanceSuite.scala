// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** Views are written while somebody maintains their tables: alters properties, or moves rows to other files. */
class BesideMaintenanceSuite extends AnyFunSuite with ViewSession with BeforeAndAfterEach {
  private val queries = Seq(
    "SELECT customer, count(*) AS n FROM orders GROUP BY customer",
    "SELECT customer, amount FROM orders")

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    WhileOptimized.conf ++ ChangelogSession.Quick + ("spark.sql.warehouse.dir" -> warehouse.getPath))

  override def afterEach(): Unit = {
    WhileOptimized.never()
    run("DROP MATERIALIZED VIEW IF EXISTS v")
    run("DROP TABLE IF EXISTS orders")
  }

  private val statements = Seq("ALTER TABLE v SET TBLPROPERTIES ('note' = 'x')", "OPTIMIZE v")

  queries.zip(statements).foreach { case (query, own) =>
    test(s"a batch is written all the same: $query") {
      run("CREATE TABLE orders (customer STRING, amount INT) USING delta")
      run("INSERT INTO orders VALUES ('Ada', 1), ('Ada', 1), ('Ben', 2)")
      run(s"CREATE MATERIALIZED VIEW v USING delta AS $query")
      for (statement <- if (Share.isAll) statements else Seq(own)) {
        run("INSERT INTO orders VALUES ('Eve', 3), ('Eve', 3), ('Joe', 1)")
        run("REFRESH MATERIALIZED VIEW v")
        run("DELETE FROM orders WHERE customer = 'Joe'")
        run("INSERT INTO orders VALUES ('Eve', 3), ('Zoe', 3)")
        WhileOptimized.onceChanged("v")(run(statement))
        run("REFRESH MATERIALIZED VIEW v")
        assert(WhileOptimized.isDone)
        assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(query)))
        assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
      }
    }
  }
}
