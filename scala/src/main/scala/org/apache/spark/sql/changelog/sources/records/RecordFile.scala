// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.records

import org.apache.spark.rdd.InputFileBlockHolder
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
import org.apache.spark.sql.catalyst.expressions.{Expression, PythonFuncExpression}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, FileTable}
import org.apache.spark.sql.execution.datasources.{FileFormat, HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelation
import org.apache.spark.sql.types.StringType

/**
 * Tells the file a record is in, where records are read from files and nothing comes in between
 * that holds rows back: then it is the file that is being read. Spark's `input_file_name()` would
 * refuse sources of several parts.
 */
private[changelog] object RecordFile {
  def nameIn(source: LogicalPlan): Option[Expression] =
    if (!isReadFromFiles(source)) None
    else {
      val file = StaticInvoke(
        InputFileBlockHolder.getClass,
        StringType,
        "getInputFilePath",
        returnNullable = false,
        isDeterministic = false)
      Some(file)
    }

  private def isReadFromFiles(plan: LogicalPlan): Boolean = plan match {
    case _: Project | _: Filter | _: SubqueryAlias | _: View | _: EventTimeWatermark =>
      !plan.expressions.exists(_.exists(_.isInstanceOf[PythonFuncExpression])) &&
      plan.children.forall(isReadFromFiles)
    case relation: StreamingRelation =>
      relation.dataSource.providingInstance().isInstanceOf[FileFormat]
    case relation: LogicalRelation => relation.relation.isInstanceOf[HadoopFsRelation]
    case relation: DataSourceV2Relation => relation.table.isInstanceOf[FileTable]
    case _ => false
  }
}
