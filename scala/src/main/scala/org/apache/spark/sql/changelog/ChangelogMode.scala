// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

/**
 * Which of insert, update and delete a node can produce. Inferred from the sources up.
 */
final case class ModifyKindSet(insert: Boolean, update: Boolean, delete: Boolean) {
  def union(other: ModifyKindSet): ModifyKindSet =
    ModifyKindSet(insert || other.insert, update || other.update, delete || other.delete)

  def contains(other: ModifyKindSet): Boolean = union(other) == this

  def diff(other: ModifyKindSet): ModifyKindSet =
    ModifyKindSet(insert && !other.insert, update && !other.update, delete && !other.delete)

  def isInsertOnly: Boolean = insert && !update && !delete

  /** Whether something a consumer has seen can be taken back or replaced. */
  def changesRows: Boolean = update || delete

  /** The kinds as words, in the order people read them: "insert, update and delete". */
  def words: String = {
    val names = Seq(insert -> "insert", update -> "update", delete -> "delete").collect {
      case (true, name) => name
    }
    if (names.size < 2) names.mkString else s"${names.init.mkString(", ")} and ${names.last}"
  }
}

object ModifyKindSet {
  val InsertOnly: ModifyKindSet = ModifyKindSet(insert = true, update = false, delete = false)
  val InsertUpdate: ModifyKindSet = ModifyKindSet(insert = true, update = true, delete = false)
  val All: ModifyKindSet = ModifyKindSet(insert = true, update = true, delete = true)
}

/** How much of an update a consumer needs to be sent. Decided from the root down. */
sealed abstract class UpdateKind(override val toString: String)

object UpdateKind {

  /** There are no updates on this edge. */
  case object NoUpdate extends UpdateKind("NONE")

  /** The new row is enough: the consumer knows, by key, what it replaces. */
  case object OnlyUpdateAfter extends UpdateKind("ONLY_UPDATE_AFTER")

  /** The old row is needed too. */
  case object BeforeAndAfter extends UpdateKind("BEFORE_AND_AFTER")
}

/**
 * The row kinds that travel on one edge of a plan, printed as `[I,UB,UA,D]`.
 *
 * @param kinds
 *   what can happen to rows
 * @param updateKind
 *   how updates are sent; [[UpdateKind.NoUpdate]] exactly when `kinds` has no update
 */
final case class ChangelogMode(kinds: ModifyKindSet, updateKind: UpdateKind) {
  require(
    kinds.update != (updateKind == UpdateKind.NoUpdate),
    s"update kind $updateKind conflicts with kinds ${kinds.words}")

  def isInsertOnly: Boolean = kinds.isInsertOnly

  def sendsUpdateBefore: Boolean = updateKind == UpdateKind.BeforeAndAfter

  /** `I`, `UB`, `UA`, `D`, as far as they occur. */
  def symbols: Seq[String] =
    Seq(kinds.insert -> "I", sendsUpdateBefore -> "UB", kinds.update -> "UA", kinds.delete -> "D")
      .collect { case (true, symbol) => symbol }

  override def toString: String = symbols.mkString("[", ",", "]")
}

object ChangelogMode {
  val InsertOnly: ChangelogMode = ChangelogMode(ModifyKindSet.InsertOnly, UpdateKind.NoUpdate)
}

/** The changes that a query's root may send to its reader. */
sealed abstract class OutputMode(override val toString: String)

object OutputMode {

  /** All four row kinds. */
  case object Retract extends OutputMode("retract")

  /** By key, without `update_preimage`. */
  case object Upsert extends OutputMode("upsert")

  /** Inserts only; a plan that updates or deletes is refused. */
  case object Append extends OutputMode("append")

  val values: Seq[OutputMode] = Seq(Retract, Upsert, Append)
}
