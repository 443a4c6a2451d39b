// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.jdk.CollectionConverters._
import scala.util.Random

import org.apache.spark.SparkThrowable

/** Runs scenarios with an oracle and reports failures. */
class ScenarioChecks(oracle: Oracle) {

  /** Runs the batches as written. Each batch must emit the changes in the text. */
  def batchByBatch(scenario: Scenario): Seq[Seq[Change]] = {
    val emitted = oracle.check(scenario.program, Variant(scenario.mode, scenario.key))
    scenario.expected.foreach { expected =>
      expected.zip(emitted).zipWithIndex.foreach { case ((wanted, changes), index) =>
        if (wanted.sorted != changes.map(_.toString).sorted) {
          throw new AssertionError(
            s"batch ${index + 1} of ${expected.size} of\n${scenario.program}\n" +
              s"expected:${listed(wanted)}\nemitted:${listed(changes.map(_.toString))}")
        }
      }
    }
    emitted
  }

  /**
   * Regroups the scenario's changes into random batches, and runs them with a random state store and possible
   * restarts.
   */
  def cut(scenario: Scenario, seed: Long): Unit = {
    val random = new Random(seed)
    val sizes = cut(scenario.program.steps.size, random)
    val conf = Variant.Providers(random.nextInt(3))._2
    val how = Variant(scenario.mode, scenario.key, restart = random.nextInt(4) == 0, conf = conf)
    try oracle.check(scenario.inBatches(sizes), how)
    catch {
      case error: Throwable =>
        val way = s"in batches of ${sizes.mkString(", ")} [$how], seed $seed"
        throw new AssertionError(s"$way, of\n${scenario.program.sql}\n${error.getMessage}", error)
    }
  }

  /** Checks that the query fails at start with the expected error. */
  def refused(scenario: Scenario, expected: ExpectedError): Unit = {
    val nothing = Seq(Step(Map.empty[String, Seq[Change]]))
    val error =
      try {
        oracle.check(scenario.program.copy(steps = nothing), Variant(scenario.mode, scenario.key))
        throw new AssertionError(
          s"not refused with ${expected.condition}: ${scenario.program.sql}")
      } catch { case error: Throwable with SparkThrowable => error }
    val told = error.getMessageParameters.asScala.toSet
    if (error.getCondition != expected.condition || !expected.parameters.toSet.subsetOf(told)) {
      throw new AssertionError(
        s"expected ${expected.condition} ${expected.parameters}, " +
          s"but it is ${error.getCondition} ${told.toMap}",
        error)
    }
  }

  /** Returns random sizes of batches with `size` changes in total. */
  private def cut(size: Int, random: Random): Seq[Int] =
    if (size == 0) Nil
    else {
      val first = 1 + random.nextInt(size)
      first +: cut(size - first, random)
    }

  private def listed(changes: Seq[String]): String =
    if (changes.isEmpty) "\n  nothing" else changes.sorted.mkString("\n  -> ", "\n  -> ", "")
}
