// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import org.scalatest.funsuite.AnyFunSuite

class RandomLifeSuite extends AnyFunSuite {
  private val feed = Feed("t", "id INT, g STRING", Seq("id"))
  private val intervals = Feed("i", "id INT, d INTERVAL DAY TO SECOND", Seq("id"))
  private val steps =
    Seq(Step(feed, "+I 1 a"), Step(intervals, "+I 1 NULL"), Step(feed, "-D 1 a"))
  private val program = Program(Seq(feed, intervals), "SELECT * FROM t", steps)

  private def lives(tables: Int): Seq[(Program, Variant)] = (1L to 1000L).map { seed =>
    RandomLife(seed, program, Variant(), tables, FeedTopics)
  }

  private def fails(variant: Variant) = FailingTasks.On.toSet.subsetOf(variant.conf.toSet)

  /** How many steps bring nothing, at most, in a row. */
  private def idle(program: Program): Int = program.steps
    .scanLeft(0) { (before, step) =>
      if (step.changes.values.exists(_.nonEmpty)) 0 else before + 1
    }
    .max

  private def share(of: Seq[(Program, Variant)])(isSo: (Program, Variant) => Boolean): Double =
    of.count(isSo.tupled).toDouble / of.size

  test("one query in four lives with tasks that fail, and one in four through long idleness") {
    val drawn = lives(tables = 20)
    assert(math.abs(share(drawn)((_, variant) => fails(variant)) - 0.25) < 0.05)
    assert(math.abs(share(drawn)((program, _) => idle(program) >= 5) - 0.25) < 0.05)
    assert(share(drawn)((program, variant) => fails(variant) && idle(program) >= 5) > 0.03)
  }

  test("one query in twenty reads a Delta table, and another one a topic") {
    def reading(kind: SourceKind, tables: Int) =
      share(lives(tables))((_, variant) => variant.sources contains kind)
    Seq(FeedDeltaTables, FeedTopics).foreach { kind =>
      assert(math.abs(reading(kind, tables = 20) - 0.05) < 0.02)
      assert(math.abs(reading(kind, tables = 4) - 0.25) < 0.05)
    }
    assert(
      lives(tables = 4).forall { case (_, variant) =>
        !Set[SourceKind](FeedDeltaTables, FeedTopics).contains(variant.sources(1))
      },
      "not all sources have intervals")
  }

  test("all that arrives does so in its order, whatever comes between") {
    lives(tables = 20).foreach { case (lived, _) =>
      program.feeds.foreach { feed =>
        def changes(program: Program) =
          program.steps.flatMap(_.changes.getOrElse(feed.name, Nil))
        assert(changes(lived) == changes(program))
      }
    }
  }
}
