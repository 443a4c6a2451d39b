// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import org.apache.spark.rdd.RDD
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.UnionLoop
import org.apache.spark.sql.catalyst.plans.physical.{Partitioning, UnknownPartitioning}
import org.apache.spark.sql.classic.Dataset
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd
import org.apache.spark.sql.execution.{LogicalRDD, SQLExecution, SparkPlan, UnaryExecNode}
import org.apache.spark.storage.StorageLevel

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.plans.RecursionInput

/**
 * Runs a recursion over the old and the new rows of its inputs. As in Spark's batch execution, each step is a
 * query of its own, executed during the batch.
 *
 *   - in: both versions of all inputs, if any has changed; each version begins with an opening row without
 *     values
 *   - out: the result over the new rows, as `+I`, and the result over the old rows, as `-D`
 *
 * The input rows are cached, so that the operators below run once however often a step reads the rows.
 */
case class ChangelogRecursionExec(
    @transient loop: UnionLoop,
    inputs: Seq[Seq[Int]],
    override val output: Seq[Attribute],
    child: SparkPlan)
    extends UnaryExecNode {

  override def producedAttributes: AttributeSet = outputSet

  override def outputPartitioning: Partitioning = UnknownPartitioning(0)

  override def simpleString(maxFields: Int): String = nodeName

  override protected def doExecute(): RDD[InternalRow] = {
    val kindOrdinal = child.output.size - 1
    val rows = child.execute().map(_.copy()).persist(StorageLevel.MEMORY_AND_DISK)
    unpersistAfterBatch(rows)
    // reads every row, because an operator below must run to its end
    rows.count()
    val results = Seq(RowKind.Insert, RowKind.Delete).flatMap { version =>
      val ofVersion = rows.filter(_.getByte(kindOrdinal) == version)
      if (ofVersion.isEmpty()) None else Some(result(ofVersion, version))
    }
    sparkContext.union(results)
  }

  /** Frees the cached rows at the end of the batch. Until then a sink may read the result several times. */
  private def unpersistAfterBatch(rows: RDD[_]): Unit = {
    val batch = sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)
    sparkContext.addSparkListener(new SparkListener {
      override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
        // the event of the batch's end may be dropped; any later event then frees the rows
        case end: SparkListenerSQLExecutionEnd
            if end.executionId.toString == batch || SQLExecution.getQueryExecution(
              batch.toLong) == null =>
          rows.unpersist()
          sparkContext.removeSparkListener(this)
        case _ =>
      }
    })
  }

  private def result(rows: RDD[InternalRow], version: Byte): RDD[InternalRow] = {
    val query = loop.transformUp { case RecursionInput(number, columns) =>
      val places = inputs(number).zip(columns).map { case (ordinal, column) =>
        BoundReference(ordinal, column.dataType, nullable = true)
      }
      val ofInput: RDD[InternalRow] = rows.mapPartitions { all =>
        val columnsOf = UnsafeProjection.create(places)
        all.filter(row => !row.isNullAt(0) && row.getInt(0) == number).map(columnsOf(_))
      }
      LogicalRDD(columns, ofInput)(session)
    }
    val computed = Dataset.ofRows(session, query).queryExecution
    val columns = computed.executedPlan.output
    computed.toRdd.mapPartitions { results =>
      val withKind = UnsafeProjection.create(columns :+ Literal(version), columns)
      results.map(withKind(_))
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogRecursionExec =
    copy(child = newChild)
}
