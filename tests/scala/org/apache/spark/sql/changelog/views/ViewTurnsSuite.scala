// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.util.concurrent.{CountDownLatch, TimeUnit}

import scala.concurrent.ExecutionContext.Implicits.global
import scala.concurrent.duration._
import scala.concurrent.{Await, Future}

import org.apache.spark.sql.changelog.testing.RowMultiset

/** Statements that write one view, in one process at the same time. */
class ViewTurnsSuite extends ViewTest {
  import ViewTurnsSuite._

  override protected def provider: String = "delta"

  private val query = "SELECT customer, max(slowly(amount)) AS most FROM plain GROUP BY customer"

  override def afterEach(): Unit = {
    released.countDown()
    super.afterEach()
    spark.sql("DROP TABLE IF EXISTS plain")
  }

  Seq("", "FULL").foreach { how =>
    test(s"a second REFRESH $how begins when the first has ended") {
      spark.udf.register("slowly", slowly)
      run("CREATE TABLE plain (customer STRING, amount INT) USING delta")
      run("INSERT INTO plain VALUES ('Ada', 1), ('Ben', 2)")
      create(query)
      hold()
      run("UPDATE plain SET amount = 5 WHERE customer = 'Ada'")
      val first = Future(spark.sql("REFRESH MATERIALIZED VIEW v"))
      assert(isHeld.await(60, TimeUnit.SECONDS))
      run("UPDATE plain SET amount = 7 WHERE customer = 'Ada'")
      val session = spark.cloneSession()
      val second = Future(session.sql(s"REFRESH MATERIALIZED VIEW v $how"))
      val view = new ViewCatalog(spark).get(Seq("v"))
      while (!ViewTurns.isAwaited(view) && !second.isCompleted) Thread.sleep(20)
      assert(!second.isCompleted && !first.isCompleted, second.value)
      released.countDown()
      Seq(first, second).foreach(Await.result(_, 60.seconds))
      assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(query)))
      val told = run("SHOW REFRESHES OF v").map(row => (row.getString(2), row.getString(4)))
      val mode = if (how == "FULL") "full" else "incremental"
      assert(told.take(2) == Seq((mode, "SUCCEEDED"), ("incremental", "SUCCEEDED")))
    }
  }
}

object ViewTurnsSuite {
  @volatile private var isHeld = new CountDownLatch(0)
  @volatile private var released = new CountDownLatch(0)

  /** From now on the first value is not given until `released`. */
  private def hold(): Unit = {
    released = new CountDownLatch(1)
    isHeld = new CountDownLatch(1)
  }

  private val slowly: Int => Int = { amount =>
    // others pass while it is held
    if (isHeld.getCount > 0) {
      isHeld.countDown()
      released.await(60, TimeUnit.SECONDS)
    }
    amount
  }
}
