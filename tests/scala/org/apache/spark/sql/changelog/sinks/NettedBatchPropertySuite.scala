// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import scala.util.Random

import org.apache.spark.sql.changelog.testing._
import org.apache.spark.sql.changelog.testing.grammar.RandomSqlProgram

/** Random queries whose batches a sink has by key as they come, against the same batches grouped. */
class NettedBatchPropertySuite extends PropertySuite(numSeeds = 3) {
  private var seed = 0L
  private var isPrepared = false

  override protected def sessionConf: Map[String, String] =
    super.sessionConf ++ ChangelogSession.Quick + ("spark.sql.shuffle.partitions" -> "2")

  override protected def program(seed: Long): (Program, Variant) = {
    this.seed = seed
    val program = seed % 4 match {
      case 0 => RandomSqlProgram(seed)._1
      case 1 => RandomJoinProgram(seed)._1
      case _ => RandomKeyedProgram(seed)
    }
    (program, Variant())
  }

  override protected def check(oracle: Oracle, program: Program, variant: Variant): Unit = {
    if (!isPrepared) {
      oracle.inSessions(session => RandomSqlProgram.functions.foreach(session.sql))
      isPrepared = true
    }
    try
      if (program.feeds.nonEmpty && oracle.accepts(program)) {
        val kept = new KeptProgram(oracle.sessions, program, Variant().sources)
        try run(program, kept)
        finally kept.close()
      }
    catch { case error: Throwable if SinkShapesPropertySuite.refusal(error).isDefined => }
  }

  /** Has one of the query's keys replace rows, by one of the ways to say so. */
  private def run(program: Program, kept: KeptProgram): Unit = {
    val random = new Random(seed)
    random.shuffle(kept.keys.filter(_.nonEmpty)).headOption.foreach { key =>
      val named = key.mkString("array('", "', '", "')")
      val (arguments, option) = random.nextInt(3) match {
        case 0 => ("", key.mkString(","))
        case 1 => (", mode => 'upsert'", "")
        case _ => (s", mode => 'upsert', key => $named", "")
      }
      val options = Map("key" -> option)
      val target =
        new SinkTarget(kept, arguments, BothWays.Format, options, keepsSession = false, _ => Nil)
      try
        program.steps.foreach { step =>
          kept.arrive(step, target.running)
          target.catchUp()
        }
      finally target.stop()
    }
  }

  override protected def afterAll(): Unit = {
    println(s"${BothWays.counts(true)} batches as they come, ${BothWays.counts(false)} grouped")
    super.afterAll()
  }
}
