// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

/** ModifyKindSet: the inserts, updates and deletes that a node can produce. Inferred from the sources up. */
final case class ModifyKindSet(insert: Boolean, update: Boolean, delete: Boolean) {
  def union(other: ModifyKindSet): ModifyKindSet =
    ModifyKindSet(insert || other.insert, update || other.update, delete || other.delete)

  def contains(other: ModifyKindSet): Boolean = union(other) == this

  def diff(other: ModifyKindSet): ModifyKindSet =
    ModifyKindSet(insert && !other.insert, update && !other.update, delete && !other.delete)

  def isInsertOnly: Boolean = insert && !update && !delete

  /** Returns whether emitted rows can be retracted or replaced. */
  def changesRows: Boolean = update || delete

  /** Returns the kinds as words: "insert, update and delete". */
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

/** UpdateKind: the images of an update needed by a consumer. Decided from the root down. */
sealed abstract class UpdateKind(override val toString: String)

object UpdateKind {

  /** The edge has no updates. */
  case object NoUpdate extends UpdateKind("NONE")

  /** The after image only: the consumer finds the old row by key. */
  case object OnlyUpdateAfter extends UpdateKind("ONLY_UPDATE_AFTER")

  /** The before and the after image. */
  case object BeforeAndAfter extends UpdateKind("BEFORE_AND_AFTER")
}

/**
 * ChangelogMode: the row kinds on one edge of a plan, printed as `[I,UB,UA,D]`.
 *
 * @param kinds
 *   the possible inserts, updates and deletes
 * @param updateKind
 *   the images of an update; [[UpdateKind.NoUpdate]] exactly if `kinds` has no update
 */
final case class ChangelogMode(kinds: ModifyKindSet, updateKind: UpdateKind) {
  require(
    kinds.update != (updateKind == UpdateKind.NoUpdate),
    s"update kind $updateKind conflicts with kinds ${kinds.words}")

  def isInsertOnly: Boolean = kinds.isInsertOnly

  def sendsUpdateBefore: Boolean = updateKind == UpdateKind.BeforeAndAfter

  /** Returns the symbols of the possible row kinds: `I`, `UB`, `UA`, `D`. */
  def symbols: Seq[String] =
    Seq(kinds.insert -> "I", sendsUpdateBefore -> "UB", kinds.update -> "UA", kinds.delete -> "D")
      .collect { case (true, symbol) => symbol }

  override def toString: String = symbols.mkString("[", ",", "]")
}

object ChangelogMode {
  val InsertOnly: ChangelogMode = ChangelogMode(ModifyKindSet.InsertOnly, UpdateKind.NoUpdate)
}

/** OutputMode: the row kinds that a query's root may send to the reader. */
sealed abstract class OutputMode(override val toString: String)

object OutputMode {

  /** All four row kinds. */
  case object Retract extends OutputMode("retract")

  /** Inserts, after images and deletes. The reader replaces rows by key. */
  case object Upsert extends OutputMode("upsert")

  /** Inserts only. A plan with updates or deletes fails. */
  case object Append extends OutputMode("append")

  val values: Seq[OutputMode] = Seq(Retract, Upsert, Append)
}
