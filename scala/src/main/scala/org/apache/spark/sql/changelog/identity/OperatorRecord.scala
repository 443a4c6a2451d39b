// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import org.json4s.JsonAST._
import org.json4s.JsonDSL._

import org.apache.spark.sql.changelog.plans.StateTable

/**
 * What a checkpoint says of a node that keeps state.
 *
 * @param ids
 *   the operators it is run by: its folders below `state`
 * @param node
 *   what the node is, as its query is optimized: this decides what is kept, and in which order
 * @param shown
 *   the same for people
 * @param tables
 *   what it keeps, and what bounds that
 * @param part
 *   what tells the node, with all that lies below it, from those of other queries, if that can be told
 */
private[changelog] final case class OperatorRecord(
    ids: Seq[Long],
    node: String,
    shown: String,
    mode: String,
    tables: Seq[String],
    part: Option[PartRecord] = None) {

  def toJson: JObject =
    ("ids" -> ids) ~ ("node" -> node) ~ ("shown" -> shown) ~ ("mode" -> mode) ~
      ("tables" -> tables) ~ ("part" -> part.map(_.toJson))

  /** What must be the same at a restart. */
  def line: String = s"${ids.mkString(", ")}: $node"

  /** The kinds of its tables, such as `rows`, which must be the same too; columns may be renamed. */
  def kinds: Seq[String] = tables.map(_.takeWhile(_.isLetter))

  /** Whether it forgets what nothing has changed for some time. */
  def hasTtl: Boolean = tables.exists(StateTable.hasTtl)

  /** What it keeps, for people. */
  def kept: String = s"${ids.mkString(", ")}: $shown keeps ${tables.mkString("; ")}"
}

private[changelog] object OperatorRecord {
  def fromJson(json: JValue): OperatorRecord = {
    def text(field: String) = {
      val JString(value) = json \ field: @unchecked
      value
    }
    def texts(field: String) = {
      val JArray(values) = json \ field: @unchecked
      values.collect { case JString(value) => value }
    }
    OperatorRecord(
      numbers(json, "ids"),
      text("node"),
      text("shown"),
      text("mode"),
      texts("tables"),
      (json \ "part").toOption.map(PartRecord.fromJson))
  }

  private[identity] def numbers(json: JValue, field: String): Seq[Long] = {
    val JArray(values) = json \ field: @unchecked
    values.collect { case JInt(value) => value.toLong }
  }
}
