// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import org.apache.spark.sql.changelog.identity.{OperatorRecord, PartRecord}

/**
 * Which parts of a changed query go on with the state of the query that was.
 *
 * A part can if the old query had an equal one, and if what is above it, which begins anew, can be given
 * all rows of its result. Of several that lie within each other the largest does.
 */
private[evolution] class KeptParts(was: Seq[OperatorRecord], is: Seq[OperatorRecord]) {
  private val old = was.flatMap(_.part).map(part => part.fingerprint -> part).toMap

  private val candidates: Seq[PartRecord] =
    is.flatMap(_.part).filter(part => part.givesRows && old.contains(part.fingerprint))

  private val largest: Seq[PartRecord] = candidates.filterNot { part =>
    candidates.exists { other =>
      other.operators.size > part.operators.size &&
      part.operators.forall(other.operators.contains)
    }
  }

  private val operators: Set[Long] = largest.flatMap(_.operators).toSet

  def fingerprints: Set[String] = largest.map(_.fingerprint).toSet

  def contains(operator: OperatorRecord): Boolean = operator.ids.forall(operators)

  /** Whether all its rows are to be emitted when the query begins. */
  def emits(operator: OperatorRecord): Boolean = operator.part.exists(largest.contains)

  /** The old number of each operator that keeps its state, by the new one. */
  def numbers: Map[Long, Long] =
    largest.flatMap(part => part.operators.zip(old(part.fingerprint).operators)).toMap

  /** The operators whose state nobody uses any more. */
  def dropped: Seq[OperatorRecord] = {
    val used = numbers.values.toSet
    was.filterNot(_.ids.exists(used))
  }
}
