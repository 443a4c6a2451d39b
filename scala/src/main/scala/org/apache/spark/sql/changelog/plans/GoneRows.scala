// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, Statistics}

/**
 * Rows that are not there any more, which is an error of a batch that reads them: one that begins with kept state
 * only asks for them.
 *
 * @param error
 *   what is thrown where they are read
 */
case class GoneRows(override val output: Seq[Attribute], error: () => Throwable)
    extends LeafNode {

  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)
}
