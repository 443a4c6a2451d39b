// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import scala.util.{Random, Try}

import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.testing._
import org.apache.spark.sql.changelog.testing.grammar.{Grammar, RandomSqlProgram}

/**
 * Random queries that become others on the way, one edit apart, and go on with the state they have.
 *
 * What they read lies in files: what is in memory can't be read again from its beginning.
 */
class EvolutionPropertySuite extends QueryProperties(numSeeds = 3, Grammar.Wide) {
  private var numKept = 0
  private var numOthers = 0

  override protected def program(seed: Long): (Program, Variant) =
    RandomSqlProgram(seed, Grammar.Wide, hasAllTables = true)

  override protected def checkAccepted(
      oracle: Oracle,
      program: Program,
      variant: Variant): Unit = {
    val changed = change(oracle, program)
    val fates =
      try changed.check(oracle, lasting(variant))
      catch {
        case error: Throwable => throw new AssertionError(s"${error.getMessage}\n$changed", error)
      }
    val (kept, others) = fates.partition(_.isKept)
    numKept += kept.size
    numOthers += others.size
  }

  /** Draws the other query; what is drawn depends on nothing but the program. */
  private def change(oracle: Oracle, program: Program): ChangedProgram = {
    val random = new Random(program.toString.hashCode)
    val edit = new RandomEdit(random, program.feeds.map(_.name))
    val result = resultOf(oracle, program)
    val other = Iterator
      .continually(edit(program.sql, result))
      .find { sql => sql != program.sql && oracle.accepts(program.copy(sql = sql)) }
      .get
    val (first, second) =
      if (random.nextInt(3) == 0) (other, program.sql) else (program.sql, other)
    val sameColumns = resultOf(oracle, program.copy(sql = other)) == result
    ChangedProgram(
      program.copy(sql = first),
      second,
      1 + random.nextInt(program.steps.size),
      keepsTarget = sameColumns && random.nextBoolean(),
      fails = random.nextInt(3) == 0)
  }

  /** The columns of a query that was accepted. */
  private def resultOf(oracle: Oracle, program: Program): StructType = {
    val session = oracle.sessions.batch
    val columns = Try(session.sql(program.sql).schema).get
    StructType(columns.map(_.copy(nullable = true)))
  }

  private def lasting(variant: Variant): Variant = variant.copy(sources = variant.sources.map {
    case InMemory => FeedFiles.Json
    case other => other
  })

  override protected def afterAll(): Unit = {
    println(s"$numKept operators kept their state, $numOthers were rebuilt or dropped")
    super.afterAll()
  }
}
