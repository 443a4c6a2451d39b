// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.checkpoint.ReadableFile
import org.apache.spark.sql.changelog.compat.StateStores
import org.apache.spark.sql.changelog.errors.CheckpointErrors
import org.apache.spark.sql.changelog.identity.QueryRecordFile

/**
 * Refuses to go on with state whose columns are called differently.
 *
 * Spark compares the types of state columns only. That would let a query that groups by `city` go
 * on with groups kept by `country`, or take `sum(a)` for `sum(b)`. Which query a checkpoint is of
 * stands in it ([[org.apache.spark.sql.changelog.identity.QueryRecord]]); in those of earlier
 * versions it does not. Columns of our state are called after what is kept in them, so their names
 * tell there.
 *
 * Before the first batch is committed there is no state to protect: what an earlier attempt wrote
 * about its columns then is removed.
 */
private[execution] object CheckStateColumns {
  def apply(
      operator: String,
      info: StatefulOperatorStateInfo,
      batchId: Long,
      hadoopConf: Configuration,
      wanted: StateStores.Columns): Unit = {
    val file = StateStores.columnsFile(info)
    val files = CheckpointFileManager.create(file, hadoopConf)
    def record = new QueryRecordFile(new Path(info.checkpointLocation).getParent, hadoopConf)
    if (files.exists(file.getParent) && files.exists(file)) {
      if (batchId == 0) files.delete(file)
      else {
        val stored = ReadableFile(file)(file => StateStores.readColumns(files.open(file)))
        if (!record.exists) {
          stored.foreach { case (key, value) =>
            check("key", key, wanted.key)
            check("value", value, wanted.value)
          }
        }
      }
    }

    def check(part: String, stored: StructType, wanted: StructType): Unit =
      if (names(stored) != names(wanted)) {
        throw CheckpointErrors.stateOfOtherQuery(
          operator,
          info.operatorId,
          part,
          names(stored),
          names(wanted))
      }
  }

  /** The names of all columns, and of those within rows that are kept as they are. */
  private def names(schema: StructType): Seq[String] = schema.flatMap { field =>
    field.dataType match {
      case row: StructType => names(row).map(name => s"${field.name}.$name")
      case _ => Seq(Counted.replaceAllIn(field.name, "_common_expr"))
    }
  }

  /** What Spark calls an expression that it computes once, with a number that counts in the JVM. */
  private val Counted = """_common_expr_\d+""".r
}
