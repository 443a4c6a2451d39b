// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.util.Random

import org.apache.spark.sql.types.VariantType

/**
 * Draws how the query of a program lives: what its tables are read from, which of them are idle in a
 * batch or bring nothing, how often it is begun anew, and which store keeps its state. The same for
 * the same seed.
 */
object RandomLife {

  def apply(seed: Long, program: Program, variant: Variant): (Program, Variant) = {
    val random = new Random(seed * 31 + 17)
    val kinds = Seq(InMemory, InMemory, FeedFiles.Json, FeedFiles.Parquet)
    val sources = program.feeds.map(feed => holding(feed, kinds(random.nextInt(kinds.size))))
    val lived = variant.copy(
      restart = variant.restart || random.nextInt(4) == 0,
      sources = if (sources.isEmpty) variant.sources else sources,
      conf = Variant.Providers(random.nextInt(3))._2 ++ variant.conf)
    (if (random.nextInt(3) == 0) program else spread(random, program), lived)
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
}
