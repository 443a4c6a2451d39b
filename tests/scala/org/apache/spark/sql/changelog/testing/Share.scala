// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.nio.file.{Files, Paths}

import scala.jdk.CollectionConverters._
import scala.util.hashing.MurmurHash3

import org.scalactic.source.Position
import org.scalatest.funsuite.AnyFunSuiteLike
import org.scalatest.{Args, Canceled, Failed, Outcome, Status, SucceededStatus, Tag}

import org.apache.spark.SPARK_VERSION

/**
 * The part of the tests that a run takes, so that it ends in time.
 *
 * A suite that takes long by `tests/suite-seconds.tsv` runs one test in so many; a suite with many queries, variants or state stores takes some of them. The choice depends on [[name]], which `dev/test` sets
 * to the commit, so that each commit runs other tests. `CHANGELOG_TEST_SHARE=NAME` repeats a run.
 */
object Share {

  /** Whether nothing is left out, as in `dev/test-all`. */
  val isAll: Boolean = sys.env.contains("CHANGELOG_TEST_ALL")

  /** The name of the share: the abbreviated commit in `dev/test`, empty in a plain `testOnly`. */
  val name: String = sys.env.getOrElse("CHANGELOG_TEST_SHARE", "")

  /** Suites that run all their tests: in `dev/test` the suites of changed files. */
  private val whole: Set[String] =
    sys.env.getOrElse("CHANGELOG_TEST_WHOLE", "").split(' ').toSet

  /** Of how many tests of a suite one is run, by the suite's simple name. */
  private lazy val shares: Map[String, Int] = {
    val file = Paths.get(sys.props("spark.changelog.test.home"), "tests", "suite-seconds.tsv")
    Files
      .readAllLines(file)
      .asScala
      .map(_.split('\t'))
      .map(line => line(0) -> line(2).toInt)
      .toMap
  }

  /** A suite runs one test in so many, more of a longer suite: all tests if nobody has asked for a share. */
  def oneIn(suite: String): Int =
    if (isAll || name.isEmpty || whole(suite)) 1
    else shares.getOrElse(suite, 1)

  /** A number from 0 until `size`, which depends on the share and on what is chosen. */
  def choose(what: String, size: Int): Int =
    Math.floorMod(MurmurHash3.stringHash(s"$name $what"), size)

  /** One in so many, at another place in each group of so many. */
  def of[T](all: Seq[T], oneIn: Int): Seq[T] =
    if (isAll) all
    else
      all
        .grouped(oneIn)
        .zipWithIndex
        .map { case (some, group) =>
          some(choose(s"$group of ${all.size}", some.size))
        }
        .toSeq

  /** One of the ways to do something, which depends on what is done. */
  def ofWays[T](all: Seq[T], what: String): Seq[T] =
    if (isAll) all else Seq(all(choose(what, all.size)))

  /** Checks a program in one of several ways, which depends on its query. */
  def check(oracle: Oracle, program: Program, ways: Seq[Variant] = Variant.all): Unit =
    oracle.checkAll(program, ofWays(ways, program.sql))
}

/** A suite that runs one of so many of its tests if it takes long, and those that the version of Spark can run. */
trait TestShare extends AnyFunSuiteLike {
  private var numTests = 0

  /** Whether a run may leave tests out: not where these take shares themselves. */
  protected def isShared: Boolean = true

  override protected def test(name: String, tags: Tag*)(body: => Any)(implicit
      position: Position): Unit = {
    val oneIn = if (isShared) Share.oneIn(suiteName) else 1
    if (Share.choose(s"$suiteName ${numTests / oneIn}", oneIn) == numTests % oneIn)
      super.test(name, tags: _*)(body)
    numTests += 1
  }

  /** Leaves a suite out that needs Delta before each test, on a version of Spark for which it has no release. */
  override protected def runTests(testName: Option[String], args: Args): Status =
    try super.runTests(testName, args)
    catch {
      case error: Exception if ChangelogSession.lacksDelta(error) =>
        info(s"left out: Delta has no release for Spark $SPARK_VERSION")
        SucceededStatus
    }

  /** Cancels tests that need Delta on a version of Spark for which it has no release. */
  override protected def withFixture(test: NoArgTest): Outcome = super.withFixture(test) match {
    case Failed(error) if ChangelogSession.lacksDelta(error) =>
      Canceled(s"Delta has no release for Spark $SPARK_VERSION", error)
    case other => other
  }
}
