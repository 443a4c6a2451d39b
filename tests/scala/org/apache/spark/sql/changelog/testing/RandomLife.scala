// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.util.Random

import org.apache.spark.sql.types.{
  AnsiIntervalType, CharType, StringType, StructType, VarcharType, VariantType
}

/**
 * Draws how the query of a program lives: what its tables are read from, which of them are idle in a
 * batch or bring nothing, for how long nothing comes at all, how often the query is begun anew, which
 * store keeps its state, and whether tasks fail. The same for the same seed.
 */
object RandomLife {

  /**
   * @param tables
   *   one in how many programs reads a Delta table, and another one a topic
   * @param topics
   *   what stands for a topic
   */
  def apply(
      seed: Long,
      program: Program,
      variant: Variant,
      tables: Int,
      topics: => SourceKind): (Program, Variant) = {
    val random = new Random(seed * 31 + 17)
    val kinds = Seq(InMemory, InMemory, FeedFiles.Json, FeedFiles.Parquet)
    val sources = program.feeds.map(feed => holding(feed, kinds(random.nextInt(kinds.size))))
    val lived = variant.copy(
      restart = variant.restart || random.nextInt(4) == 0,
      sources = if (sources.isEmpty) variant.sources else sources,
      conf = Variant.Providers(random.nextInt(3))._2 ++ variant.conf)
    val arriving = if (random.nextInt(3) == 0) program else spread(random, program)

    // a stream of its own: what was drawn before stays the same for seeds that are kept
    val later = new Random(seed * 0x9e3779b97f4a7c15L + 41)
    val failing = later.nextInt(4) == 0
    val idle = later.nextInt(4) == 0
    val stored = later.nextDouble()
    val read =
      if (program.feeds.isEmpty || stored >= 2.0 / tables) lived
      else stores(later, program, lived, if (stored < 1.0 / tables) FeedDeltaTables else topics)
    (
      if (idle && program.feeds.nonEmpty) stretched(later, arriving) else arriving,
      if (failing) read.copy(conf = read.conf ++ FailingTasks.On) else read)
  }

  /** JSON has one null only, which is none of a VARIANT's. */
  private def holding(feed: Feed, kind: SourceKind): SourceKind =
    if (kind == FeedFiles.Json && feed.schema.exists(_.dataType == VariantType)) FeedFiles.Parquet
    else kind

  /** Lets what arrives for each table come in fewer batches, or in more, some of them empty. */
  private def spread(random: Random, program: Program): Program = {
    val numSteps = program.steps.size + random.nextInt(3)
    val arriving = program.feeds.map { feed =>
      val places = Seq.fill(program.steps.size)(random.nextInt(numSteps)).sorted
      val changes = places.zip(program.steps.map(_.changes.getOrElse(feed.name, Nil)))
      feed.name -> changes.groupMap(_._1)(_._2).view.mapValues(_.flatten).toMap
    }
    program.copy(steps = (0 until numSteps).map { number =>
      Step(arriving.flatMap { case (name, changes) =>
        val empty = if (random.nextInt(4) == 0) Some(Nil) else None
        changes.get(number).orElse(empty).map(name -> _)
      }.toMap)
    })
  }

  /** Lets one of the tables be read from a source of another kind. */
  private def stores(
      random: Random,
      program: Program,
      variant: Variant,
      kind: SourceKind): Variant = {
    val feeds = program.feeds.indices.filter(feed => !hasSpecialTypes(program.feeds(feed).schema))
    if (feeds.isEmpty) variant
    else {
      val sources =
        program.feeds.indices.map(feed => variant.sources(feed % variant.sources.size))
      variant.copy(sources = sources.updated(feeds(random.nextInt(feeds.size)), kind))
    }
  }

  /** Not every source can hold them. */
  private def hasSpecialTypes(schema: StructType): Boolean = schema.existsRecursively {
    case _: AnsiIntervalType | _: CharType | _: VarcharType | _: VariantType => true
    case text: StringType => !text.isUTF8BinaryCollation
    case _ => false
  }

  /** Lets many batches in a row bring nothing. */
  private def stretched(random: Random, program: Program): Program = {
    val (before, after) = program.steps.splitAt(random.nextInt(program.steps.size + 1))
    val nothing = Seq.fill(5 + random.nextInt(4)) {
      val one = program.feeds(random.nextInt(program.feeds.size))
      val some = program.feeds.filter(feed => feed == one || random.nextInt(4) == 0)
      Step(some.map(_.name -> Nil).toMap)
    }
    program.copy(steps = before ++ nothing ++ after)
  }
}
