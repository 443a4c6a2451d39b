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
 * A statement of this project that runs a function.
 *
 * @param statement
 *   its keywords
 * @param arguments
 *   the values of its slots
 * @param columns
 *   the columns of its result; called when the statement is analyzed
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

  /** A statement whose result has fixed columns, as DDL. */
  def returning(columns: String, statement: String, arguments: Any*)(
      body: SparkSession => Seq[Row]): SqlCommand =
    new SqlCommand(statement, arguments: _*)(_ => toAttributes(StructType.fromDDL(columns)), body)

  /** A statement without a result. */
  def unit(statement: String, arguments: Any*)(body: SparkSession => Any): SqlCommand =
    new SqlCommand(statement, arguments: _*)(
      _ => Nil,
      session => {
        body(session)
        Nil
      })
}
