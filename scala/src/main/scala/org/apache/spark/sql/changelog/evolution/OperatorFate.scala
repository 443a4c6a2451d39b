// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.types.StringType

import org.apache.spark.sql.changelog.identity.OperatorRecord

/**
 * What becomes of the state of an operator when a query is changed.
 *
 * @param shown
 *   the operator, as EXPLAIN shows it
 * @param state
 *   `kept`, `rebuilt` or `dropped`
 * @param from
 *   what it is rebuilt from, or how its state is used
 */
final case class OperatorFate(shown: String, state: String, from: String) {
  def isKept: Boolean = state == "kept"

  def toRow: Row = Row(shown, state, from)
}

object OperatorFate {

  /** The columns of [[OperatorFate.toRow]]. */
  def columns: Seq[Attribute] =
    Seq("operator", "state", "from").map(AttributeReference(_, StringType)())

  /** The operators of the changed query, then those whose state is dropped. */
  private[evolution] def all(is: Seq[OperatorRecord], kept: KeptParts): Seq[OperatorFate] = {
    val now = is.map { operator =>
      if (kept.contains(operator)) {
        val use =
          if (kept.emits(operator)) "all its rows are read from its state"
          else "goes on as it is"
        OperatorFate(operator.shown, "kept", use)
      } else OperatorFate(operator.shown, "rebuilt", origin(operator, is, kept))
    }
    now ++ kept.dropped.map(gone => OperatorFate(gone.shown, "dropped", ""))
  }

  /** What lies below an operator that begins anew. */
  private def origin(
      operator: OperatorRecord,
      all: Seq[OperatorRecord],
      kept: KeptParts): String = {
    val below = operator.part.map(_.operators).getOrElse(Nil)
    val emitting = all.filter(other => kept.emits(other) && other.ids.exists(below.contains))
    if (emitting.isEmpty) "the sources, from their beginning"
    else emitting.map(_.shown).mkString("the rows of ", " and ", ", and sources beside them")
  }
}
