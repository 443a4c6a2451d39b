// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._

import org.scalatest.Tag
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.streaming.StreamingQueryException

import org.apache.spark.sql.changelog.testing._

/**
 * Runs the programs in `tests/sql/scenarios`; [[Scenario]] says how they are written.
 *
 * Each runs batch by batch, which must emit what the file says; all at once, which must insert each
 * row of the final result and say no more; and cut into batches at random, which must end with the
 * same rows. The [[Oracle]] compares every batch of every run with batch Spark.
 *
 * All at once and random cuts take a share of the scenarios each; with `CHANGELOG_SCENARIO_CUTS=5` every scenario
 * runs all at once and is cut five times. `testOnly *ScenarioSuite -- -n join` runs scenarios with a tag.
 */
class ScenarioSuite extends AnyFunSuite with ChangelogSession with ErrorChecks with GoldenFiles {
  private lazy val oracle = new Oracle(spark)
  private val cutsWanted = sys.env.get("CHANGELOG_SCENARIO_CUTS").map(_.toInt)

  ScenarioSuite.scenarios.foreach { scenario =>
    test(s"${scenario.name}: ${scenario.title}", scenario.tags.map(Tag(_)): _*) {
      scenario.error match {
        case Some(error) => checkRefused(scenario, error)
        case None =>
          checkBatchByBatch(scenario)
          if (cutsWanted.isDefined || Share.choose(
              s"whole ${scenario.name}",
              if (Share.isAll) 5 else 9) == 0)
            checkAllAtOnce(scenario)
          (1 to numCuts(scenario)).foreach(checkCut(scenario, _))
      }
    }
  }

  private def checkRefused(scenario: Scenario, expected: ExpectedError): Unit = {
    var raised = Option.empty[Throwable]
    checkError(expected.condition, expected.parameters.toSeq: _*) {
      val nothing = Step(Map.empty[String, Seq[Change]])
      try oracle.check(scenario.program.copy(steps = Seq(nothing)), variant(scenario))
      catch {
        case error: Throwable =>
          raised = Some(error)
          throw error
      }
    }
    assert(!raised.exists(_.isInstanceOf[StreamingQueryException]), "refused only when it ran")
  }

  private def checkBatchByBatch(scenario: Scenario): Unit = {
    val emitted = oracle.check(scenario.program, variant(scenario))
    checkGolden(s"${ScenarioSuite.Directory}/${scenario.name}.sql", scenario.emitting(emitted))
  }

  private def checkAllAtOnce(scenario: Scenario): Unit = {
    val whole = scenario.inBatches(Seq(scenario.program.steps.size))
    val emitted = oracle.check(whole, variant(scenario, Variant.OnePhase)).flatten
    assert(emitted.forall(_.kind == "+I"), emitted.mkString("not only inserts: ", ", ", ""))
  }

  private def checkCut(scenario: Scenario, seed: Int): Unit =
    new ScenarioChecks(oracle).cut(scenario, scenario.name.hashCode + seed)

  private def numCuts(scenario: Scenario): Int =
    cutsWanted.getOrElse {
      if (Share.choose(s"cut ${scenario.name}", if (Share.isAll) 6 else 10) == 0) 1 else 0
    }

  private def variant(scenario: Scenario, conf: Map[String, String] = Map.empty): Variant =
    Variant(scenario.mode, scenario.key, conf = conf ++ ChangelogSession.codeFor(scenario.name))
}

private object ScenarioSuite {
  val Directory = "tests/sql/scenarios"

  def scenarios: Seq[Scenario] = {
    val listing =
      Files.list(Paths.get(sys.props("spark.changelog.test.home")).resolve(Directory))
    try listing.iterator().asScala.filter(_.toString.endsWith(".sql")).toSeq.sorted.map(read)
    finally listing.close()
  }

  private def read(file: Path): Scenario =
    try Scenario.parse(file.getFileName.toString.stripSuffix(".sql"), Files.readString(file))
    catch {
      case error: RuntimeException =>
        throw new IllegalArgumentException(s"$file: ${error.getMessage}", error)
    }
}
