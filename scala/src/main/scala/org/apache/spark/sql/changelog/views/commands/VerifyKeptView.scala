// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.{Row, SparkSession => AnySession}

import org.apache.spark.sql.changelog.views.verify.VerifyView

/**
 * `VERIFY MATERIALIZED VIEW v [SAMPLE n PERCENT]`: the rows in which it differs from its query,
 * computed by batch Spark over what the sources had delivered at its last batch. None if it is
 * equal.
 */
case class VerifyKeptView(name: Seq[String], sample: Option[Double]) extends ViewCommand {

  /** The columns of the view, which are asked for where the statement is analyzed. */
  override lazy val output: Seq[Attribute] = {
    val session = castToImpl(AnySession.active)
    toAttributes(VerifyView.schemaOf(find(session, name)))
  }

  override protected def runIn(session: SparkSession): Seq[Row] =
    new VerifyView(session, find(session, name), sample)()
}
