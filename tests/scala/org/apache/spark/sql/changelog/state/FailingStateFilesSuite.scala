// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS

import org.apache.spark.sql.changelog.testing.FailingCheckpointFiles._
import org.apache.spark.sql.changelog.testing._

/** A query whose state can't be written now and then, and whose tasks run again. */
class FailingStateFilesSuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    Variant.Paged ++ Map(
      "spark.master" -> "local[2,8]",
      "spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "1",
      "spark.sql.streaming.stateStore.maintenanceInterval" -> "200ms",
      STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key ->
        classOf[FailingCheckpointFiles].getName))

  for (seed <- 1 to 3)
    test(s"what is emitted is right though writes fail, seed $seed") {
      val random = new Random(seed)
      val raw = new RawStream(spark, s"raw_$seed", "op STRING, id INT, g STRING, n INT")
      spark
        .sql(s"SELECT * FROM from_changelog(TABLE(raw_$seed), 'op', key => array('id'))")
        .createOrReplaceTempView("numbers")
      val changes = spark.sql(
        "SELECT * FROM to_changelog(TABLE(SELECT g, count(*) AS c, sum(n) AS s FROM numbers GROUP BY g))")
      val query = new RunningChanges(changes, QuickFileSystem.temporaryDirectory())
      var rows = Map.empty[Int, (String, Int)]
      val faults = new Random(seed)
      @volatile var numFaults = 0
      try {
        faultFor = path =>
          if (!path.getName.matches("\\d+\\.(delta|snapshot)")) None
          else
            faults.synchronized {
              val fault = faults.nextInt(16) match {
                case 0 => Some(AtCreation)
                case 1 => Some(Within(faults.nextInt(200)))
                case 2 => Some(AtClose)
                case 3 => Some(AfterClose)
                case _ => None
              }
              numFaults += fault.size
              fault
            }
        for (step <- 1 to 25) {
          val changed = Seq.fill(10)(random.nextInt(30)).distinct.flatMap { id =>
            val before = rows.get(id).map { case (g, n) => s"-D $id $g $n" }
            val after = Option.when(random.nextInt(3) > 0)((s"g${random.nextInt(4)}", step))
            rows = after.fold(rows - id)(row => rows + (id -> row))
            before.toSeq ++ after.map { case (g, n) => s"+I $id $g $n" }
          }
          raw.add(changed: _*)
          query.next()
          if (step % 10 == 0) query.restart()
        }
      } finally {
        faultFor = _ => None
        query.stop()
      }
      assert(numFaults > 5)
      val expected = rows.values.groupMap(_._1)(_._2).map { case (g, ns) =>
        s"$g ${ns.size} ${ns.sum}"
      }
      assert(FoldedChanges(query.all) == expected.toSeq.sorted)
    }
}
