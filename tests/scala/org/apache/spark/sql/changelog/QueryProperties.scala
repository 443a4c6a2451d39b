// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import scala.collection.mutable

import org.apache.spark.SparkThrowable

import org.apache.spark.sql.changelog.testing._
import org.apache.spark.sql.changelog.testing.grammar.{Grammar, RandomSqlProgram}

/**
 * Random queries of any shape, against the same queries as batches.
 *
 * A query that batch Spark refuses is passed over. One that can't be kept up to date may be
 * refused, but only by an error that says so.
 */
abstract class QueryProperties(numSeeds: Int, grammar: Grammar) extends PropertySuite(numSeeds) {
  import QueryProperties._

  private val outcomes = mutable.Map.empty[String, Int].withDefaultValue(0)

  override protected def program(seed: Long): (Program, Variant) =
    RandomSqlProgram(seed, grammar)

  override protected def check(oracle: Oracle, program: Program, variant: Variant): Unit = {
    if (outcomes.isEmpty)
      oracle.inSessions(session => RandomSqlProgram.functions.foreach(session.sql))
    outcomes(outcome(oracle, program, variant)) += 1
  }

  /** Checks a program whose query batch Spark plans. */
  protected def checkAccepted(oracle: Oracle, program: Program, variant: Variant): Unit =
    oracle.check(program, variant)

  private def outcome(oracle: Oracle, program: Program, variant: Variant): String =
    if (program.feeds.isEmpty) WithoutTables
    else if (!oracle.accepts(program)) RefusedByBatch
    else {
      try {
        checkAccepted(oracle, program, variant)
        Checked
      } catch {
        case error: Throwable if isUnanswered(error) => Unanswered
        case error: Throwable => refusal(error).getOrElse(throw error)
      }
    }

  /**
   * Errors of Spark itself. Below WHERE, batch Spark takes a scalar subquery that is tied to what another
   * one gives for one that is tied to nothing, and finds all its rows; those drawn here always have
   * one. The reader of JSON files can't be given an array with a NULL to compare with.
   */
  private def isUnanswered(error: Throwable): Boolean = error match {
    case spark: SparkThrowable if spark.getCondition == "SCALAR_SUBQUERY_TOO_MANY_ROWS" =>
      isWithin(error, "ProgramRun", "batch")
    case _ =>
      causes(error).exists { cause =>
        isWithin(cause, "StructFilters", "toPredicate")
      }
  }

  private def isWithin(error: Throwable, name: String, method: String): Boolean =
    error.getStackTrace.exists { frame =>
      frame.getClassName.endsWith(name) && frame.getMethodName == method
    }

  private def causes(error: Throwable): Iterator[Throwable] =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null)

  /** What is refused, and why. */
  private def refusal(error: Throwable): Option[String] =
    causes(error).collectFirst {
      case ours: SparkThrowable if Refusals.contains(ours.getCondition) =>
        ours.toString.takeWhile(_ != '\n')
    }

  override protected def afterAll(): Unit = {
    outcomes.toSeq.sortBy(-_._2).foreach { case (what, count) => println(s"$count $what") }
    val (passedOver, others) = outcomes.partition { case (what, _) => PassedOver.contains(what) }
    val checked = outcomes.getOrElse(Checked, 0)
    println(
      s"$checked checked, ${others.values.sum - checked} refused, ${passedOver.values.sum} passed over")
    super.afterAll()
  }
}

private object QueryProperties {
  private val Checked = "checked"
  private val WithoutTables = "without tables"
  private val RefusedByBatch = "refused by batch Spark"
  private val Unanswered = "not answered by batch Spark"
  private val PassedOver = Set(WithoutTables, RefusedByBatch, Unanswered)

  val Refusals: Set[String] = Set(
    "CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES",
    "CHANGELOG_NODE_NOT_SUPPORTED",
    "CHANGELOG_NONDETERMINISTIC_EXPRESSION",
    "CHANGELOG_NOT_EXECUTABLE_YET",
    "CHANGELOG_SUBQUERY_NOT_SUPPORTED")
}
