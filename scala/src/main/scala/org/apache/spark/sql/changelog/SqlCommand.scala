// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Row, SparkSession => AnySession}

/**
 * SqlCommand: a statement of this extension, run by a function.
 *
 * @param statement
 *   the keywords
 * @param arguments
 *   the values in the statement, for comparison and EXPLAIN
 * @param columns
 *   returns the columns of the result, during analysis
 */
case class SqlCommand(statement: String, arguments: Any*)(
    columns: SparkSession => Seq[Attribute],
    body: SparkSession => Seq[Row])
    extends LeafRunnableCommand {
  override protected def otherCopyArgs: Seq[AnyRef] = Seq(columns, body)

  override lazy val output: Seq[Attribute] = columns(castToImpl(AnySession.active))

  override def run(session: AnySession): Seq[Row] = body(castToImpl(session))
}

object SqlCommand {

  /** Returns a statement with fixed result columns, given as DDL. */
  def returning(columns: String, statement: String, arguments: Any*)(
      body: SparkSession => Seq[Row]): SqlCommand =
    new SqlCommand(statement, arguments: _*)(_ => toAttributes(StructType.fromDDL(columns)), body)

  /** Returns a statement without a result. */
  def unit(statement: String, arguments: Any*)(body: SparkSession => Any): SqlCommand =
    new SqlCommand(statement, arguments: _*)(
      _ => Nil,
      session => {
        body(session)
        Nil
      })
}
