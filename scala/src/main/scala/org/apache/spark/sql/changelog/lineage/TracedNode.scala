// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.lineage

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.types.StructType

/**
 * The rows of a node that stand behind some rows of a query's result.
 *
 * @param level
 *   how far below the result it is
 * @param count
 *   how many rows they are
 * @param rows
 *   some of them, the text of each column by its name; none for NULL
 * @param note
 *   what must be known of it besides
 */
private[changelog] final case class TracedNode(
    level: Int,
    node: String,
    count: Long,
    rows: Seq[Seq[(String, Option[String])]],
    note: Option[String]) {

  /** As rows of a table: one for each row, or one without any. */
  def toRows: Seq[Row] = {
    val texts = rows.map(_.map { case (name, text) => name -> text.orNull }.toMap)
    val shown = if (texts.isEmpty) Seq(null) else texts
    shown.map(Row(level, node, count, _, note.orNull))
  }
}

private[changelog] object TracedNode {

  /** The columns of [[TracedNode.toRows]]. */
  val output: Seq[Attribute] = toAttributes(StructType.fromDDL(
    "level INT NOT NULL, node STRING NOT NULL, rows BIGINT NOT NULL, row MAP<STRING, STRING>, note STRING"))
}
