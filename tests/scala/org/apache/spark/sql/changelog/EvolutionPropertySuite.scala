// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import scala.util.Random

import org.apache.spark.sql.changelog.testing._
import org.apache.spark.sql.changelog.testing.grammar.{Grammar, RandomSqlProgram}

/** Queries of any shape become others. */
class EvolutionPropertySuite extends EvolutionProperties(numSeeds = 3) {

  override protected def program(seed: Long): (Program, Variant) =
    RandomSqlProgram(seed, Grammar.Wide, hasAllTables = true)

  override protected def change(
      oracle: Oracle,
      program: Program,
      variant: Variant,
      random: Random): ChangedProgram = {
    val (first, second) = edited(oracle, program, random, program.feeds.map(_.name))
    val Seq(before, after) =
      Seq(first, second).map(sql => resultOf(oracle, program.copy(sql = sql)))
    ChangedProgram(
      program.copy(sql = first),
      second,
      1 + random.nextInt(program.steps.size),
      keepsTarget = canShareTarget(before, after) && random.nextBoolean())
  }
}
