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
import org.apache.spark.sql.types.{ArrayType, BinaryType, ObjectType, StringType}
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.{SparkEnv, SparkException, TaskContext}

import org.apache.spark.sql.changelog.compat.RunningStream
import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime
import org.apache.spark.sql.changelog.sources.ChangeTypes

/** Handles an unreadable record: fails the query, or returns one dropped change. */
private[changelog] class RecordFaults(val function: String, drop: Boolean) extends Serializable {

  /** Handles a record with a fault. Called from generated code. */
  def refuse(fault: UTF8String, place: UTF8String, record: UTF8String): ArrayData =
    if (drop) new GenericArrayData(Array[Any](InternalRow(ChangeTypes.Dropped, null, null)))
    else {
      throw runtime(
        "CHANGELOG_RECORD_MALFORMED",
        "function" -> function,
        "place" -> nonEmptyPlace(place).map(text => s" ($text)").getOrElse(""),
        "record" -> RecordFaults.shown(record),
        "fault" -> fault)
    }

  /**
   * Fails for a truncation. Called from generated code. Dropping the record would leave all
   * deleted rows in the table.
   */
  def refuseTruncation(place: UTF8String, record: UTF8String): ArrayData =
    throw runtime(
      "CHANGELOG_RECORD_TRUNCATES",
      "function" -> function,
      "place" -> nonEmptyPlace(place).map(text => s" ($text)").getOrElse(""),
      "record" -> RecordFaults.shown(record))

  private def nonEmptyPlace(place: UTF8String): Option[String] =
    Option(place).map(_.toString).filter(_.nonEmpty)

  /** Returns the changes of a record with a fault, as an expression. */
  def refuse(
      changes: ArrayType,
      fault: Expression,
      place: Expression,
      record: Expression): Expression =
    call("refuse", changes, Seq(fault, place, record))

  /** Returns the changes of a truncation, as an expression. */
  def refuseTruncation(changes: ArrayType, place: Expression, record: Expression): Expression =
    call("refuseTruncation", changes, Seq(place, record))

  private def call(method: String, changes: ArrayType, arguments: Seq[Expression]): Expression =
    Invoke(
      Literal.fromObject(this),
      method,
      changes,
      arguments,
      propagateNull = false,
      // Prevents the optimizer from evaluating the call twice, and with it the record.
      isDeterministic = false)
}

private[changelog] object RecordFaults {

  /** The number of displayed characters of a record in an error. */
  private val MaxShown = 500

  /** The start of the payload. The schema before the payload is long and equal in all records. */
  private val Payload = "\"payload\":"

  private def shown(record: UTF8String): String = {
    val text = Option(record).map(_.toString).getOrElse("NULL")
    val payload = text.indexOf(Payload)
    val told = if (text.length > MaxShown && payload > 0) "..." + text.drop(payload) else text
    if (told.length > MaxShown) told.take(MaxShown) + "..." else told
  }

  /**
   * Returns the location of a record from the source's columns, as in `partition=0, offset=17`.
   */
  def place(values: Seq[(String, Expression)], timeZone: String): Expression = {
    val told = values.filterNot(_._2.dataType == BinaryType).map { case (name, value) =>
      val label = Literal(UTF8String.fromString(s"$name="), StringType)
      Concat(Seq(label, ToPrettyString(value, Some(timeZone))))
    }
    ConcatWs(Literal(UTF8String.fromString(", "), StringType) +: told)
  }
}

/** OnError: the handling of unreadable records. */
sealed abstract class OnError(override val toString: String)

object OnError {

  /** The query fails. */
  case object Fail extends OnError("fail")

  /** Unreadable records are dropped and counted. */
  case object Drop extends OnError("drop")

  /** Unreadable records are returned with their faults, instead of the table. */
  case object Return extends OnError("return")

  val values: Seq[OnError] = Seq(Fail, Drop, Return)
}

/** OnTruncate: the handling of a record that empties the table. */
sealed abstract class OnTruncate(override val toString: String)

object OnTruncate {

  /** The query fails. */
  case object Fail extends OnTruncate("fail")

  /** The rows stay. */
  case object Ignore extends OnTruncate("ignore")

  /** The rows of earlier changes are deleted. */
  case object Apply extends OnTruncate("apply")

  val values: Seq[OnTruncate] = Seq(Fail, Ignore, Apply)
}

/**
 * DeadLetters: stores the unreadable records of a stream in files, with one JSON object per line.
 *
 * {{{
 *   <path>/query=<id>/batch=<number>/source-1-part-00000.json
 * }}}
 *
 * The task that reads a record also writes the record. A file appears atomically at the end of
 * the task, and so before the end of the batch. A batch that runs again after a restart starts
 * with an empty folder, see [[begin]]. A partition read twice within a batch, as in
 * `foreachBatch`, is written once.
 *
 * @param source
 *   number of the source in the query, from 1
 */
private[changelog] final case class DeadLetters(path: String, source: Int = 1) {
  @transient private var file: DeadLetterFile = _

  /** Writes a record, and returns one dropped change. Called from generated code. */
  def keep(line: UTF8String): ArrayData = {
    val context = TaskContext.get()
    if (context == null) throw SparkException.internalError("A record is read outside of a task")
    if (file == null || file.context != context) file = new DeadLetterFile(context, this)
    file.add(line)
    new GenericArrayData(Array[Any](InternalRow(ChangeTypes.Dropped, null, null)))
  }

  /** Returns an expression that writes a record and returns its changes. */
  def keep(changes: ArrayType, line: Expression): Expression = Invoke(
    Literal.fromObject(this),
    "keep",
    changes,
    Seq(line),
    propagateNull = false,
    // Prevents the optimizer from evaluating the call twice.
    isDeterministic = false)

  private[records] def file(query: String, batch: String, partition: Int): Path =
    new Path(folder(query, batch), f"source-$source-part-$partition%05d.json")

  private def folder(query: String, batch: String): Path =
    new Path(path, s"query=$query/batch=$batch")
}

private[changelog] object DeadLetters {

  /** Gives each source of a query its own file names. */
  def number(plan: LogicalPlan, source: Int): LogicalPlan = plan.transform { case node =>
    node.transformExpressions { case Literal(letters: DeadLetters, _: ObjectType) =>
      Literal.fromObject(letters.copy(source = source))
    }
  }

  /** Returns the dead letters of all sources of a plan. */
  def in(plan: LogicalPlan): Seq[DeadLetters] = plan.collect { case node =>
    node.expressions.flatMap(_.collect { case Literal(letters: DeadLetters, _) => letters })
  }.flatten

  /** Deletes the files of an earlier attempt at a batch. Called before the batch's tasks run. */
  def begin(all: Seq[DeadLetters], query: String, batch: Long): Unit =
    all.map(_.folder(query, batch.toString)).distinct.foreach { folder =>
      val files = folder.getFileSystem(SparkHadoopUtil.get.newConfiguration(SparkEnv.get.conf))
      files.delete(folder, true)
    }
}

/** The unreadable records of one task. */
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
