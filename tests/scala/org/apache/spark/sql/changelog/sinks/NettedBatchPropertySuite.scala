// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import scala.util.Random

import org.apache.spark.sql.changelog.testing._
import org.apache.spark.sql.changelog.testing.grammar.RandomSqlProgram

/** Random queries whose batches a sink has by key as they come, against the same batches grouped. */
class NettedBatchPropertySuite extends PropertySuite(numSeeds = 8) {
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
        val numKeys = opened(oracle, program)(_.keys.count(_.nonEmpty))
        (0 until numKeys).foreach(number => opened(oracle, program)(run(program, _, number)))
      }
    catch { case error: Throwable if SinkShapesPropertySuite.refusal(error).isDefined => }
  }

  private def opened[T](oracle: Oracle, program: Program)(body: KeptProgram => T): T = {
    val kept = new KeptProgram(oracle.sessions, program, Variant().sources)
    try body(kept)
    finally kept.close()
  }

  /** Has one of the query's keys replace rows, by one of the ways to say so. */
  private def run(program: Program, kept: KeptProgram, number: Int): Unit = {
    val key = kept.keys.filter(_.nonEmpty)(number)
    val named = key.mkString("array('", "', '", "')")
    val (arguments, option) = new Random(seed + number).nextInt(3) match {
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

  override protected def afterAll(): Unit = {
    println(s"${BothWays.counts(true)} batches as they come, ${BothWays.counts(false)} grouped")
    super.afterAll()
  }
}
