// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import java.nio.charset.StandardCharsets

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.SQLContext
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.runtime.{MemoryStream, StreamingQueryWrapper}
import org.apache.spark.{ShuffleDependency, SparkEnv}

import org.apache.spark.sql.changelog.execution.output.ChangelogOutputExec
import org.apache.spark.sql.changelog.testing._

/** What goes to the tasks of a batch. */
class StageInputSuite extends AnyFunSuite with ChangelogSession {
  import StageInputSuite._

  test("a stage takes no more to its tasks however many joins are below it") {
    val few = stagesOf(2)
    val many = stagesOf(5)
    assert(many.size >= few.size + 3)
    // names and numbers have more digits
    assert(many.map(_.length).max < few.map(_.length).max * 1.1)
    many.foreach(written =>
      assert(!written.contains("org.apache.spark.sql.catalyst.plans.logical.")))
  }

  /** What is written of each stage, in a batch of a query with so many joins. */
  private def stagesOf(numJoins: Int): Seq[String] = {
    val session = spark.newSession()
    implicit val context: SQLContext = session.sqlContext
    import session.implicits._
    val streams = (0 to numJoins).map { number =>
      val stream = MemoryStream[(Int, Int, String)]
      stream.toDF().toDF("id", "next", "_change_type").createOrReplaceTempView(s"s$number")
      session
        .sql(s"SELECT * FROM from_changelog(TABLE(s$number), key => 'id')")
        .createOrReplaceTempView(s"t$number")
      stream
    }
    val joins = (1 to numJoins).map(i => s"JOIN t$i ON t${i - 1}.next = t$i.id").mkString(" ")
    // all in one batch
    streams.foreach(_.addData((1, 1, "insert")))
    val running = session
      .sql(
        s"SELECT * FROM to_changelog(TABLE(SELECT t0.id % 2, count(*) FROM t0 $joins GROUP BY 1))")
      .writeStream
      .format("noop")
      .start()
    try {
      running.processAllAvailable()
      val batch = running.asInstanceOf[StreamingQueryWrapper].streamingQuery.lastExecution
      val output = batch.executedPlan.collectFirst { case output: ChangelogOutputExec => output }
      stages(output.get)
    } finally running.stop()
  }
}

private object StageInputSuite {

  def stages(plan: SparkPlan): Seq[String] = {
    val serializer = SparkEnv.get.closureSerializer.newInstance()
    stageEnds(plan.execute()).distinct.map { rdd =>
      StandardCharsets.ISO_8859_1.decode(serializer.serialize[RDD[_]](rdd)).toString
    }
  }

  /** The last RDD of each stage. */
  private def stageEnds(rdd: RDD[_]): Seq[RDD[_]] = {
    def below(rdd: RDD[_]): Seq[RDD[_]] = rdd.dependencies.flatMap {
      case shuffle: ShuffleDependency[_, _, _] => stageEnds(shuffle.rdd)
      case other => below(other.rdd)
    }
    rdd +: below(rdd)
  }
}
