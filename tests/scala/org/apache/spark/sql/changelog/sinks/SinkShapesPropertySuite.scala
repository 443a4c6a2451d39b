// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import scala.collection.mutable
import scala.util.Random

import org.apache.spark.SparkThrowable

import org.apache.spark.sql.changelog.testing._
import org.apache.spark.sql.changelog.testing.grammar.RandomSqlProgram

/**
 * Random queries, kept by every sink and every format of views, against the same queries as batches:
 * what is kept is compared after every batch, after a batch that is done once more, and after a
 * restart. Views keep them also over tables that are compared with copies. A sink may refuse a query,
 * but only by an error that says so.
 */
class SinkShapesPropertySuite extends PropertySuite(numSeeds = 3) {
  import SinkShapesPropertySuite._

  private val outcomes = mutable.Map.empty[String, Int].withDefaultValue(0)
  private var seed = 0L
  private var isPrepared = false

  override protected def sessionConf: Map[String, String] =
    super.sessionConf ++ ChangelogSession.Quick +
      ("spark.sql.warehouse.dir" -> QuickFileSystem.temporaryDirectory().getPath)

  private lazy val sinks = new KeptSinks(spark)

  override protected def program(seed: Long): (Program, Variant) = {
    this.seed = seed
    val (program, variant) = seed % 6 match {
      case 0 => RandomSqlProgram(seed)
      case 1 => RandomJoinProgram(seed)
      case _ => (RandomKeyedProgram(seed), Variant())
    }
    // how it is run is up to the sink; settings of the query are other suites' concern
    (program, Variant(conf = variant.conf.filter(_._1.contains("stateStore"))))
  }

  override protected def check(oracle: Oracle, program: Program, variant: Variant): Unit = {
    if (!isPrepared) {
      oracle.inSessions(session => RandomSqlProgram.functions.foreach(session.sql))
      isPrepared = true
    }
    val random = new Random(seed)
    // of a stream of its own, as seeds that are kept have drawn the rest without it
    val asEvents = new Random(~seed).nextBoolean()
    val name = KeptSinks.Names(random.nextInt(KeptSinks.Names.size)) match {
      case "kafka" if asEvents => "kafka events"
      case "memory" if asEvents => "function"
      case drawn => drawn
    }
    val names = if (name.endsWith("view")) Seq(name, s"$name of $ComparedTables") else Seq(name)
    variant.conf.foreach { case (key, value) => spark.conf.set(key, value) }
    try
      names.foreach { name =>
        outcomes(s"${keeper(name)}: ${outcome(oracle, program, variant, name, random)}") += 1
      }
    finally variant.conf.keys.foreach(spark.conf.unset)
  }

  private def outcome(
      oracle: Oracle,
      program: Program,
      variant: Variant,
      name: String,
      random: Random): String =
    try
      if (program.feeds.isEmpty || !oracle.accepts(program)) "no query"
      else keep(oracle, program, variant, name, random)
    catch {
      case error: Throwable =>
        refusal(error)
          .getOrElse(throw new AssertionError(s"${keeper(name)}: $error", error))
    }

  private def keeper(name: String): String = {
    val instead = sinks.missing.contains(name.takeWhile(_ != ' '))
    if (instead) s"h2 instead of $name, which is missing" else name
  }

  /** Keeps a program's query, and compares after every step. */
  private def keep(
      oracle: Oracle,
      program: Program,
      variant: Variant,
      name: String,
      random: Random): String = {
    val tellsChanges = !name.endsWith(ComparedTables)
    val kept = new KeptProgram(oracle.sessions, program, variant.sources, tellsChanges)
    try keep(program, kept, sinks(name, kept, random), random)
    finally kept.close()
  }

  private def keep(
      program: Program,
      kept: KeptProgram,
      target: KeptTarget,
      random: Random): String =
    try {
      program.steps.zipWithIndex.foreach { case (step, number) =>
        kept.arrive(step, target.running)
        target.catchUp()
        // no batch runs before, which could write the row of an aggregate without groups
        val hasRun = program.steps.take(number + 1).exists(_.changes.values.exists(_.nonEmpty))
        def compare(what: String): Unit =
          if (hasRun) KeptTarget.compare(target, kept.expected, what)
        compare(s"after batch $number")
        random.nextInt(4) match {
          case 0 =>
            target.repeat()
            compare(s"after batch $number came again")
          case 1 => target.restart()
          case _ =>
        }
      }
      "kept"
    } finally target.stop()

  override protected def afterAll(): Unit = {
    outcomes.toSeq.sorted.foreach { case (what, count) => println(s"$count $what") }
    super.afterAll()
  }
}

private object SinkShapesPropertySuite {

  /** Tables of which nothing tells what changes. */
  private val ComparedTables = "compared tables"

  private val Refusals: Set[String] = Set(
    "CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES",
    "CHANGELOG_KEY_MISSING",
    "CHANGELOG_NODE_NOT_SUPPORTED",
    "CHANGELOG_NONDETERMINISTIC_EXPRESSION",
    "CHANGELOG_NOT_EXECUTABLE_YET",
    "CHANGELOG_SINK_KEY_DIFFERS",
    "CHANGELOG_SINK_NEEDS_APPEND",
    "CHANGELOG_SUBQUERY_NOT_SUPPORTED")

  /** What is refused, and why. */
  def refusal(error: Throwable): Option[String] =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).collectFirst {
      case ours: SparkThrowable if Refusals.contains(ours.getCondition) =>
        ours.getCondition
    }
}
