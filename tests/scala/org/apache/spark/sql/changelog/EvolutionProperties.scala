// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import scala.collection.mutable
import scala.util.{Random, Try}

import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.testing._
import org.apache.spark.sql.changelog.testing.grammar.Grammar

/**
 * Random queries that become others on the way, one edit apart, and go on with the state they have. Processes end
 * while that is prepared, and in the first batch after.
 *
 * What they read lies in files: what is in memory can't be read again from its beginning.
 */
abstract class EvolutionProperties(numSeeds: Int)
    extends QueryProperties(numSeeds, Grammar.Wide) {
  private val outcomes = mutable.LinkedHashMap.empty[String, Int].withDefaultValue(0)

  /** Draws the other query; what is drawn depends on nothing but the program. */
  protected def change(
      oracle: Oracle,
      program: Program,
      variant: Variant,
      random: Random): ChangedProgram

  override protected def checkAccepted(
      oracle: Oracle,
      program: Program,
      variant: Variant): Unit = {
    val random = new Random(s"${program.sql} ${program.steps}".hashCode.toLong)
    val lived = lasting(variant)
    val changed = disturbed(random, change(oracle, program, lived, random))
    val outcome =
      try changed.check(oracle, lived)
      catch {
        case error: Throwable =>
          // what is told of a failed program doesn't know the other query
          println(s"failed $changed")
          throw error
      }
    count("pairs")
    count(outcome.refusal.fold("went on")(reason => s"refused: …${reason.split(", ").last}"))
    if (outcome.refusal.isEmpty && changed.keepsTarget) count("went on with rows of a target")
    outcome.endings.foreach(ending => count(s"ended $ending"))
    val (kept, others) = outcome.fates.partition(_.isKept)
    count("operators that kept their state", kept.size)
    count("operators rebuilt or dropped", others.size)
  }

  private def count(what: String, times: Int = 1): Unit = outcomes(what) += times

  /** Lets processes end. */
  private def disturbed(random: Random, changed: ChangedProgram): ChangedProgram = {
    val prepared =
      if (random.nextInt(4) > 0) changed
      else changed.copy(preparationEnds = Some(random.nextDouble()))
    random.nextInt(3) match {
      case 0 => prepared.copy(fails = true)
      case 1 => prepared.copy(firstBatchEnds = Some(random.nextInt(40)))
      case _ => prepared
    }
  }

  /** Whether a target of one query can become that of the other. */
  protected def canShareTarget(one: StructType, other: StructType): Boolean = {
    val common = one.filter(column => other.fieldNames.contains(column.name))
    common.nonEmpty && common.forall(column => other(column.name).dataType == column.dataType) &&
    Seq(one, other).forall(schema => schema.fieldNames.distinct.length == schema.size)
  }

  /** Draws another query that is one edit apart, and which of the two is first. */
  protected def edited(
      oracle: Oracle,
      program: Program,
      random: Random,
      tables: Seq[String]): (String, String) = {
    val edit = new RandomEdit(random, tables)
    val result = resultOf(oracle, program)
    val other = Iterator
      .continually(edit(program.sql, result))
      .find(sql => sql != program.sql && oracle.accepts(program.copy(sql = sql)))
      .get
    if (random.nextInt(3) == 0) (other, program.sql) else (program.sql, other)
  }

  /** The columns of a query that was accepted. */
  protected def resultOf(oracle: Oracle, program: Program): StructType = {
    assert(oracle.accepts(program), program.sql)
    val columns = Try(oracle.sessions.batch.sql(program.sql).schema).get
    StructType(columns.map(_.copy(nullable = true)))
  }

  private def lasting(variant: Variant): Variant = variant.copy(sources = variant.sources.map {
    case InMemory => FeedFiles.Json
    case other => other
  })

  override protected def afterAll(): Unit = {
    outcomes.foreach { case (what, times) => println(s"$times $what") }
    super.afterAll()
    // one that refuses nearly everything has checked nothing
    val wentOn = outcomes("went on")
    assert(wentOn * 2 >= outcomes("pairs"), s"$wentOn went on of ${outcomes("pairs")}")
  }
}
