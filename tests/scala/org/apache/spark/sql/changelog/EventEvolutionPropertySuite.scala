// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import scala.util.Random

import org.apache.spark.sql.Row
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.testing.ChangedProgram._
import org.apache.spark.sql.changelog.testing.RandomEventProgram.Snapshot
import org.apache.spark.sql.changelog.testing._

/**
 * Queries over rows that have a time become others: windows, sessions, functions in the order of time, above
 * watermarks and feeds that begin with snapshots. What is refused there is foreseen.
 */
class EventEvolutionPropertySuite extends EvolutionProperties(numSeeds = 4) {
  private var drawn: RandomEventProgram = _

  override protected def program(seed: Long): (Program, Variant) = {
    drawn = RandomEventProgram(seed)
    (drawn.program, drawn.variant)
  }

  override protected def change(
      oracle: Oracle,
      program: Program,
      variant: Variant,
      random: Random): ChangedProgram = {
    if (drawn.snapshot.isDefined) writeSnapshot(program)
    val at = 1 + random.nextInt(program.steps.size)
    if (drawn.hasWatermark) aboveWatermark(oracle, program, at, random)
    else if (drawn.snapshot.isDefined && drawn.reads("t2") && random.nextInt(6) == 0)
      withOtherSnapshot(program, at)
    else {
      val pair = edited(oracle, program, random, Seq("t1", "t2"))
      val changed = ChangedProgram(
        program.copy(sql = pair.first),
        pair.second,
        at,
        mode = pair.mode,
        key = pair.key)
      foreseen(oracle, variant, withTarget(oracle, changed, random))
    }
  }

  /** What a watermark has forgotten is not there for what begins anew. */
  private def aboveWatermark(
      oracle: Oracle,
      program: Program,
      at: Int,
      random: Random): ChangedProgram = {
    val sql = program.sql
    random.nextInt(3) match {
      case 0 =>
        // without the watermark all that has come is read again
        val without = program.feeds.map(_.copy(watermark = None))
        withTarget(oracle, ChangedProgram(program, sql, at, changedFeeds = Some(without)), random)
      case 1 if drawn.shape.keepsAll =>
        val edits = Seq(
          s"SELECT *, c + 1 AS added FROM ($sql)",
          s"SELECT * FROM ($sql) WHERE c > 1",
          s"SELECT c, hi FROM ($sql)")
        val changed = ChangedProgram(program, edits(random.nextInt(edits.size)), at)
        withTarget(oracle, changed.copy(foreseen = KeepsAll), random)
      case _ =>
        val columns = resultOf(oracle, program).fieldNames
        val edits = Seq(
          s"SELECT DISTINCT * FROM ($sql)",
          s"SELECT * FROM ($sql) ORDER BY ${columns.mkString(", ")} LIMIT 2",
          s"SELECT *, count(*) OVER (PARTITION BY ${columns.head}) AS added FROM ($sql)",
          s"SELECT * FROM ($sql) LEFT JOIN (SELECT k AS other FROM t1) ON ${columns.last} IS NOT NULL AND other = 1")
        ChangedProgram(
          program,
          edits(random.nextInt(edits.size)),
          at,
          foreseen = CannotGoOn("state older than the watermark is gone"))
    }
  }

  /** Its rows would come after newer ones. */
  private def withOtherSnapshot(program: Program, at: Int): ChangedProgram = {
    val other = Snapshot.Written.argument(program.snapshots("t2").drop(1) ++ OtherRows)
    val feeds = program.feeds.map { feed =>
      if (feed.name == "t2") feed.copy(arguments = Seq(other)) else feed
    }
    ChangedProgram(
      program,
      program.sql,
      at,
      changedFeeds = Some(feeds),
      foreseen = CannotGoOn("begins with another snapshot"))
  }

  private val OtherRows = Seq(Row(77, 7, "other", null))

  /** A snapshot that was copied can't be read again, where that of a table with versions is. */
  private def foreseen(
      oracle: Oracle,
      variant: Variant,
      changed: ChangedProgram): ChangedProgram = {
    def reads(sql: String) = RandomEventProgram.reads(sql, "t2")
    if (!drawn.snapshot.contains(Snapshot.Copied) || !reads(changed.program.sql) ||
      !reads(changed.changed)) changed
    else {
      val versioned = changed.program.feeds.map { feed =>
        if (feed.name == "t2") feed.copy(arguments = Seq(Snapshot.Versioned.argument(Nil)))
        else feed
      }
      val twin = changed.copy(program = changed.program.copy(feeds = versioned))
      changed.copy(foreseen =
        AsAnother("a copy was made", twin.fates(oracle, variant), "Normalize"))
    }
  }

  private def withTarget(
      oracle: Oracle,
      changed: ChangedProgram,
      random: Random): ChangedProgram = {
    val Seq(before, after) = Seq(changed.program.sql, changed.changed).map { sql =>
      resultOf(oracle, changed.program.copy(sql = sql))
    }
    changed.copy(keepsTarget = canShareTarget(before, after) && random.nextBoolean())
  }

  /** The table of Delta which a feed may begin with. */
  private def writeSnapshot(program: Program): Unit = {
    val table = RandomEventProgram.SnapshotTable
    val columns = StructType.fromDDL(RandomEventProgram.Columns)
    val rows = program.snapshots("t2")
    spark
      .createDataFrame(java.util.Arrays.asList(rows: _*), columns)
      .write
      .format("delta")
      .mode("overwrite")
      .option("path", folder.getPath)
      .saveAsTable(table)
  }

  private lazy val folder = QuickFileSystem.temporaryDirectory()
}
