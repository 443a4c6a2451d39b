// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources

import java.util.Locale

import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.errors.ChangelogErrors
import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime
import org.apache.spark.sql.changelog.{ModifyKindSet, RowKind}

/**
 * Translates the change types of a feed into row kinds.
 *
 * Five vocabularies are known by default, in any case: Spark's and Delta's (`insert`,
 * `update_preimage`, ...), Flink's (`+I`, `UPDATE_BEFORE`, ...), Iceberg's (like Spark's) and
 * Debezium's (`c r u d`). A mapping given by the user replaces the default vocabularies, and is
 * case-sensitive.
 *
 * Debezium's `u` is an update without a row for the before image. A feed in retract mode fails
 * for `u`, even with `on_error => 'drop'`, because the table would become wrong.
 *
 * @param column
 *   the column of the change types, for errors
 * @param kinds
 *   the row kind of every change type
 * @param drop
 *   whether a row with an unknown change type or a NULL key is skipped instead of failing
 * @param withoutOldRow
 *   known change types that replace a row without sending a before image, and therefore fail
 */
class ChangeTypes(
    column: String,
    kinds: Map[String, Byte],
    drop: Boolean,
    withoutOldRow: Set[String] = Set.empty)
    extends Serializable {
  import ChangeTypes._

  @transient private lazy val known = new KnownTypes(kinds)

  /**
   * Returns the row kind of a change type, or [[ChangeTypes.Dropped]]. Called from generated
   * code.
   */
  def kindOf(changeType: UTF8String): Byte = {
    val slot = if (changeType == null) -1 else known.find(changeType)
    if (slot >= 0) known.kindAt(slot)
    else if (changeType != null && withoutOldRow.contains(changeType.toString)) {
      throw runtime("CHANGELOG_BEFORE_IMAGE_MISSING", "column" -> column, "value" -> changeType)
    } else if (drop) Dropped
    else {
      val value = Option(changeType).map(_.toString)
      throw ChangelogErrors.changeTypeUnknown(column, value, kinds.keys.toSeq.sorted)
    }
  }

  /** Drops a row with a NULL key, or fails. Called from generated code. */
  def nullKey(keyColumn: UTF8String, row: UTF8String): Byte =
    if (drop) Dropped
    else throw runtime("CHANGELOG_KEY_NULL", "column" -> keyColumn, "row" -> row)

  /** Returns the mapping as text: the user's change types in a fixed order, or `standard`. */
  def mapping: String =
    if (ChangeTypes.words.toSet.subsetOf((kinds ++ ChangeTypes.lone).toSet)) "standard"
    else {
      kinds.toSeq.sorted
        .map { case (text, kind) => s"$text=${RowKind.Symbols(kind.toInt)}" }
        .mkString(" ")
    }

  /** Returns the effects of the changes on the table. */
  def produces: ModifyKindSet = {
    val found = kinds.values.toSet
    ModifyKindSet(
      insert = true,
      update = found.contains(RowKind.UpdateBefore) || found.contains(RowKind.UpdateAfter),
      delete = found.contains(RowKind.Delete))
  }
}

object ChangeTypes {

  /** Marks a row to be skipped; never leaves the source. */
  val Dropped: Byte = -1

  private val LoneUpdate = "u"

  /** Updates without a before image. */
  private lazy val lone: Map[String, Byte] =
    Seq(LoneUpdate, LoneUpdate.toUpperCase(Locale.ROOT)).map(_ -> RowKind.UpdateAfter).toMap

  private val words: Map[String, Byte] = RowKind.ChangeTypes.indices.flatMap { index =>
    val kind = index.toByte
    Seq(RowKind.Symbols(index) -> kind, RowKind.ChangeTypes(index) -> kind)
  }.toMap ++ Map(
    "update_before" -> RowKind.UpdateBefore,
    "update_after" -> RowKind.UpdateAfter,
    "c" -> RowKind.Insert,
    "r" -> RowKind.Insert,
    LoneUpdate -> RowKind.UpdateAfter,
    "d" -> RowKind.Delete)

  /**
   * Returns the change types known by default.
   *
   * @param hasOldRows
   *   whether the feed must send before images of updates
   */
  def standard(column: String, drop: Boolean, hasOldRows: Boolean = false): ChangeTypes = {
    val cases = words.flatMap { case (text, kind) =>
      Seq(text.toLowerCase(Locale.ROOT), text.toUpperCase(Locale.ROOT)).map(_ -> kind)
    }
    if (hasOldRows) new ChangeTypes(column, cases -- lone.keys, drop, lone.keySet)
    else new ChangeTypes(column, cases, drop)
  }

  /** Returns the row kind of a user's word, such as `+I`, `INSERT` or `update_after`. */
  def parseKind(text: String): Option[Byte] =
    words.collectFirst { case (word, kind) if word.equalsIgnoreCase(text) => kind }

  /**
   * A hash table of change types by length and first bytes. A hash of the complete text is
   * slower.
   */
  private final class KnownTypes(kinds: Map[String, Byte]) {
    private val mask = (Integer.highestOneBit(kinds.size.max(1)) << 2) - 1
    private val texts = new Array[UTF8String](mask + 1)
    private val kindOfText = new Array[Byte](mask + 1)

    kinds.foreach { case (text, kind) =>
      val bytes = UTF8String.fromString(text)
      var slot = first(bytes)
      while (texts(slot) != null) slot = next(slot)
      texts(slot) = bytes
      kindOfText(slot) = kind
    }

    /** Returns the slot of `text`, or -1. */
    def find(text: UTF8String): Int = {
      var slot = first(text)
      while (texts(slot) != null && !texts(slot).equals(text)) slot = next(slot)
      if (texts(slot) == null) -1 else slot
    }

    def kindAt(slot: Int): Byte = kindOfText(slot)

    private def first(text: UTF8String): Int = {
      val mixed = (text.getPrefix + text.numBytes) * 0x9e3779b97f4a7c15L
      (mixed >>> 32).toInt & mask
    }

    private def next(slot: Int): Int = (slot + 1) & mask
  }
}
