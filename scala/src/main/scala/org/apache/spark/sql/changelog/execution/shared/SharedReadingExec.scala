// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.shared

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.LeafExecNode

import org.apache.spark.sql.changelog.shared.SharedChanges

/** Executes a [[org.apache.spark.sql.changelog.plans.SharedReading]]: reads the shuffle again. */
case class SharedReadingExec(
    changes: SharedChanges,
    override val outputPartitioning: Partitioning,
    override val output: Seq[Attribute])
    extends LeafExecNode {

  override def simpleString(maxFields: Int): String = s"SharedReading $changes"

  override protected def doExecute(): RDD[InternalRow] = changes.part.execute()
}
