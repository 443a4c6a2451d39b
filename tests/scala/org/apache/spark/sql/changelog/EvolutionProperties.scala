// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import scala.collection.mutable
import scala.util.{Random, Try}

import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.testing._
import org.apache.spark.sql.changelog.testing.grammar.{Grammar, RandomSqlProgram}

/**
 * Random queries that become others on the way, one edit apart, and go on with the state they have. Processes end
 * while that is prepared, and in the first batch after.
 *
 * What they read lies in files: what is in memory can't be read again from its beginning.
 */
abstract class EvolutionProperties(numSeeds: Int)
    extends QueryProperties(numSeeds, Grammar.Wide) {

  /** So that all rows which are read of files are counted. */
  override protected def sessionConf: Map[String, String] = super.sessionConf ++ Map(
    "spark.sql.json.filterPushdown.enabled" -> "false",
    "spark.sql.parquet.filterPushdown" -> "false")

  override protected def program(seed: Long): (Program, Variant) =
    RandomSqlProgram(seed, Grammar.Wide, hasAllTables = true)

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
    val changed = rescaled(program, disturbed(random, change(oracle, program, lived, random)))
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
    if (outcome.refusal.isEmpty) {
      if (changed.keepsTarget) count("went on with rows of a target")
      if (changed.mode != "retract") count(s"went on in mode ${changed.mode}")
    }
    val partitions = changed.partitionsBefore ++ changed.partitionsAfter
    if (partitions.nonEmpty) count("other numbers of partitions", partitions.size)
    outcome.endings.foreach(ending => count(s"ended $ending"))
    val (kept, others) = outcome.fates.partition(_.isKept)
    count("operators that kept their state", kept.size)
    count("operators rebuilt or dropped", others.size)
  }

  private def count(what: String, times: Int = 1): Unit = outcomes(what) += times

  /** What is drawn beside all else, so that this stays what it is. */
  protected def beside(program: Program, what: String): Random =
    new Random(s"$what ${program.sql} ${program.steps}".hashCode.toLong)

  /** Lets state be spread over another number of partitions. */
  private def rescaled(program: Program, changed: ChangedProgram): ChangedProgram = {
    val random = beside(program, "partitions")
    def number(choices: Int*) =
      if (random.nextInt(4) == 0) Some(choices(random.nextInt(choices.size))) else None
    val before = number(3, 4)
    // a session of tests has two of them
    val after = number(2, 5).filter(_ != 2 || before.isDefined)
    changed.copy(partitionsBefore = before, partitionsAfter = after)
  }

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

  /** Draws two queries that are one edit apart: the program's and another one, or two over the program's. */
  protected def edited(
      oracle: Oracle,
      program: Program,
      random: Random,
      tables: Seq[String]): EditedQueries = {
    val result = resultOf(oracle, program)
    val beside = this.beside(program, "pair")
    if (beside.nextBoolean()) {
      val edit = new RandomEdit(random, tables)
      ordered(
        random,
        accepted(oracle, program, EditedQueries(program.sql, edit(program.sql, result))))
    } else {
      val pairs = new RandomPair(beside, tables)
      ordered(beside, accepted(oracle, program, pairs(program.sql, result)))
    }
  }

  /** The first of those drawn that are two queries. */
  protected def accepted(
      oracle: Oracle,
      program: Program,
      drawn: => EditedQueries): EditedQueries =
    Iterator
      .continually(drawn)
      .find { pair =>
        pair.first != pair.second &&
        Seq(pair.first, pair.second).forall(sql => oracle.accepts(program.copy(sql = sql)))
      }
      .get

  private def ordered(random: Random, pair: EditedQueries): EditedQueries =
    if (random.nextInt(3) == 0) pair.reversed else pair

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

  /** Of few pairs most may be refused by chance. */
  override protected def isEnough: Boolean = outcomes("went on") * 2 >= outcomes("pairs")

  override protected def afterAll(): Unit = {
    outcomes.foreach { case (what, times) => println(s"$times $what") }
    super.afterAll()
    // one that refuses nearly everything has checked nothing
    assert(isEnough, s"${outcomes("went on")} went on of ${outcomes("pairs")}")
  }
}
