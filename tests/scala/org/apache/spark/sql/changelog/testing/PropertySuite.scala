// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.scalatest.exceptions.TestCanceledException
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

/**
 * Checks what is drawn by seeds: those that failed once, which `tests/seeds/<suite>.txt` keeps, then `numSeeds`,
 * or `CHANGELOG_PROPERTY_SEEDS`, from a seed that each commit has another of; unless all is tested, a share of
 * both. With `CHANGELOG_PROPERTY_SECONDS` or `CHANGELOG_PROPERTY_PROGRAMS` set (see `dev/property`) ever new ones
 * instead, for that long or so many, whatever fails on the way.
 */
abstract class SeedSuite(numSeeds: Int) extends AnyFunSuite with ChangelogSession {

  /** Checks what a seed draws. */
  protected def checkSeed(seed: Long): Unit

  /** Whether what was drawn so far has checked enough; else a run draws some more. */
  protected def isEnough: Boolean = true

  private val MostMore = 20

  override protected def isShared: Boolean = false

  /** Starts the session, because its start sets the time zone of the values drawn. */
  override protected def beforeAll(): Unit = {
    super.beforeAll()
    spark
    ()
  }

  private val oneIn = Share.oneIn(suiteName)

  test("programs that failed once") {
    val seeds = Share.of(keptSeeds, oneIn = 4 * oneIn)
    val failed = failing(seeds.iterator)
    assert(failed.isEmpty, s"of ${seeds.size}")
  }

  protected val seconds = sys.env.get("CHANGELOG_PROPERTY_SECONDS").map(_.toLong)
  protected val programs = sys.env.get("CHANGELOG_PROPERTY_PROGRAMS").map(_.toInt)

  seconds.map(n => s"for $n seconds").orElse(programs.map(n => s"$n of them")) match {
    case None =>
      val some = if (Share.isAll) numSeeds else math.max(1, numSeeds * 2 / 3 / oneIn)
      val number = sys.env.get("CHANGELOG_PROPERTY_SEEDS").map(_.toInt).getOrElse(some)
      val first = if (Share.name.isEmpty) 1L else Share.choose(suiteName, 1000000) * 100L + 1
      test(s"$number seeds from $first") {
        val next = first + number
        (first until next).foreach(checkSeed)
        (next until next + MostMore).iterator.takeWhile(_ => !isEnough).foreach(checkSeed)
      }
    case Some(length) =>
      val first =
        sys.env.get("CHANGELOG_PROPERTY_SEED").map(_.toLong).getOrElse(System.currentTimeMillis())
      test(s"seeds from $first, $length") {
        val end = seconds.map(System.nanoTime() + _ * 1000000000L)
        val seeds = Iterator
          .from(0)
          .takeWhile(number => programs.forall(number < _))
          .takeWhile(_ => end.forall(System.nanoTime() < _))
          .map(first + _)
        var numPrograms = 0
        val failed = failing(seeds.map { seed =>
          numPrograms += 1
          if (numPrograms % 100 == 0) println(s"$numPrograms programs")
          seed
        })
        info(s"$numPrograms programs, ${failed.size} failed")
        assert(failed.isEmpty, s"seeds ${failed.mkString(" ")} failed")
      }
  }

  /**
   * The seeds that fail, each told of at once: a long run may be cut short. A seed that needs Delta is left out where
   * Delta has no release.
   */
  private def failing(seeds: Iterator[Long]): Seq[Long] = seeds.filter { seed =>
    val failure = Try(checkSeed(seed)).failed.toOption
    failure.foreach(error => println(error.getMessage))
    failure.exists(!ChangelogSession.lacksDelta(_))
  }.toSeq

  private def keptSeeds: Seq[Long] = {
    val file = PropertySuite.directory.resolve(s"${getClass.getSimpleName}.txt")
    if (!Files.exists(file)) Nil
    else
      {
        Files
          .readAllLines(file)
          .asScala
          .map(_.takeWhile(_ != '#').trim)
          .filter(_.nonEmpty)
          .map(_.toLong)
      }.toSeq
  }
}

/**
 * Checks programs drawn by seeds. In a long run they read topics of a real broker, too.
 *
 * One program in twenty reads a Delta table, or one in `CHANGELOG_PROPERTY_TABLES`.
 */
abstract class PropertySuite(numSeeds: Int) extends SeedSuite(numSeeds) {
  private lazy val oracle = new Oracle(spark)
  private lazy val failures = new TaskFailures(spark)

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf = sessionConf)

  /** What the session is configured with. */
  protected def sessionConf: Map[String, String] = PropertySuite.SessionConf

  /** The program of a seed, and how to run it. */
  protected def program(seed: Long): (Program, Variant)

  /** How a program is checked. */
  protected def check(oracle: Oracle, program: Program, variant: Variant): Unit =
    oracle.check(program, variant)

  override protected def checkSeed(seed: Long): Unit = {
    val (drawn, way) = this.program(seed)
    val (program, variant) = RandomLife(seed, drawn, way, PropertySuite.tables, topics)
    failures.take()
    try {
      check(oracle, program, variant)
      failures.take().foreach(failure => fail(s"a task failed:\n${failure.toErrorString}"))
    } catch {
      case error: Throwable =>
        // a failed query's own message is its plan
        val cause = Iterator.iterate(error)(_.getCause).takeWhile(_ != null).toSeq.last
        val (innermost, others) = cause.getStackTrace.splitAt(8)
        val ours = others.find(_.getClassName.contains(".changelog."))
        val where = (innermost ++ ours).map(frame => s"\n  at $frame").mkString
        val what = s"seed $seed, in variant [$variant]\n$cause$where\n$program"
        throw new AssertionError(what, error)
    }
  }

  /** Real ones in a long run where there is a broker, else files of the same JSON. */
  private lazy val topics: SourceKind =
    if (seconds.isEmpty && programs.isEmpty) FeedFiles.Json
    else
      try {
        Services.kafka()
        FeedTopics
      } catch {
        case missing: TestCanceledException =>
          info(s"topics are read from files: ${missing.getMessage}")
          FeedFiles.Json
      }
}

private object PropertySuite {

  /** Delta tables can be read, and tasks may fail. */
  val SessionConf: Map[String, String] =
    ChangelogSession.deltaConfWith(classOf[FailingTasks]) + ("spark.master" -> "local[2,3]")

  val tables: Int = sys.env.get("CHANGELOG_PROPERTY_TABLES").fold(20)(_.toInt)

  def directory: Path = Paths.get(sys.props("spark.changelog.test.home"), "tests", "seeds")
}
