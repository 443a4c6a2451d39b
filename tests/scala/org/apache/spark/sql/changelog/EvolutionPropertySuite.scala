// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import scala.util.Random

import org.apache.spark.sql.types.IntegerType

import org.apache.spark.sql.changelog.testing._

/** Queries of any shape become others, of which one expression is another. */
class EvolvedExpressionsPropertySuite extends EvolutionProperties(numSeeds = 3) {

  override protected def change(
      oracle: Oracle,
      program: Program,
      variant: Variant,
      random: Random): ChangedProgram = {
    val drawn = resultOf(oracle, program)
    val sql =
      if (drawn.exists(_.dataType == IntegerType)) program.sql else "SELECT k, x FROM t1"
    val result = resultOf(oracle, program.copy(sql = sql))
    val pairs = new RandomPair(random, program.feeds.map(_.name))
    val pair = accepted(oracle, program, pairs.computed(sql, result))
    ChangedProgram(
      program.copy(sql = pair.first),
      pair.second,
      1 + random.nextInt(program.steps.size),
      keepsTarget = false)
  }
}

/** Queries of any shape become others. */
class EvolutionPropertySuite extends EvolutionProperties(numSeeds = 3) {

  override protected def change(
      oracle: Oracle,
      program: Program,
      variant: Variant,
      random: Random): ChangedProgram = {
    val pair = edited(oracle, program, random, program.feeds.map(_.name))
    val Seq(before, after) =
      Seq(pair.first, pair.second).map(sql => resultOf(oracle, program.copy(sql = sql)))
    val changed = ChangedProgram(
      program.copy(sql = pair.first),
      pair.second,
      1 + random.nextInt(program.steps.size),
      keepsTarget = canShareTarget(before, after) && random.nextBoolean(),
      mode = pair.mode,
      key = pair.key)
    val appends = beside(program, "append")
    if (appends.nextInt(8) == 0) appending(changed, appends) else changed
  }

  /** Queries of which rows only come, over what comes of the tables. */
  private def appending(changed: ChangedProgram, random: Random): ChangedProgram = {
    val program = changed.program
    val (first, second) = Appended(random.nextInt(Appended.size))
    val coming = program.copy(
      feeds = program.feeds.map(_.copy(key = Nil, insertOnly = true, upsert = false)),
      sql = first,
      steps = program.steps.map { step =>
        Step(step.changes.map { case (table, changes) =>
          table -> changes.filter(_.kind == "+I")
        })
      })
    changed.copy(
      program = coming,
      changed = second,
      keepsTarget = false,
      mode = "append",
      key = Nil)
  }

  private val Appended: Seq[(String, String)] = {
    val rows = "SELECT k, x, s FROM t1"
    val joined = "SELECT t1.k, t1.x, t2.s FROM t1 JOIN t2 ON t1.k = t2.k"
    val distinct = "SELECT DISTINCT k, s FROM t1"
    val pairs = Seq(
      rows -> s"$rows WHERE x IS NOT NULL",
      rows -> "SELECT k, x, s, x + 1 AS added FROM t1",
      rows -> s"$rows UNION ALL SELECT k, x, s FROM t2",
      rows -> joined,
      rows -> distinct,
      distinct -> s"SELECT * FROM ($distinct) WHERE k > 0",
      joined -> s"SELECT * FROM ($joined) WHERE x > 0",
      joined -> s"SELECT j.*, t3.s AS other FROM ($joined) j JOIN t3 ON j.x = t3.k")
    pairs ++ pairs.map(_.swap)
  }
}
