// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.util.concurrent.CountDownLatch

import org.apache.hadoop.fs.Path
import org.json4s._
import org.json4s.jackson.JsonMethods.parse
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.checkpoint.TextFile
import org.apache.spark.sql.changelog.testing._

/** A file system hangs while leases are renewed. */
class HangingLeaseSuite extends AnyFunSuite with ViewSession {
  private val Lease = 3000
  private val slow = (1 to 6).map(number => s"slow$number")

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    ChangelogSession.DeltaConf ++ ChangelogSession.Quick ++ Map(
      "fs.file.impl" -> classOf[HangingFileSystem].getName,
      "fs.file.impl.disable.cache" -> "true",
      "spark.sql.warehouse.dir" -> warehouse.getPath,
      "spark.sql.changelog.views.lease" -> Lease.toString))

  private def view(name: String): MaterializedView = new ViewCatalog(spark).get(Seq(name))

  private def renewals(name: String): BigInt = {
    val term = new Path(view(name).definition.home, s"${ViewLease.Folder}/2")
    val file = new TextFile(term, spark.sessionState.newHadoopConf())
    (parse(file.read()) \ "renewals").asInstanceOf[JInt].num
  }

  private def holding(names: Seq[String])(body: => Unit): Unit = names match {
    case name +: others => ViewLeases.of(spark, view(name))(holding(others)(body))
    case _ => body
  }

  test("a view keeps its lease while the files of any number of other views hang") {
    (slow :+ "quick").foreach(name =>
      run(s"CREATE MATERIALIZED VIEW $name USING parquet AS SELECT 1 AS one"))
    holding(slow) {
      HangingFileSystem.hang("slow")
      try {
        // all renewals of the others hang by then
        Thread.sleep(Lease.toLong)
        holding(Seq("quick")) {
          Thread.sleep(Lease.toLong)
          assert(renewals("quick") > 1)
        }
      } finally HangingFileSystem.goOn()
    }
    (slow :+ "quick").foreach(name => run(s"DROP MATERIALIZED VIEW $name"))
  }
}

/** Lets the leases of some views hang. */
class HangingFileSystem extends WatchedFileSystem {
  override protected def beforeCreate(path: Path): Unit =
    if (path.toString.contains(s"/${HangingFileSystem.views}") &&
      path.getParent.getName == ViewLease.Folder) HangingFileSystem.released.await()
}

object HangingFileSystem {
  @volatile private var views = "none"
  @volatile private var released = new CountDownLatch(0)

  /** From now on, leases of views with this prefix hang. */
  def hang(views: String): Unit = {
    released = new CountDownLatch(1)
    this.views = views
  }

  def goOn(): Unit = {
    views = "none"
    released.countDown()
  }
}
