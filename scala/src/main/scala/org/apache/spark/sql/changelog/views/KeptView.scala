// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.types.{DataType, StructType}

/**
 * A view there is: its name, its columns and what it is.
 *
 * @param layout
 *   how a table that is made for it is partitioned; of one that is there, the table
 *   knows
 */
case class KeptView(
    name: TableIdentifier,
    schema: StructType,
    definition: ViewDefinition,
    layout: Seq[Transform] = Nil) {

  /** What it is called in statements. */
  def sql: String = name.quotedString

  /** Whether it is kept as a Delta table, whose change data feed tells its changes. */
  def isDelta: Boolean = definition.provider.equalsIgnoreCase("delta")

  /** Whether its first columns have the same names and types. */
  def beginsWithColumnsOf(other: KeptView): Boolean = columns.startsWith(other.columns)

  private def columns: Seq[(String, DataType)] =
    schema.map(field => field.name -> field.dataType)

  /** What the query that keeps it is called. */
  def queryName: String = s"view ${name.unquotedString}"
}
