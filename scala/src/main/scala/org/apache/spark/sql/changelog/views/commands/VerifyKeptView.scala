// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.views.KeptView
import org.apache.spark.sql.changelog.views.verify.VerifyView

/**
 * `VERIFY MATERIALIZED VIEW v [SAMPLE n PERCENT]`: the rows in which it differs from its query,
 * computed by batch Spark over what the sources had delivered at its last batch. None if it is
 * equal.
 */
case class VerifyKeptView(
    view: KeptView,
    sample: Option[Double],
    override val output: Seq[Attribute])
    extends ViewCommand {
  override protected def runIn(session: SparkSession): Seq[Row] =
    new VerifyView(session, view, sample)()
}

object VerifyKeptView {
  def apply(view: KeptView, sample: Option[Double]): VerifyKeptView =
    VerifyKeptView(view, sample, toAttributes(VerifyView.schemaOf(view)))
}
