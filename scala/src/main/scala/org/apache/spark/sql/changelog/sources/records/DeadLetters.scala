// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.records

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.hadoop.fs.Path

import org.apache.spark.deploy.SparkHadoopUtil
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.Invoke
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.types.{ArrayType, ObjectType}
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.{SparkEnv, SparkException, TaskContext}

import org.apache.spark.sql.changelog.compat.RunningStream
import org.apache.spark.sql.changelog.sources.ChangeTypes

/**
 * Keeps the records of a stream that can't be read in files, one JSON object a line:
 *
 * {{{
 *   <path>/query=<id>/batch=<number>/source-1-part-00000.json
 * }}}
 *
 * The task that reads a record writes it, and a file appears as a whole when its task is done: so
 * before the batch is. A batch that is run again after a restart begins with an empty folder, see
 * [[begin]]; a part that is read twice within a batch, as `foreachBatch` may do, is there once.
 *
 * @param source
 *   counts the sources of a query, from 1
 */
private[changelog] final case class DeadLetters(path: String, source: Int = 1) {
  @transient private var file: DeadLetterFile = _

  /** Called from generated code. The record counts as a change that is dropped. */
  def keep(line: UTF8String): ArrayData = {
    val context = TaskContext.get()
    if (context == null) throw SparkException.internalError("A record is read outside of a task")
    if (file == null || file.context != context) file = new DeadLetterFile(context, this)
    file.add(line)
    new GenericArrayData(Array[Any](InternalRow(ChangeTypes.Dropped, null, null)))
  }

  /** Has a record kept, as an expression that gives its changes. */
  def keep(changes: ArrayType, line: Expression): Expression = Invoke(
    Literal.fromObject(this),
    "keep",
    changes,
    Seq(line),
    propagateNull = false,
    // keeps the optimizer from evaluating it twice
    isDeterministic = false)

  private[records] def file(query: String, batch: String, partition: Int): Path =
    new Path(folder(query, batch), f"source-$source-part-$partition%05d.json")

  private def folder(query: String, batch: String): Path =
    new Path(path, s"query=$query/batch=$batch")
}

private[changelog] object DeadLetters {

  /** Lets the files of one source of a query have names of their own. */
  def number(plan: LogicalPlan, source: Int): LogicalPlan = plan.transform { case node =>
    node.transformExpressions { case Literal(letters: DeadLetters, _: ObjectType) =>
      Literal.fromObject(letters.copy(source = source))
    }
  }

  /** The folders for unreadable records that the sources of a plan have. */
  def in(plan: LogicalPlan): Seq[DeadLetters] = plan.collect { case node =>
    node.expressions.flatMap(_.collect { case Literal(letters: DeadLetters, _) => letters })
  }.flatten

  /** Removes what an earlier attempt at a batch has left. Called before its tasks run. */
  def begin(all: Seq[DeadLetters], query: String, batch: Long): Unit =
    all.map(_.folder(query, batch.toString)).distinct.foreach { folder =>
      val files = folder.getFileSystem(SparkHadoopUtil.get.newConfiguration(SparkEnv.get.conf))
      files.delete(folder, true)
    }
}

/** The records that one task could not read. */
private class DeadLetterFile(val context: TaskContext, letters: DeadLetters) {
  private val conf = SparkHadoopUtil.get.newConfiguration(SparkEnv.get.conf)
  private val target = letters.file(
    RunningStream.queryId(context),
    RunningStream.batchId(context),
    context.partitionId())
  private val out = {
    val files = CheckpointFileManager.create(target.getParent, conf)
    files.mkdirs(target.getParent)
    files.createAtomic(target, overwriteIfPossible = true)
  }
  context.addTaskCompletionListener[Unit] { _ => finish() }

  def add(line: UTF8String): Unit = {
    out.write(line.getBytes)
    out.write("\n".getBytes(UTF_8))
  }

  private def finish(): Unit =
    if (context.isFailed() || context.isInterrupted()) out.cancel() else out.close()
}
