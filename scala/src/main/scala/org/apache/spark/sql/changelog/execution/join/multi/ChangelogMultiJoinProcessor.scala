// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join.multi

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BasePredicate, JoinedRow}

import org.apache.spark.sql.changelog.execution.join.{JoinOutput, JoinSideState}

/**
 * Joins what changed of several inputs, one join key after the other.
 *
 * For each join key: [[begin]], then [[step]] until it is false; each step leaves rows in `output`
 * that are to be emitted before the next.
 *
 * {{{
 *   changes of 1  x  all of 2        x  all of 3
 *   stays of 1    x  changes of 2    x  all of 3
 *   stays of 1    x  stays of 2      x  changes of 3
 * }}}
 *
 * So every combination of rows of which one changes comes up once, as it was and as it is now, and
 * nothing is emitted that the same batch takes back. A combination is put together input by input,
 * and given up as soon as it fails a condition, or an input has no row.
 *
 * @param cheapest
 *   the inputs, those first of which it costs least to know that they have no row
 * @param conditions
 *   for each input, what its row must meet together with those of the inputs before it, or null
 */
private[multi] final class ChangelogMultiJoinProcessor(
    states: Array[JoinSideState],
    cheapest: Array[Int],
    conditions: Array[BasePredicate],
    output: JoinOutput,
    atOnce: Int) {
  private val last = states.length - 1
  private val rows = states.map(new MultiJoinRows(_, atOnce))

  // of the first inputs up to each: their rows as one, how often, and whether it stays as it is
  private val before, after = new Array[InternalRow](states.length)
  private val joinedBefore, joinedAfter = Array.fill(states.length)(new JoinedRow)
  private val copiesBefore, copiesAfter = new Array[Long](states.length)
  private val isSame = new Array[Boolean](states.length)

  // the first input that takes part with what changes, and the input at hand
  private var changing = 0
  private var depth = -1

  /** Starts with a join key, of which all inputs have all changes. */
  def begin(): Unit = {
    states.foreach(_.load())
    rows.foreach(_.begin())
    depth = -1
    changing = if (rows.exists(_.hasChanges) && !cheapest.exists(rows(_).isEmpty)) -1 else last
  }

  /** Does the next part of the work; false if the join key is done. */
  def step(): Boolean =
    if (nextCombination()) {
      emit()
      true
    } else if (changing < last) {
      changing += 1
      if (rows(changing).hasChanges) start(0)
      true
    } else {
      states.foreach(_.save())
      false
    }

  private def start(input: Int): Unit = {
    depth = input
    rows(input).start(changes = input >= changing, unchanged = input != changing)
  }

  private def nextCombination(): Boolean = {
    var found = false
    while (!found && depth >= 0) {
      if (!rows(depth).next()) depth -= 1
      else if (add()) {
        if (depth == last) found = true else start(depth + 1)
      }
    }
    found
  }

  /** Puts the row at hand to those of the inputs before; false if nothing comes of it. */
  private def add(): Boolean = {
    val row = rows(depth).current
    val condition = conditions(depth)
    if (depth == 0) {
      before(0) = row.before
      after(0) = row.after
      copiesBefore(0) = row.copiesBefore
      copiesAfter(0) = row.copiesAfter
      isSame(0) = row.isSameRow
    } else {
      copiesBefore(depth) = copiesBefore(depth - 1) * row.copiesBefore
      copiesAfter(depth) = copiesAfter(depth - 1) * row.copiesAfter
      isSame(depth) = isSame(depth - 1) && row.isSameRow
      if (copiesBefore(depth) > 0) {
        before(depth) = joinedBefore(depth)(before(depth - 1), row.before)
      }
      if (copiesAfter(depth) > 0) {
        after(depth) = joinedAfter(depth)(after(depth - 1), row.after)
      }
    }
    if (condition != null) {
      val isMet = copiesBefore(depth) > 0 && condition.eval(before(depth))
      if (!isMet) copiesBefore(depth) = 0
      if (copiesAfter(depth) > 0) {
        val stays = isSame(depth) && copiesBefore(depth) > 0
        if (!stays && !condition.eval(after(depth))) copiesAfter(depth) = 0
      }
    }
    copiesBefore(depth) > 0 || copiesAfter(depth) > 0
  }

  private def emit(): Unit = {
    val row = rows(last).current
    val (gone, come) = (copiesBefore(last), copiesAfter(last))
    if (gone > 0 && come > 0 && isSame(last)) {
      output.recount(after(last - 1), row.after, gone, come)
    } else {
      output.replace(before(last - 1), row.before, gone, after(last - 1), row.after, come)
    }
  }
}
